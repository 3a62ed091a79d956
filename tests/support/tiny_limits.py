"""Limits so small that a few documents reach each of them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from broker.pipeline.limits import DEFAULT_PIPELINE_LIMITS, PipelineLimits
from joins.budget.limits import DEFAULT_RUN_LIMITS, RunLimits
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.shards.limits import DEFAULT_SHARD_LIMITS, ShardLimits
from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits
from joins.sql.limits import SqlLimits
from xpath_eval.limits import DEFAULT_EVALUATOR_LIMITS, EvaluatorLimits

__all__ = [
    "ALL_LIMITS",
    "CHOICES",
    "TINY",
    "TINY_MEMORY",
    "TINY_SHARDS",
    "matching",
    "random_limits",
    "random_pipeline_limits",
]

Limits = TypeVar(
    "Limits",
    EvaluatorLimits,
    MemoryLimits,
    RunLimits,
    SignatureLimits,
    ShardLimits,
    MatchingLimits,
    PipelineLimits,
)

ALL_LIMITS = (
    EvaluatorLimits,
    MemoryLimits,
    RunLimits,
    SignatureLimits,
    ShardLimits,
    SqlLimits,
    MatchingLimits,
    PipelineLimits,
)

TINY_MEMORY = MemoryLimits(
    shapes_kept=0,
    sub_batch_bytes=100,
    column_rows=64,
    moved_rows=3,
    huge_page_bytes=64,
    numbered_rows=2,
    evicted_rows=2,
    scanned_rows=2,
    rows_bytes=300,
    file_bytes=100,
    chunk_rows=2,
    swept_rows=3,
    run_entries=4,
    directory_entries=2,
    listed_pairs=1,
    contenders=0,
)

TINY = MatchingLimits(
    join=SignatureLimits(memory=TINY_MEMORY, assigned=0, also_equal=0), asked_rows=2
)

TINY_SHARDS = ShardLimits(
    shard=SignatureLimits(memory=TINY_MEMORY),
    pending_bytes=100,
    compacted_pieces=2,
    pieces=3,
    piece_rows=9,
    looked_every=1,
    unasked_rows=0,
    taken_on_rows=2,
    warm_rounds=2,
)

CHOICES: Mapping[type, Mapping[str, Sequence[int]]] = {
    MemoryLimits: {
        "shapes_kept": (0, 2),
        "sub_batch_bytes": (1, 500),
        "column_rows": (16, 64),
        "moved_rows": (1, 3),
        "numbered_rows": (2,),
        "evicted_rows": (1, 2),
        "scanned_rows": (1, 3),
        "rows_bytes": (0, 300),
        "file_bytes": (1, 500),
        "chunk_rows": (1, 2),
        "compacted_bytes": (1,),
        "swept_rows": (1, 3),
        "run_entries": (2, 8),
        "directory_entries": (1, 4),
        "own_entries": (1,),
        "compiled_values": (0, 5, 1_000_000),
        "listed_pairs": (1, 3),
        "contenders": (0, 3),
    },
    RunLimits: {
        "spelled_bytes": (1, 1_000),
        "swept_parts": (0, 3),
        "in_columns": (False, True),
    },
    SignatureLimits: {
        "pairs": (1, 5),
        "found": (1, 10),
        "listed_hits": (0, 2),
        "tuples": (1, 3),
        "few_pairs": (0, 2),
        "compiled_pairs": (0, 1_000_000),
        "wide": (0,),
        "sorted_slots": (9,),
        "repeats": (0, 2),
        "entries": (0, 3),
        "entry_rows": (0, 5),
        "assigned": (0, 3, 100_000),
        "step_tables": (2, 3),
        "also_equal": (0, 2),
        "anchor_change": (0, 4),
        "first_look": (1,),
        "looks_apart": (1,),
        "looked_at": (1,),
        "compiled_sets": (0, 5),
    },
    ShardLimits: {
        "pending_rows": (1,),
        "pending_bytes": (1, 500),
        "compacted_pieces": (2,),
        "pieces": (2,),
        "piece_rows": (1, 5),
        "looked_every": (1, 3),
        "unasked_rows": (0, 2),
        "taken_on_rows": (1, 3),
        "warm_rounds": (1, 3),
        "first_asked": (1,),
        "counted_instances": (1,),
    },
    EvaluatorLimits: {
        "raw_shapes": (0, 1),
        "outcomes": (1, 2),
        "edges": (0, 5),
        "selected": (0, 1),
        "states": (1, 3),
        "nested_variables": (0,),
        "nested_bytes": (0,),
        "characters": (1, 10),
    },
    MatchingLimits: {
        "tuples": (1, 3),
        "boxes": (1, 3),
        "waiting_boxes": (1, 3),
        "asked_rows": (0, 3),
        "held_pairs": (0, 3),
        "plain_tuples": (1, 3),
        "characters": (1, 10),
        "large_bytes": (0, 5),
        "read_bytes": (1, 20),
        "large_instances": (0, 2),
        "published": (0, 2),
        "trees": (0, 300),
        "made_bytes": (1, 1_000),
        "finished_uses": (0, 2, 5),
        "finished_uses_chunk": (1, 2),
        "finished_clauses_chunk": (1, 2),
        "shared_characters": (0, 3),
    },
    PipelineLimits: {
        "batch_bytes": (1, 200),
        "evaluated_documents": (1, 2),
        "witness_bytes": (0, 200),
        "sub_batch_bytes": (0, 100),
        "file_bytes": (1, 400),
        "small_documents": (1,),
        "looked_back_documents": (1, 2),
        "looked_back_bytes": (0, 50),
    },
}


def matching(memory: MemoryLimits = DEFAULT_MEMORY_LIMITS, **limits: int) -> MatchingLimits:
    """Return the limits of an engine whose join has some of these."""
    return MatchingLimits(join=SignatureLimits(memory=memory, **limits))


def random_limits(seed: int | None) -> tuple[MatchingLimits, ShardLimits]:
    """Return limits of which most are tiny, or all of what is remembered; None leaves all."""
    if seed is None:
        return DEFAULT_MATCHING_LIMITS, DEFAULT_SHARD_LIMITS
    chance = random.Random(seed)
    memory = _some(chance, TINY_MEMORY if chance.randrange(2) else DEFAULT_MEMORY_LIMITS)
    join = _some(chance, dataclasses.replace(DEFAULT_LIMITS, memory=memory))
    evaluator = _some(chance, DEFAULT_EVALUATOR_LIMITS)
    runs = _some(chance, DEFAULT_RUN_LIMITS)
    usual = dataclasses.replace(DEFAULT_MATCHING_LIMITS, join=join, runs=runs, evaluator=evaluator)
    return (
        _some(chance, usual),
        _some(chance, dataclasses.replace(DEFAULT_SHARD_LIMITS, shard=join)),
    )


def random_pipeline_limits(seed: int | None) -> PipelineLimits:
    """Return limits of which most are tiny; None leaves all."""
    if seed is None:
        return DEFAULT_PIPELINE_LIMITS
    chance = random.Random(f"pipeline {seed}")
    evaluator = _some(chance, DEFAULT_EVALUATOR_LIMITS)
    return _some(chance, dataclasses.replace(DEFAULT_PIPELINE_LIMITS, evaluator=evaluator))


def _some(chance: random.Random, usual: Limits) -> Limits:
    choices: dict[str, Any] = {
        name: chance.choice([*tiny, getattr(usual, name)])
        for name, tiny in CHOICES[type(usual)].items()
    }
    return dataclasses.replace(usual, **choices)
