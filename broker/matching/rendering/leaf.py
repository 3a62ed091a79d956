"""A document behind matches, and the fragments that it puts into their lines and ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import repeat
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from broker.matching.rendering.times import render_times

__all__ = ["Leaf"]

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)

_READ = ("docid", "depth", "match_id", "stream", "key", "watermark_us", "end_us")


class Leaf(NamedTuple):
    """A document behind matches, without its values: what it is asked for, and its fragments.

    `instance` is its number in the join; `line` stands in match lines, `id` in what ids digest.
    """

    instance: int
    docid: int
    depth: int
    match_id: str
    stream: str
    key: str
    watermark_us: int
    end_us: int
    line: str
    id: str

    @classmethod
    def read(cls, numbers: Iterable[int], rows: pa.Table | pa.RecordBatch) -> Iterator[Leaf]:
        """Return documents, given as rows of `INSTANCE_SCHEMA`, under numbers in their order."""
        columns = [_listed(rows.column(name)) for name in _READ]
        docids, _, _, streams, keys, _, _ = columns
        named = {stream: encode_basestring(stream) for stream in {*streams}}
        begun = {stream: encode_basestring_ascii(stream) for stream in named}
        times = render_times(rows.column("end_us").to_numpy())
        lines = [
            f'{{"docid": {docid}, "stream": {named[stream]}, "key": {key}, "time": "{time}"}}'
            for docid, stream, key, time in zip(
                docids, streams, map(encode_basestring, keys), times, strict=True
            )
        ]
        ids = [
            f"[{begun[stream]},{key}]"
            for stream, key in zip(streams, map(encode_basestring_ascii, keys), strict=True)
        ]
        # `_make` is a call of Python for each.
        return map(tuple.__new__, repeat(cls), zip(numbers, *columns, lines, ids, strict=True))

    @staticmethod
    def columns(rows: Rows) -> Rows:
        """Return rows of `INSTANCE_SCHEMA` with no more than what `read` reads."""
        return rows.select(list(_READ))

    @property
    def position(self) -> tuple[int, int, str]:
        """Where it stands among all instances."""
        return self.docid, self.depth, self.match_id


def _listed(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    # Of numbers it takes a tenth of what `to_pylist` takes.
    is_number = pa.types.is_integer(column.type)
    values: list[Any] = column.to_numpy().tolist() if is_number else column.to_pylist()
    return values
