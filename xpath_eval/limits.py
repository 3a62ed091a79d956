"""How much an evaluator keeps and gives at a time; it changes cost, never witnesses."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["DEFAULT_EVALUATOR_LIMITS", "EvaluatorLimits"]


@dataclass(frozen=True, slots=True)
class EvaluatorLimits:
    """The limits of one evaluator."""

    raw_shapes: int = 4_096
    """Structures of documents that are kept, with what is found in them: 936 real items had 126,
    and 55 witness shapes in all."""

    outcomes: int = 1_024
    """Kept stages of each structure, beside its first: what answers of the text lead to."""

    edges: int = 4_000_000
    """Edges of all kept shapes together, some 64 MB: with very many queries a shape is large."""

    selected: int = 10_000
    """Kept answers of a structure to which nodes an operand selects at a node."""

    states: int = 100_000
    """States of the lazily built automaton.  With 10,000 patterns they take about a gigabyte in the
    worst case; measured, 200 documents with 10,000 patterns have some 2,000."""

    nested_variables: int = 5
    """Fewer variables with nested paths than this are walked: to follow them together costs some 50
    microseconds for a document of seventy elements, and to walk one some 10."""

    nested_bytes: int = 64 << 20
    """Bytes of kept answers to which of these variables pass."""

    characters: int = 64 << 20
    """Characters of the values in one batch of witnesses, before the document that goes beyond.
    That one has at most `NESTED_TEXT_BYTES_MAX`, `DERIVED_CHARACTERS_MAX` and its own bytes, so
    that a batch has less than the 2 GB that the offsets of an Arrow column reach."""

    idle: int = 2
    """Evaluators that a process keeps while no call uses them: the one of the documents from
    outside, and one for what is evaluated beside it."""


DEFAULT_EVALUATOR_LIMITS = EvaluatorLimits()
