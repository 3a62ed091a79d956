"""Elements of chains as columns: one for each choice of nodes that rows of a stream make.

A chain of many units reads as many streams, so what can be is made of the rows of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby, islice
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from joins.memory.slots import Ints
from joins.sequences.lockstep.batchrows import BatchRows
from joins.sequences.lockstep.charges import LISTED, charges_of
from templates.chainoperands import ChainOperand, TextOf
from templates.decision import TupleStream
from templates.elementnumbers import END, numbers_of

__all__ = ["ElementColumns", "ElementRead", "KeyCodes", "TextCodes", "read_elements"]

Doubles = npt.NDArray[np.float64]


class ElementRead(NamedTuple):
    """What rows of a stream are read as: elements of a source, or documents of the chain's streams.

    `operands` are numbers of an element, and `keys` terms, those of its stream the last of them.
    Runs that begin with one say the values of `data`; a negative source is of documents.
    """

    source: int
    stream: TupleStream
    keys: Sequence[str]
    data: Sequence[str]
    operands: Sequence[ChainOperand]
    is_repeated: bool

    @property
    def are_documents(self) -> bool:
        """Whether all documents of a stream are read, whatever is in them."""
        return self.source < 0


class ElementColumns(NamedTuple):
    """Elements that came in a batch; `rows` are their first rows, `keys` -1 where one is missing.

    `extents` are for each the least and largest docid behind it, its depth and its document; `data`
    stand for what runs say that begin with it.
    `positions` are None where no document is published, and `charges` are `LISTED` of all where
    they are not asked for.
    """

    sources: Ints
    rows: Ints
    documents: Ints
    docids: Ints
    starts_us: Ints
    ends_us: Ints
    watermarks_us: Ints
    keys: Ints
    data: Ints
    values: Doubles
    extents: Ints
    positions: list[tuple[int, int, str]] | None
    charges: Ints


class KeyCodes:
    """Numbers of keys, in the order in which they came; 0 is the key without values."""

    def __init__(self) -> None:
        self._codes: dict[tuple[str, ...], int] = {(): 0}
        self._sizes = [0]

    def __len__(self) -> int:
        return len(self._codes)

    @property
    def sizes(self) -> Ints:
        """The bytes of each key."""
        new = islice(self._codes, len(self._sizes), None)
        self._sizes += [sum([len((text or "").encode()) for text in key]) for key in new]
        return np.array(self._sizes, np.int64)

    def keep(self, used: Ints) -> Ints:
        """Forget the keys but those with some codes, and number these anew; return their numbers.

        The key without values stays.  The number of a key that is forgotten is -1.
        """
        into = np.full(len(self._codes), -1)
        kept = np.union1d(used, 0)
        into[kept] = np.arange(len(kept))
        self._sizes = [0]
        self._codes = {key: int(into[code]) for key, code in self._codes.items() if into[code] >= 0}
        return into

    def of(self, columns: Sequence[pa.Array], size: int, needed: int) -> Ints:
        """Return the codes of the keys of so many rows; -1 where one of those `needed` is empty.

        These are the first of them.
        """
        if not columns:
            return np.zeros(size, np.int64)
        encoded = [column.dictionary_encode() for column in columns]
        indices = np.stack([each.indices.to_numpy() for each in encoded], axis=1)
        if len(encoded) == 1:
            distinct, inverse = np.arange(len(encoded[0].dictionary))[:, None], indices[:, 0]
        else:
            distinct, inverse = np.unique(indices, axis=0, return_inverse=True)
        texts = [
            each.dictionary.take(pa.array(own)).to_pylist()
            for each, own in zip(encoded, distinct.T, strict=True)
        ]
        known = self._codes
        codes = [
            known.setdefault(key, len(known)) if all(key[:needed]) else -1
            for key in zip(*texts, strict=True)
        ]
        found: Ints = np.array(codes, np.int64)[inverse.reshape(-1)]
        return found


class TextCodes:
    """Numbers of texts that are compared: of equal ones the same."""

    def __init__(self) -> None:
        self._codes: dict[str, int] = {}
        self._constants: dict[str, int] = {}
        self._next = 0

    def __len__(self) -> int:
        return len(self._codes) + len(self._constants)

    def constant(self, text: str) -> int:
        """Return the number of a text that a statement has, which is never forgotten."""
        if text not in self._constants:
            self._constants[text] = self._codes.pop(text, 0) or self._another()
        return self._constants[text]

    def _another(self) -> int:
        self._next += 1
        return self._next

    def of(self, texts: pa.Array) -> Doubles:
        """Return the numbers of some texts; NaN where there is none."""
        encoded = texts.dictionary_encode()
        codes = np.array([*map(self._of, encoded.dictionary.to_pylist()), math.nan])
        found: Doubles = codes[encoded.indices.fill_null(len(codes) - 1).to_numpy()]
        return found

    def _of(self, text: str) -> int:
        code = self._constants.get(text)
        if code is None:
            code = self._codes.get(text)
        if code is None:
            code = self._codes[text] = self._another()
        return code

    def keep(self, used: Doubles) -> None:
        """Forget the texts of elements but those with some numbers; these stay as they are.

        A number is not given again, so nobody has that of a text that comes anew.
        """
        kept = set(used.tolist())
        self._codes = {text: code for text, code in self._codes.items() if code in kept}


def read_elements(
    reads_of: Mapping[str, Sequence[ElementRead]],
    rows: BatchRows,
    codes: KeyCodes,
    codes_of_data: KeyCodes,
    texts: TextCodes,
    *,
    are_charged: bool = False,
) -> ElementColumns | None:
    """Return the elements that rows of a batch are, read by read; None if there are none.

    `reads_of` has what the rows of each stream are read as.
    """
    reads = [read for stream in rows.streams for read in reads_of.get(stream, ())]
    if not reads:
        return None
    # Documents come last.
    reads.sort(key=lambda read: (read.are_documents, abs(read.source)))
    found = [(read, rows.first_rows(read.stream)) for read in reads]
    first = np.concatenate([own for _, own in found])
    at = np.cumsum([0, *(len(own) for _, own in found)])
    values = np.empty((len(first), max(len(read.operands) for read, _ in found)))
    for (read, _), start, stop in zip(found, at, at[1:], strict=False):
        column_of = partial(_column, rows, read.stream)
        for k, operand in enumerate(read.operands):
            if isinstance(operand, TextOf):
                values[start:stop, k] = texts.of(column_of(operand.variable))
            else:
                key = "numbers", *read.stream.told_apart, operand
                values[start:stop, k] = rows.once(key, partial(numbers_of, operand, column_of))
    sources = np.repeat([read.source for read, _ in found], np.diff(at))
    names = "docid", "start_us", "end_us", "watermark_us", "docid_min", "docid_max", "depth"
    docids, starts_us, ends_us, watermarks_us, oldest, newest, depths = (
        rows.ints(name)[first] for name in names
    )
    documents = rows.documents[first]
    positions = None
    if depths.any():
        ids = rows.table.column("match_id").take(pa.array(first)).to_pylist()
        positions = list(zip(docids.tolist(), depths.tolist(), ids, strict=True))
    extents = np.stack([oldest, newest, depths, documents], axis=1)
    times = starts_us, ends_us, watermarks_us
    keys = _codes_of([(read, read.keys) for read, _ in found], rows, codes)
    data = _codes_of([(read, read.data) for read, _ in found], rows, codes_of_data)
    charges = np.full(len(first), LISTED)
    for (read, _), start, stop in zip(found if are_charged else (), at, at[1:], strict=False):
        if not read.are_documents:
            charges[start:stop] = charges_of(read.stream, rows, is_repeated=read.is_repeated)
    return ElementColumns(
        sources, first, documents, docids, *times, keys, data, values, extents, positions, charges
    )


def _column(rows: BatchRows, stream: TupleStream, name: str) -> pa.Array:
    """Return the values of a term of elements, or when they end."""
    if name == END:
        return pa.array(rows.ints("end_us")[rows.first_rows(stream)])
    return rows.first_values(stream, name)


def _codes_of(
    found: Iterable[tuple[ElementRead, Sequence[str]]], rows: BatchRows, codes: KeyCodes
) -> Ints:
    """Return the codes of the values of terms of elements, and of documents, read by read.

    -1 stands for one of which a key that is no datum is empty.
    """
    values: list[Ints] = []
    for (are_documents, _), reads in groupby(found, lambda e: (e[0].are_documents, len(e[1]))):
        some = list(reads)
        columns = [
            pa.concat_arrays(
                [
                    rows.first_values(read.stream, term)
                    for (read, _), term in zip(some, terms, strict=True)
                ]
            )
            for terms in zip(*(terms for _, terms in some), strict=True)
        ]
        size = sum(len(rows.first_rows(read.stream)) for read, _ in some)
        [needed] = {0 if are_documents else _needed(read, terms) for read, terms in some}
        values.append(codes.of(columns, size, needed))
    return np.concatenate(values)


def _needed(read: ElementRead, terms: Sequence[str]) -> int:
    """Return how many of the terms of elements, the first ones, must not be empty."""
    return sum(term not in read.stream.keys for term in terms)
