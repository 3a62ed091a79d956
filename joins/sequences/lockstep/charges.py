"""What a tuple of a complete run is charged for each element, as columns: nothing is spelled.

A tuple has each run of a repetition as a text with a line for each element, as
`xscl.runvalues.Run.spell` writes it, and the values of the terms of plain units.

An element may be such that a complete run with it is no match by itself: another one of its step
has its document, or it was published.  Then it has `LISTED` instead.
"""

from __future__ import annotations

import json
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.memory.slots import Ints
from joins.sequences.lockstep.batchrows import BatchRows
from templates.decision import TupleStream, is_of_data

__all__ = ["LISTED", "OF_A_RUN", "charges_of"]

LISTED = -1
"""Stands for the charge of an element whose runs have to be listed."""

OF_A_RUN = len("{}")
"""The bytes of a run without elements: it has no values of FOLD."""

_AS_IT_IS = np.array(
    [len(json.dumps(chr(code))) == len('"a"') and code < 128 for code in range(256)], np.bool_
)
"""Which bytes JSON leaves as they are."""

_POWERS = 10 ** np.arange(1, 19)


def charges_of(stream: TupleStream, rows: BatchRows, *, is_repeated: bool) -> Ints:
    """Return the charges of elements, by their first rows."""
    key = "charges", *stream.told_apart, is_repeated
    return rows.once(key, partial(_charges, stream, rows, is_repeated))


def _charges(stream: TupleStream, rows: BatchRows, is_repeated: bool) -> Ints:
    own = rows.first_rows(stream)
    if is_repeated:
        charges = 1 + _lines(stream, rows, own)
    else:
        charges = np.zeros(len(own), np.int64)
        for term in stream.terms:
            values = rows.first_values(stream, term)
            charges += pc.binary_length(values).fill_null(0).to_numpy()
    docids = rows.ints("docid")[own]
    are_plain = rows.ints("depth")[own] == 0
    are_plain &= (rows.ints("docid_min")[own] == docids) & (rows.ints("docid_max")[own] == docids)
    if not rows.are_apart(stream.name):
        all_documents = rows.documents[rows.of(stream.name)]
        distinct, counts = np.unique(all_documents, return_counts=True)
        are_plain &= counts[np.searchsorted(distinct, rows.documents[own])] == 1
    return np.where(are_plain, charges, LISTED)


def _lines(stream: TupleStream, rows: BatchRows, own: Ints) -> Ints:
    """Return the lengths of elements as lines."""
    terms = [term for term in stream.terms if not is_of_data(term)]
    frame = json.dumps([stream.blocks[0], 0, 0, {name: [0, ""] for name in terms}])
    # But for the times, the nodes and the values.
    sizes = np.full(len(own), len(frame) - 2 - 3 * len(terms))
    sizes += _digits(rows.ints("start_us")[own]) + _digits(rows.ints("end_us")[own])
    for term in terms:
        sizes += _digits(rows.nodes(stream, own, term))
        sizes += _spelled(rows.first_values(stream, term))
    return sizes


def _digits(numbers: Ints) -> Ints:
    """Return how many characters whole numbers have."""
    found: Ints = 1 + np.searchsorted(_POWERS, np.abs(numbers), "right") + (numbers < 0)
    return found


def _spelled(values: pa.Array) -> Ints:
    """Return how many characters texts have in JSON."""
    is_there = values.is_valid().to_numpy(zero_copy_only=False)
    found: npt.NDArray[np.int64] = np.where(
        is_there, 2 + pc.binary_length(values).fill_null(0).to_numpy(), len("null")
    )
    buffer = values.buffers()[2]
    if buffer is None or _AS_IT_IS[np.frombuffer(buffer, np.uint8)].all():
        return found
    texts = values.to_pylist()
    return np.array([len(json.dumps(each)) for each in texts], np.int64)
