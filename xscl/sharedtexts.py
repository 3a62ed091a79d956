"""Texts of documents that many values have in common, by names.

A value that goes on in such a text says its name, and the text stands once, beside the values of
the document.  Who reads these holds the texts, and finds them by their names meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from threading import Lock
from weakref import WeakValueDictionary

__all__ = ["SHARED", "SharedText", "held", "name_of", "shared_text"]

SHARED = -2
"""What stands for the number of a node where a text is none."""


class SharedText:
    """A text that is found by its name for as long as somebody holds it."""

    __slots__ = ("__weakref__", "text")

    def __init__(self, text: str) -> None:
        self.text = text


_HELD: WeakValueDictionary[str, SharedText] = WeakValueDictionary()

_HOLDING = Lock()
"""Two threads that read one document hold one text: else it would go with the first of them."""


def name_of(text: str) -> str:
    """Return the name of a text; nobody can write two that have one."""
    return blake2b(text.encode(), digest_size=16).hexdigest()


def held(texts: Iterable[str]) -> tuple[SharedText, ...]:
    """Return texts to be held, and found meanwhile."""
    with _HOLDING:
        return tuple([_HELD.setdefault(name_of(text), SharedText(text)) for text in texts])


def shared_text(name: str) -> str:
    """Return the text of a name, which somebody holds."""
    return _HELD[name].text
