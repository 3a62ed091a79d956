"""The keys of documents, unique in their streams: the publisher's, else the docid.

The k-th document with a publisher's key has `key#k`.  So two documents could be called alike: the
second one of `a` and the one that its publisher calls `a#2`; document 7, without a publisher's key,
and the one that its publisher calls `7`.  A key that an earlier document has is passed over for the
next `key#k`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["LIKE_DOCID", "docid_of", "document_key", "is_like_another", "readings"]

LIKE_DOCID = r"^[1-9][0-9]{0,17}(#[1-9][0-9]*)?$"
"""What the keys of documents without a publisher's key match."""

_DOCID = re.compile(r"[1-9][0-9]{0,17}")
_LIKE_ANOTHER = re.compile(r"(.*#)?[1-9][0-9]*", re.DOTALL)


def document_key(publisher_key: str | None, docid: int, revision: int) -> str:
    """Return a document's key: the publisher's, else the docid; `key#k` for its k-th.

    >>> document_key("a", 7, 0), document_key("a", 8, 1), document_key(None, 9, 0)
    ('a', 'a#2', '9')
    """
    key = str(docid) if publisher_key is None else publisher_key
    return f"{key}#{revision + 1}" if revision else key


def is_like_another(publisher_key: str) -> bool:
    """Return whether a document may have this key that got another, or none, from its publisher.

    >>> [is_like_another(key) for key in ("a", "a#2", "7", "#b")]
    [False, True, True, False]
    """
    return _LIKE_ANOTHER.fullmatch(publisher_key) is not None


def readings(key: str) -> Iterator[tuple[str, int]]:
    """Yield (publisher's key or docid, revision) of the documents that could have a key.

    >>> list(readings("a#2")), list(readings("a#1"))
    ([('a#2', 0), ('a', 1)], [('a#1', 0)])
    """
    yield key, 0
    name, mark, ordinal = key.rpartition("#")
    number = docid_of(ordinal) if mark else None
    if number is not None and number > 1:
        yield name, number - 1


def docid_of(key: str) -> int | None:
    """Return the docid that a key is, None if it is none.

    >>> docid_of("7"), docid_of("07"), docid_of("7#2")
    (7, None, None)
    """
    return int(key) if _DOCID.fullmatch(key) else None
