"""The sizes at which matching works in pieces: but for those of runs, they change cost alone."""

from __future__ import annotations

from dataclasses import dataclass

from joins import DEFAULT_LIMITS, DEFAULT_RUN_LIMITS, RunLimits, SignatureLimits
from xpath_eval.limits import DEFAULT_EVALUATOR_LIMITS, EvaluatorLimits

__all__ = ["DEFAULT_MATCHING_LIMITS", "MatchingLimits"]


@dataclass(frozen=True, slots=True)
class MatchingLimits:
    """The limits of one engine."""

    join: SignatureLimits = DEFAULT_LIMITS
    """Those of its join."""

    runs: RunLimits = DEFAULT_RUN_LIMITS
    """Those of its repetitions, which say where a query is paused."""

    evaluator: EvaluatorLimits = DEFAULT_EVALUATOR_LIMITS
    """Those of its evaluator, for documents that queries publish."""

    tuples: int = 50_000
    """Tuples that are fanned out at a time: a query that explodes is noticed before it fills
    memory."""

    boxes: int = 1_000_000
    """Boxes that are listed at a time for tuples, unless one tuple alone has more: 24 MB."""

    waiting_boxes: int = 4_096
    """Boxes that wait as objects to be looked up, and groups that wait for a box: of more, all are
    written in columns, which are a fifth as large."""

    asked_rows: int = 250_000
    """Rows that documents become by data, up to which a batch is joined at once: 1 KB each until it
    is.  Of more it is joined in parts, the document with the one too many the last of each; a part
    costs 5 to 12 ms, and so many rows a second and a half."""

    held_pairs: int = 256
    """Tuples times uses of a group up to which each tuple is listed with who has it.  Where there
    are more they are counted for all uses at once."""

    plain_tuples: int = 16
    """Tuples of plain blocks that the same statements read from which on they are handed to
    decisions by themselves, without a look for who has them."""

    characters: int = 64 << 20
    """Characters of documents that are evaluated at a time, and of tuples that become instances."""

    large_bytes: int = 8 << 10
    """Bytes of values above which an instance is large: 50,000 smaller ones have 400 MB at most."""

    read_bytes: int = 64 << 20
    """Bytes of large instances that are read at a time; one that has more is read alone."""

    large_instances: int = 1_000
    """The fewest large instances among which useless ones are looked for.  They are looked for
    again when twice as many are known as were left."""

    published: int = 1_000
    """The fewest published documents among which useless ones are looked for, and again in the same
    way."""

    trees: int = 64 << 20
    """The cost of all trees of documents that are kept, the last one aside; they take three to ten
    times as much memory.  It is more than a query may read for one document by default
    (`budget.match_bytes`), so no document behind the matches of one is parsed twice."""

    made_bytes: int = 16 << 20
    """Bytes of matches that are made before it is asked again whose budget they are over."""

    finished_uses: int = 100_000
    """Uses of classes up to which shards finish tuples: each worker has all of them, and of so many
    60 MB."""

    finished_uses_chunk: int = 1_000
    """Uses that are written anew for a change of one: 3 ms, and 10 to read."""

    finished_clauses_chunk: int = 50
    """Clauses that are written anew for a change of one, and read."""

    finished_clauses: int = 5_000
    """And clauses, of queries that are not alike: a worker that begins reads them in a second and a
    half."""

    shared_characters: int = 1_000
    """Characters from which on equal values in matches are held once, however often they have been
    read."""


DEFAULT_MATCHING_LIMITS = MatchingLimits()
