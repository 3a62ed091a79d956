"""Limits so small that a few documents reach each of them."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.shards.limits import DEFAULT_SHARD_LIMITS, ShardLimits
from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits
from joins.sql.limits import SqlLimits

__all__ = ["ALL_LIMITS", "TINY", "TINY_MEMORY", "TINY_SHARDS", "matching", "random_limits"]

Limits = TypeVar("Limits", MemoryLimits, SignatureLimits, ShardLimits, MatchingLimits)

ALL_LIMITS = (MemoryLimits, SignatureLimits, ShardLimits, SqlLimits, MatchingLimits)

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
    filtered_entries=2,
)

TINY = MatchingLimits(join=SignatureLimits(memory=TINY_MEMORY))

TINY_SHARDS = ShardLimits(
    shard=SignatureLimits(memory=TINY_MEMORY),
    pending_bytes=100,
    thinned_pieces=2,
    pieces=3,
    piece_rows=9,
    looked_every=1,
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
        "thinned_bytes": (1,),
        "swept_rows": (1, 3),
        "run_entries": (2, 8),
        "filtered_entries": (1, 4),
        "own_entries": (1,),
    },
    SignatureLimits: {
        "pairs": (1, 5),
        "found": (1, 10),
        "tuples": (1, 3),
        "few_pairs": (0, 2),
        "wide": (0,),
        "sorted_slots": (9,),
        "repeats": (0, 2),
        "entries": (0, 3),
        "entry_rows": (0, 5),
        "step_tables": (2, 3),
        "anchor_change": (0, 4),
        "first_look": (1,),
        "looks_apart": (1,),
    },
    ShardLimits: {
        "pending_rows": (1,),
        "pending_bytes": (1, 500),
        "thinned_pieces": (2,),
        "pieces": (2,),
        "piece_rows": (1, 5),
        "looked_every": (1, 3),
        "first_asked": (1,),
        "counted_instances": (1,),
    },
    MatchingLimits: {"tuples": (1, 3), "characters": (1, 10)},
}


def matching(memory: MemoryLimits = DEFAULT_MEMORY_LIMITS, **limits: int) -> MatchingLimits:
    """Return the limits of an engine whose join has some of these."""
    return MatchingLimits(join=SignatureLimits(memory=memory, **limits))


def random_limits(seed: int | None) -> tuple[MatchingLimits, ShardLimits]:
    """Return limits of which most are tiny; None leaves all."""
    if seed is None:
        return DEFAULT_MATCHING_LIMITS, DEFAULT_SHARD_LIMITS
    chance = random.Random(seed)
    memory = _some(chance, DEFAULT_MEMORY_LIMITS)
    join = _some(chance, dataclasses.replace(DEFAULT_LIMITS, memory=memory))
    return (
        _some(chance, dataclasses.replace(DEFAULT_MATCHING_LIMITS, join=join)),
        _some(chance, dataclasses.replace(DEFAULT_SHARD_LIMITS, shard=join)),
    )


def _some(chance: random.Random, usual: Limits) -> Limits:
    choices: dict[str, Any] = {
        name: chance.choice([*tiny, getattr(usual, name)])
        for name, tiny in CHOICES[type(usual)].items()
    }
    return dataclasses.replace(usual, **choices)
