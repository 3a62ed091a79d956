"""Documents whose root is written as it was read: for a copy of it no tree is needed.

A serialiser has one way to write each thing, and a text that uses no other is its own
serialisation.  `is_verbatim` asks for little more than what feeds have: names without colons and
namespaces, attributes of ASCII in double quotes behind one space each, elements without content as
`<a/>`, the three references that a serialiser writes, and nothing but elements and text.

Of many documents at once it is asked in columns (`Verbatim`), of the same language written for an
automaton, which looks at each byte once.

Invariant: of a well-formed document for which it holds, `lxml.etree.tostring` of the root is the
document's text, and its elements are its start tags and empty tags.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

__all__ = ["Verbatim", "element_count", "is_verbatim"]

_Flags = npt.NDArray[np.bool_]
_Ints = npt.NDArray[np.int64]

_NAME = rb"[A-Za-z_][A-Za-z0-9_.-]*+"
_REFERENCE = rb"&(?:amp|lt|gt);"
_ATTRIBUTE = rb" (?!xmlns)" + _NAME + rb'="(?:[ !#-%\'-;=?-~]++|' + _REFERENCE + rb')*+"'
_TAG = rb"<" + _NAME + rb"(?:" + _ATTRIBUTE + rb")*+(?:/>|>(?!</))|</" + _NAME + rb">"
_VERBATIM = re.compile(rb"(?:" + _TAG + rb"|[^<>&\r]++|" + _REFERENCE + rb")*+")

_OF_ONE = r"&(?:amp|lt|gt);"
_BEHIND = "[A-Za-z0-9_.-]"
_NOT_XMLNS = (
    "(?:[A-Za-wyz_]B*|x(?:[A-Za-ln-z0-9_.-]B*)?|xm(?:[A-Za-km-z0-9_.-]B*)?"
    "|xml(?:[A-Za-mo-z0-9_.-]B*)?|xmln(?:[A-Za-rt-z0-9_.-]B*)?)"
).replace("B", _BEHIND)
_ATTRIBUTES = f'(?: {_NOT_XMLNS}="(?:[ !#-%\'-;=?-~]|{_OF_ONE})*")*'
_OPEN = f"<[A-Za-z_]{_BEHIND}*{_ATTRIBUTES}"
_CONTENT = rf"[^<>&\r]|{_OF_ONE}|{_OPEN}/>"
_END = f"</[A-Za-z_]{_BEHIND}*>"
_AUTOMATON = rf"\A(?:(?:{_OPEN}>)+(?:{_CONTENT})|{_CONTENT}|{_END})*(?:{_OPEN}>)*\z"
"""What `_VERBATIM` says, without looking ahead, for RE2."""

_FEW = 100
"""Fewer documents are looked at one by one: the automaton is made anew each time."""

_ESCAPED = b'"\\\n\t\r'
"""What JSON writes as several characters, of the characters that a document may have."""


def is_verbatim(xml: bytes) -> bool:
    """Return whether a well-formed document is sure to be written as it was read.

    >>> is_verbatim(b'<a b="c">d<e/></a>'), is_verbatim(b"<a b='c'>d<e></e></a>")
    (True, False)
    """
    return xml[:1] == b"<" and xml[-1:] == b">" and _VERBATIM.fullmatch(xml) is not None


def element_count(xml: bytes) -> int:
    """Return how many elements a document has that is written as it was read."""
    return xml.count(b"<") - xml.count(b"</")


@dataclass(frozen=True, slots=True)
class Verbatim:
    """What is asked of well-formed documents, each at its place.

    `are_verbatim` says which are sure to be written as they were read, `elements` how many elements
    each of these has, and `are_escaped` in which there is something that JSON escapes.
    """

    are_verbatim: _Flags
    elements: _Ints
    are_escaped: _Flags

    @classmethod
    def of(cls, texts: Sequence[bytes]) -> Verbatim:
        """Return this of documents, none of them empty."""
        if len(texts) < _FEW:
            return cls._one_by_one(texts)
        content = b"".join(texts)
        ends = np.cumsum([0, *map(len, texts)])
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(content)]
        array = pa.Array.from_buffers(pa.large_binary(), len(texts), buffers)
        flat = np.frombuffer(content, np.uint8)
        fit = pc.match_substring_regex(array, _AUTOMATON).to_numpy(zero_copy_only=False)
        fit &= (flat[ends[:-1]] == ord("<")) & (flat[ends[1:] - 1] == ord(">"))
        tags = np.flatnonzero(flat == ord("<"))
        # A document does not end with the first character of a tag.
        starts = tags[flat[np.minimum(tags + 1, len(flat) - 1)] != ord("/")]
        are_escaped = np.zeros(len(texts), np.bool_)
        for character in _ESCAPED:
            # Where there is none, to look for it is a tenth of holding each byte against it.
            if content.find(character) >= 0:
                are_escaped |= _counts(np.flatnonzero(flat == character), ends) > 0
        return cls(fit, _counts(starts, ends), are_escaped)

    @classmethod
    def _one_by_one(cls, texts: Sequence[bytes]) -> Verbatim:
        escaped = [any(each in text for each in _ESCAPED) for text in texts]
        elements = np.array([*map(element_count, texts)], np.int64)
        are_verbatim = np.array([*map(is_verbatim, texts)], np.bool_)
        return cls(are_verbatim, elements, np.array(escaped, np.bool_))


def _counts(places: _Ints, ends: _Ints) -> _Ints:
    """Return how many ascending places are from each end to the next one."""
    counts: _Ints = np.diff(np.searchsorted(places, ends))
    return counts
