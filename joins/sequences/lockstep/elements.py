"""Elements of chains as columns: one for each choice of nodes that rows of a stream make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from joins.memory.slots import Ints
from templates.chainprograms import ChainOperand
from templates.decision import TupleStream
from templates.elementnumbers import numbers_of

__all__ = ["ElementColumns", "KeyCodes", "read_elements"]

Doubles = npt.NDArray[np.float64]


class ElementColumns(NamedTuple):
    """Elements of one stream; `rows` are their first rows, `keys` None where one is missing.

    `extents` are for each the least and largest docid behind it, its depth and its document.
    `positions` are None where no document is published.
    """

    rows: Ints
    documents: Ints
    docids: Ints
    starts_us: Ints
    ends_us: Ints
    watermarks_us: Ints
    keys: Ints
    values: Doubles
    extents: Ints
    positions: list[tuple[int, int, str]] | None


class KeyCodes:
    """Numbers of keys, in the order in which they came; 0 is the key without values."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, ...], int] = {(): 0}

    def __len__(self) -> int:
        return len(self._codes)

    def keep(self, used: Ints) -> Ints:
        """Forget the keys but those with some codes, and number these anew; return their numbers.

        The key without values stays.  The number of a key that is forgotten is -1.
        """
        into = np.full(len(self._codes), -1)
        kept = np.union1d(used, 0)
        into[kept] = np.arange(len(kept))
        self._codes = {key: int(into[code]) for key, code in self._codes.items() if into[code] >= 0}
        return into

    def of(self, columns: Sequence[pa.Array], size: int, *, may_be_empty: bool) -> Ints:
        """Return the codes of the keys of so many rows; -1 where an element has no key."""
        if not columns:
            return np.zeros(size, np.int64)
        encoded = [column.dictionary_encode() for column in columns]
        indices = np.stack([each.indices.to_numpy() for each in encoded], axis=1)
        if len(encoded) == 1:
            distinct, inverse = np.arange(len(encoded[0].dictionary))[:, None], indices[:, 0]
        else:
            distinct, inverse = np.unique(indices, axis=0, return_inverse=True)
        texts = [each.dictionary.to_pylist() for each in encoded]
        codes = np.empty(len(distinct), np.int64)
        for i, choice in enumerate(distinct.tolist()):
            key = tuple([own[at] for own, at in zip(texts, choice, strict=True)])
            is_key = may_be_empty or all(key)
            codes[i] = self._codes.setdefault(key, len(self._codes)) if is_key else -1
        found: Ints = codes[inverse.reshape(-1)]
        return found


def read_elements(
    stream: TupleStream,
    keys: Sequence[str],
    operands: Sequence[ChainOperand],
    rows: pa.Table,
    codes: KeyCodes,
    *,
    are_documents: bool,
) -> ElementColumns:
    """Return the elements that rows of a stream are; `operands` are numbers of an element."""
    batch = rows.combine_chunks()
    documents = batch.column("leaves").combine_chunks().flatten().to_numpy()
    first = _first_rows(stream, batch, documents)
    if len(first) < batch.num_rows:
        batch, documents = batch.take(pa.array(first)), documents[first]
    column_of = _values_of(stream, batch)

    def ints(name: str) -> Ints:
        found: Ints = batch.column(name).to_numpy().astype(np.int64, copy=False)
        return found

    values = np.empty((len(first), len(operands)))
    for i, operand in enumerate(operands):
        values[:, i] = numbers_of(operand, column_of)
    positions = None
    if ints("depth").any():
        names = ("docid", "depth", "match_id")
        positions = list(zip(*(batch.column(name).to_pylist() for name in names), strict=True))
    return ElementColumns(
        first,
        documents,
        ints("docid"),
        ints("start_us"),
        ints("end_us"),
        ints("watermark_us"),
        codes.of([column_of(key) for key in keys], len(first), may_be_empty=are_documents),
        values,
        np.stack([ints("docid_min"), ints("docid_max"), ints("depth"), documents], axis=1),
        positions,
    )


def _first_rows(stream: TupleStream, batch: pa.Table, documents: Ints) -> Ints:
    """Return the first row of each tuple: of each choice of nodes of a document."""
    if len(documents) < 2 or (np.diff(documents) > 0).all():
        return np.arange(len(documents))
    nodes = batch.column("nodes").combine_chunks()
    chosen = [
        pc.list_element(nodes, 1 + stream.terms.index(term)).to_numpy(zero_copy_only=False)
        for term in stream.chosen
    ]
    parts = np.stack([documents, *chosen], axis=1)
    _, first = np.unique(parts, axis=0, return_index=True)
    return np.sort(first)


def _values_of(stream: TupleStream, batch: pa.Table) -> Callable[[str], pa.Array]:
    values: pa.Array = batch.column("vals").combine_chunks()
    return lambda name: pc.list_element(values, 1 + stream.terms.index(name))
