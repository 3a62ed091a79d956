"""How often each cache of stage 1 had the answer.

Evaluation runs in workers, so the counters travel with what they count: as metadata in the schema
of each batch of witnesses.  `witness_table` adds up those of the batches that it puts together.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from xpath_eval.witnesses import WITNESS_SCHEMA

__all__ = ["Counters", "counted", "counters_of", "witness_table"]

_KEY = b"xscl.counters"


@dataclass(slots=True)
class Counters:
    """A document hits or misses each cache once; evicted is what a bound has pushed out.

    `automaton_states` is not a count but the largest number that one evaluator has kept.
    """

    raw_shape_hits: int = 0
    raw_shape_misses: int = 0
    raw_shape_evictions: int = 0
    witness_shape_hits: int = 0
    witness_shape_misses: int = 0
    witness_shape_evictions: int = 0
    automaton_states: int = 0
    automaton_evictions: int = 0

    def counts(self) -> dict[str, int]:
        """Return the counters by name."""
        return {name: getattr(self, name) for name in self.__slots__}

    def add(self, other: Counters) -> None:
        """Add another's counts; of the automata, the largest is kept."""
        states = max(self.automaton_states, other.automaton_states)
        for name, value in other.counts().items():
            setattr(self, name, getattr(self, name) + value)
        self.automaton_states = states

    def figures(self) -> dict[str, float]:
        """Return the counters by the names of their metrics."""
        gauge = "automaton_states"
        return {k if k == gauge else f"{k}_total": v for k, v in self.counts().items()}


def counted(batch: pa.RecordBatch, counters: Counters) -> pa.RecordBatch:
    """Return a batch of witnesses that carries the counters of its evaluation."""
    return batch.replace_schema_metadata({_KEY: json.dumps(counters.counts())})


def counters_of(witnesses: pa.Table | pa.RecordBatch) -> Counters:
    """Return the counters that witnesses carry; zeros if none."""
    content = (witnesses.schema.metadata or {}).get(_KEY)
    return Counters() if content is None else Counters(**json.loads(content))


def witness_table(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    """Put batches of witnesses together, counters included."""
    total, kept = Counters(), list(batches)
    for batch in kept:
        total.add(counters_of(batch))
    table = pa.Table.from_batches(kept, WITNESS_SCHEMA)
    return table.replace_schema_metadata({_KEY: json.dumps(total.counts())})
