"""A small chain whose runs are stepped, so that all loops are called as they are called in earnest.

They are compiled by that, or read where they have been.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from joins.budget.limits import RunLimits
from joins.memory.instance import INSTANCE_SCHEMA
from joins.sequences.clock import WatermarkSteps
from joins.sequences.lockstep.batchrows import BatchRows
from joins.sequences.lockstep.columnchains import ColumnChainEvaluation
from joins.sequences.lockstep.runtable import RunTable
from templates.chainprograms import compile_chain
from templates.chainsample import sample_chain

__all__ = ["sample_row", "step_sample"]


def step_sample() -> int:
    """Step the runs of two small chains; return how many there are."""
    return _stepped(is_contiguous=False) + _stepped(is_contiguous=True)


def _stepped(*, is_contiguous: bool) -> int:
    decision = sample_chain(is_contiguous=is_contiguous)
    program = compile_chain(decision)
    assert program is not None
    table = RunTable(decision, program, 0, RunLimits(swept_parts=0))
    evaluation = ColumnChainEvaluation(decision, program, table)
    count = 0
    clock = WatermarkSteps()
    for docid in range(1, 5):
        clock = clock.next_batch()
        ones = np.array([docid])
        clock.advance(ones, ones - 1, ones)
        for stream in table.streams:
            table.absorb(BatchRows(sample_row(stream, docid)))
        count += len(evaluation.decide(clock))
        table.evict(0)
    return count


def sample_row(stream: str, docid: int) -> pa.Table:
    """Return a row of a stream of the sample: a document whose number is its time and its value."""
    row = {
        "stream": stream,
        "key": "",
        "docid": docid,
        "depth": 0,
        "match_id": "",
        "docid_min": docid,
        "docid_max": docid,
        "start_us": docid,
        "end_us": docid,
        "watermark_us": docid - 1,
        "shape": 0,
        "leaves": [docid],
        "nodes": [0, 0, 1],
        "vals": [None, None, str(docid)],
    }
    return pa.Table.from_pylist([row], pa.schema(list(INSTANCE_SCHEMA)[1:]))
