"""How much is taken up, passed on and kept at a time; it changes cost, never matches."""

from __future__ import annotations

from dataclasses import dataclass

from xpath_eval.limits import DEFAULT_EVALUATOR_LIMITS, EvaluatorLimits

__all__ = ["DEFAULT_PIPELINE_LIMITS", "PipelineLimits"]


@dataclass(frozen=True, slots=True)
class PipelineLimits:
    """The limits of one pipeline."""

    evaluator: EvaluatorLimits = DEFAULT_EVALUATOR_LIMITS
    """Those of its evaluators."""

    batch_bytes: int = 64 << 20
    """Bytes of documents in one batch, unless its first segment alone has more."""

    task_bytes: int = 512 << 10
    """Bytes of documents of a batch for which another task is worth it, however few they are."""

    evaluated_documents: int = 2_000
    """Documents that a worker holds as witnesses at a time."""

    witness_bytes: int = 128 << 20
    """Bytes of nodes and values that are passed from the evaluation of one batch to the join, by
    all tasks together: they are in the JVM and in this process at once, and here beside those of
    the batch that is being joined.  What is beyond is evaluated where it is joined.  Values of
    nested elements make many times the bytes of their documents; shapes are left out of account,
    since each task spells them out once."""

    sub_batch_bytes: int = 64 << 20
    """Bytes of witnesses that are joined at a time, of those that are evaluated where they are
    joined: at most those of one more batch of stage 1."""

    beside_bytes: int = 1 << 20
    """The same where an engine is made beside the running one: the step that takes its place waits
    for one part of them."""

    file_documents: int = 10_000
    """Documents of a file of a snapshot, at least: as many may have to be evaluated again, in half
    a second."""

    file_bytes: int = 128 << 20
    """Bytes of witnesses at which such a file is written, however few their documents.  They wait
    in memory; a batch adds at most `witness_bytes`."""

    small_documents: int = 200
    """Fewer documents than these between two changes of the plan are not worth a file."""

    looked_back_documents: int = 1_000
    """Documents of a backfill between two looks at whether to stop, and between two commits."""

    looked_back_bytes: int = 4 << 20
    """Bytes of these, and of one document more: their values may be many times as many."""


DEFAULT_PIPELINE_LIMITS = PipelineLimits()
