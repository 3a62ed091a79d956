"""Words of a text, and sets of them: section 10 of the language.

A text is brought to NFKC and case-folded.  A **word** is a maximal run of letters, marks and digits
(Unicode L, M, N).  Scripts without spaces have no such words: a stretch of Han, Hiragana, Katakana,
Thai, Lao, Khmer or Myanmar in a run is cut into its overlapping pairs of characters, and a single
character is itself.  Marks that belong to no script of their own go with the character before.

What is a letter is what this Python's Unicode says.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import pairwise

__all__ = ["is_unspaced", "shingles", "word_sequence", "words"]

_ASCII_WORD = re.compile(r"[a-z0-9]+")

_UNSPACED = (
    "\u0e01-\u0e3a\u0e40-\u0e5b"  # Thai
    "\u0e81-\u0edf"  # Lao
    "\u1000-\u109f\ua9e0-\ua9fe\uaa60-\uaa7f"  # Myanmar
    "\u1780-\u17dd\u17e0-\u17e9\u17f0-\u17f9\u19e0-\u19ff"  # Khmer
    "\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufad9"
    "\U00016fe2\U00016fe3\U00016ff0\U00016ff1\U00020000-\U0003ffff"  # Han
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"
    "\U0001aff0-\U0001afff\U0001b000-\U0001b16f"  # Hiragana, Katakana
)
"""Ranges of scripts without spaces; U+3099, U+309A and U+30FC are of both kana."""

_MARKED = range(0x20000), range(0xE0000, 0xE1000)
"""Where marks are; to look at all characters would take a second."""


def word_sequence(text: str) -> list[str]:
    """Return the words of a text in order, repeated ones too.

    >>> word_sequence("Harbour: the HARBOUR's ship"), word_sequence("東京タワー 2026")
    (['harbour', 'the', 'harbour', 's', 'ship'], ['東京', '京タ', 'タワ', 'ワー', '2026'])
    """
    if text.isascii():
        return _ASCII_WORD.findall(text.lower())
    folded = unicodedata.normalize("NFKC", text).casefold().replace("_", " ")
    runs: list[str] = _runs().findall(folded)
    return [word for run in runs for word in ((run,) if run.isascii() else _cut(run))]


def words(text: str) -> frozenset[str]:
    """Return the set of words of a text."""
    return frozenset(word_sequence(text))


def shingles(text: str, length: int) -> frozenset[str]:
    """Return the runs of so many consecutive words of a text; of a shorter one, the whole.

    >>> sorted(shingles("a b c a b", 2)), shingles("a", 2), shingles("?", 2)
    (['a b', 'b c', 'c a'], frozenset({'a'}), frozenset())
    """
    found = word_sequence(text)
    if len(found) <= length:
        return frozenset([" ".join(found)] if found else [])
    return frozenset(map(" ".join, zip(*(found[i:] for i in range(length)), strict=False)))


def is_unspaced(character: str) -> bool:
    """Return whether a character is of a script without spaces."""
    return _unspaced().fullmatch(character) is not None


def _cut(run: str) -> list[str]:
    found: list[str] = []
    for piece in _pieces().finditer(run):
        text = piece[0]
        is_unspaced = piece.lastgroup == "unspaced" and len(text) > 1
        found += ["".join(pair) for pair in pairwise(text)] if is_unspaced else [text]
    return found


@cache
def _runs() -> re.Pattern[str]:
    # What is of \w and no underscore is a letter or a digit.
    return re.compile(rf"[\w{_marks()}]+")


@cache
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{_UNSPACED}]")


@cache
def _pieces() -> re.Pattern[str]:
    return re.compile(f"(?P<unspaced>[{_UNSPACED}][{_UNSPACED}{_marks()}]*)|[^{_UNSPACED}]+")


@cache
def _marks() -> str:
    """Return the marks (Unicode M), as ranges of a regular expression."""
    ranges: list[list[int]] = []
    for code in (each for plane in _MARKED for each in plane):
        if unicodedata.category(chr(code)).startswith("M"):
            if ranges and ranges[-1][1] == code - 1:
                ranges[-1][1] = code
            else:
                ranges.append([code, code])
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)
