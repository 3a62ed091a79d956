"""A document behind matches, and the fragments that it puts into their lines and ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from json.encoder import encode_basestring, encode_basestring_ascii
from typing import NamedTuple

import pyarrow as pa

from broker.documents.document import render_time

__all__ = ["Leaf"]

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
        """Yield documents, given as rows of `INSTANCE_SCHEMA`, under numbers in their order."""
        columns = [rows.column(name).to_pylist() for name in _READ]
        for number, (docid, depth, match_id, stream, key, watermark_us, end_us) in zip(
            numbers, zip(*columns, strict=True), strict=True
        ):
            line = (
                f'{{"docid": {docid}, "stream": {encode_basestring(stream)},'
                f' "key": {encode_basestring(key)}, "time": "{render_time(end_us)}"}}'
            )
            name = f"[{encode_basestring_ascii(stream)},{encode_basestring_ascii(key)}]"
            own = (docid, depth, match_id, stream, key, watermark_us, end_us)
            yield cls._make((number, *own, line, name))

    @staticmethod
    def columns(rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return rows of `INSTANCE_SCHEMA` with no more than what `read` reads."""
        return rows.select(list(_READ))

    @property
    def position(self) -> tuple[int, int, str]:
        """Where it stands among all instances."""
        return self.docid, self.depth, self.match_id
