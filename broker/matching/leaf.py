"""A document behind matches, and the fragments that it puts into their lines and ids."""

from __future__ import annotations

from dataclasses import dataclass
from json.encoder import encode_basestring, encode_basestring_ascii

from broker.documents.document import render_time
from joins import Instance

__all__ = ["Leaf"]


@dataclass(frozen=True, slots=True)
class Leaf:
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
    line: str
    id: str

    @classmethod
    def of(cls, document: Instance) -> Leaf:
        """Return a document as a leaf."""
        stream, key = document.stream, document.key
        line = (
            f'{{"docid": {document.docid}, "stream": {encode_basestring(stream)},'
            f' "key": {encode_basestring(key)}, "time": "{render_time(document.end_us)}"}}'
        )
        return cls(
            document.instance,
            document.docid,
            document.depth,
            document.match_id,
            stream,
            key,
            document.watermark_us,
            line,
            f"[{encode_basestring_ascii(stream)},{encode_basestring_ascii(key)}]",
        )

    @property
    def position(self) -> tuple[int, int, str]:
        """Where it stands among all instances."""
        return self.docid, self.depth, self.match_id
