"""The documents that queries have published: held for as long as other queries can join them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from operator import attrgetter

from broker.documents.document import Document
from broker.matching.rendering.leaf import Leaf

__all__ = ["Publications", "published_document"]


class Publications:
    """Published documents by stream and key; useless ones are looked for among `held_min`."""

    def __init__(self, held_min: int) -> None:
        self._held_min = held_min
        self._held: dict[tuple[str, str], Document] = {}
        self._held_max = held_min

    def add(self, documents: Iterable[Document]) -> None:
        """Hold documents."""
        self._held.update({(document.stream, document.key): document for document in documents})

    def has(self, stream: str, match_id: str) -> bool:
        """Return whether a match has been published."""
        return (stream, match_id) in self._held

    def xml(self, stream: str, key: str) -> bytes:
        """Return the text of a document."""
        return self._held[stream, key].xml

    def forget(self, horizon_us: int, kept_us: Callable[[Set[str]], Mapping[str, int]]) -> None:
        """Forget documents that no query can join any more, once enough are held.

        `kept_us` returns, by stream, for how long behind the horizon documents are joined.
        """
        if len(self._held) <= self._held_max:
            return
        kept = kept_us({stream for stream, _ in self._held})
        self._held = {
            (stream, key): document
            for (stream, key), document in self._held.items()
            if document.end_us >= horizon_us - kept[stream]
        }
        self._held_max = max(self._held_min, 2 * len(self._held))


def published_document(
    stream: str, match_id: str, interval: tuple[int, int], output: str, behind: Sequence[Leaf]
) -> Document:
    """Return a match's output as a document of the stream that its query publishes."""
    newest = max(behind, key=attrgetter("position"))
    start_us, end_us = interval
    return Document(
        docid=newest.docid,
        stream=stream,
        key=match_id,
        start_us=start_us,
        end_us=end_us,
        arrival_us=end_us,
        watermark_us=newest.watermark_us,
        xml=output.encode(),
        depth=1 + max(leaf.depth for leaf in behind),
        match_id=match_id,
    )
