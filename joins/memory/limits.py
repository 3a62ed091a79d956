"""The sizes at which what is remembered is moved, merged, written to files and let go.

They decide what the join costs in time and memory, never what it finds; tests set them so small
that a few documents reach each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_MEMORY_LIMITS", "MemoryLimits"]


@dataclass(frozen=True, slots=True)
class MemoryLimits:
    """The limits of one process: of a join, or of a shard."""

    shapes_kept: int = 1_000
    """Witness shapes that are kept in any case: to look which are in use costs by the instance."""

    sub_batch_bytes: int = 256 << 20
    """Bytes of instances that are remembered at a time, beside one more batch: their strings are
    put together in one column, whose offsets reach 2 GB."""

    column_rows: int = 1 << 16
    """Rows that a column has addresses for, at least."""

    moved_rows: int = 1 << 18
    """Rows of a column that are in memory twice while it moves."""

    huge_page_bytes: int = 8 << 20
    """Bytes of a column from which on large pages are asked for: they make random access faster,
    and would make a small column large."""

    numbered_rows: int = 1 << 18
    """Rows whose numbers are written at a time before a sweep moves them."""

    evicted_rows: int = 16_384
    """Rows that eviction looks at, and moves, at a time: some 3 ms.  As many of no use are left
    alone, unless half of all can go: eviction costs by the piece."""

    scanned_rows: int = 4_096
    """Rows of which the first of use is looked for at a time."""

    rows_bytes: int = 256 << 20
    """Bytes of instances' rows that stay in memory: half a million news items."""

    file_bytes: int = 64 << 20
    """Bytes of rows that are written to a file: each file costs an open descriptor."""

    chunk_rows: int = 512
    """Rows of small batches are put together up to this many, and up to `file_bytes`: each batch
    costs some kilobytes."""

    compacted_bytes: int = 1 << 20
    """Bytes up to which the rests of chunks in memory are put together."""

    swept_rows: int = 16_384
    """Rows of chunks that are looked at between two other things."""

    run_entries: int = 1 << 21
    """Entries that a sorted run of the value index has at most, unless one batch has more: to merge
    two of half that size takes some 50 ms; ten million documents of five values make 35 runs."""

    directory_entries: int = 1 << 13
    """Entries from which on a sorted run has a directory: fewer are searched in a core's cache."""

    own_entries: int = 8
    """Entries of a value that are looked at to find that all are of the instance that asks.  One
    that has a value more often, as under many variables, is taken to share it."""

    compiled_values: int = 20_000
    """Values that are looked up at once from which on compiled loops do it, where they can: array
    operations take some 10 ms for as many, and to read the loops takes half a second, once.  Where
    fewer come at a time, loops look them up when fifty times as many have come."""

    listed_pairs: int = 1 << 14
    """Pairs of contenders that are listed at once, about: behind each portion a left that is done
    is looked at no more. """

    contenders: int = 1_000
    """The fewest contenders among which useless ones are looked for."""


DEFAULT_MEMORY_LIMITS = MemoryLimits()
