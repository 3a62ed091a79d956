"""The names that recent documents have: of streams, and by stream of elements and attributes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable

from lxml import etree

from broker.documents.document import Document
from broker.documents.spool import Spool
from broker.documents.stored import newest_documents
from broker.documents.wellformed import root_of
from xscl.editing.completion import Vocabulary

__all__ = ["RecentNames", "vocabulary_of"]

_SAMPLE_MAX = 1_000
"""Newest documents that are read: 0.1 s of a processor."""

_RENEWED_AFTER = 1_000
"""Documents that may come before names are counted again."""

_BYTES_MAX = 100_000
"""Of a larger document names are not counted: it says no more than a small one, and costs more."""


class RecentNames:
    """Counts the names of a spool's newest documents, again when many have come.

    Safe for several threads.  The spool is for this object alone.
    """

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._lock = threading.Lock()
        self._counted_at = -1
        self._known = Vocabulary()

    def vocabulary(self) -> Vocabulary:
        """Return the names, as of a document not long ago."""
        with self._lock:
            self._spool.refresh()
            last = self._spool.last_docid
            is_early = last <= _RENEWED_AFTER and last != self._counted_at
            if is_early or last - self._counted_at > _RENEWED_AFTER:
                self._known = vocabulary_of(newest_documents(self._spool, _SAMPLE_MAX))
                self._counted_at = last
            return self._known


def vocabulary_of(documents: Iterable[Document]) -> Vocabulary:
    """Return in how many documents each name is; what has a namespace is named `*:name`."""
    streams: Counter[str] = Counter()
    names: dict[str, Counter[str]] = {}
    for document in documents:
        streams[document.stream] += 1
        if len(document.xml) <= _BYTES_MAX:
            names.setdefault(document.stream, Counter()).update(_names(document.xml))
    return Vocabulary(streams, names)


def _names(xml: bytes) -> set[str]:
    root, found = root_of(xml), set[str]()
    if root is None:
        return found
    for element in root.iter(etree.Element):
        found.add(_local(str(element.tag)))
        found |= {f"@{_local(str(name))}" for name in element.attrib}
    return found


def _local(name: str) -> str:
    return f"*:{name.rpartition('}')[2]}" if name.startswith("{") else name
