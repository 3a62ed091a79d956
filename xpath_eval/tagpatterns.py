"""Documents whose tags have been read before, read by a regular expression instead of a parser.

Documents of one feed are written by one program: they have the same tags, in the same order, and
different texts between them.  Where a parser has read some of them, the next one is well-formed if
it has those tags and its texts are such that no parser could mind them.  Then its elements and
their texts are where they were, and to find the texts that are wanted takes an eighth of the time.

Why that is exact.  A pattern is made of a document D that a parser has read and that has nothing
but elements and text: all its tags as they stand there, but for values of attributes in double
quotes, without a prefix, and between them anything but `<`.  A document that matches as a whole is

    the tags of D, each value of an attribute without `<`, `&`, `"`, tab and line end;
    between them texts without `<`, `]]>`, control characters but for tab and line feed, and
    references other than the five that XML has

so it is well-formed as D is, and has the structure of D: names, order, attributes, namespaces.  The
text of an element without children is what stands between its tags, its references resolved.
Sizes that a parser minds are out of reach (`_BYTES_MAX`).  What does not match is for the parser.

Invariant: witnesses are those that the parser's tree gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from xpath_eval.shape import Shape, ShapeCollector, Witnesses

__all__ = ["TagPatterns"]

_BYTES_MAX = 64 << 10
"""Larger documents are parsed: no limit of the parser is near, and news items have 1 KB."""

_TAGS_MAX = 200
"""A pattern is compiled in some 20 µs for each tag."""

_PATTERNS_MAX = 500
_OF_STREAM_MAX = 8
"""Patterns of a stream, which are tried one after the other: to fail takes half a microsecond."""

_MISSES_MAX = 50
"""So often in a row a stream's patterns may fail before they are dropped."""

_FORBIDDEN = bytes([each for each in range(32) if each not in b"\t\n"])

_TAG = re.compile(r"""<(?:[^<>"']|"[^"<]*"|'[^'<]*')*+>""")
_ATTRIBUTE = re.compile(r'(\s+([^\s=<>"/]+)\s*=\s*")[^"]*"')

_VALUE = r'[^<&"\t\n]*+"'
_TEXT = "[^<]*+"
_NOTHING = "((?!))?"
"""A group that matches nothing, whose value is None."""


_as_tuple = tuple.__new__
"""Makes a named tuple of its fields without a call of Python."""


class _TagPattern(NamedTuple):
    """A pattern whose groups are the values of a shape's nodes, by its `fullmatch`."""

    matched: Callable[[str], re.Match[str] | None]
    shape: Shape
    nodes: tuple[int, ...]


class _OfStream:
    """The patterns of a stream, and how often in a row all failed.

    One that matches goes before its neighbour, so those that match most are tried first.
    """

    def __init__(self) -> None:
        self.patterns: list[_TagPattern] = []
        self.misses = 0


class TagPatterns:
    """The patterns of the documents of one plan, by stream and whether they were published."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, bool], _OfStream] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        """Forget all."""
        self._of.clear()
        self._count = 0

    def read(self, stream: str, xml: bytes, *, is_published: bool) -> Witnesses | None:
        """Return the witnesses of a document of known tags and plain texts, else None."""
        own = self._of.get((stream, is_published))
        if own is None or not _is_plain(xml):
            return None
        has_references = b"&" in xml
        if has_references and not _has_known_references(xml):
            return None
        try:
            text = xml.decode()
        except UnicodeDecodeError:
            return None
        patterns = own.patterns
        for at, (matched, shape, nodes) in enumerate(patterns):
            found = matched(text)
            if found is not None:
                own.misses = 0
                if at:
                    patterns[at], patterns[at - 1] = patterns[at - 1], patterns[at]
                values = found.groups()
                if has_references:
                    values = tuple(map(_resolved, values))
                return _as_tuple(Witnesses, (shape, nodes, values))
        own.misses += 1
        if own.misses > _MISSES_MAX:
            self._count -= len(patterns)
            del self._of[stream, is_published]
        return None

    def learn(
        self, stream: str, xml: bytes, gathering: ShapeCollector, *, is_published: bool
    ) -> None:
        """Make a pattern of a document that has been parsed, if one can be made of it.

        Structure alone decides how every document like it is gathered.
        """
        if gathering.others or not _is_plain(xml) or b"<!" in xml or b"<?" in xml:
            return
        try:
            spelled = _pattern(xml.decode(), gathering.leaves)
        except UnicodeDecodeError:
            return
        if spelled is None:
            return
        if self._count >= _PATTERNS_MAX:
            self.clear()
        own = self._of.setdefault((stream, is_published), _OfStream())
        before = len(own.patterns)
        # Those at the end match least, if they match at all.
        del own.patterns[_OF_STREAM_MAX - 1 :]
        matched = re.compile(spelled).fullmatch
        own.patterns.append(_TagPattern(matched, gathering.shape, gathering.nodes))
        own.misses = 0
        self._count += len(own.patterns) - before


def _is_plain(xml: bytes) -> bool:
    """Return whether a document has no character that is more, or less, than a character."""
    size = len(xml)
    return (
        size <= _BYTES_MAX
        # One byte is looked for ten times as fast as two.
        and not (b"]" in xml and b"]]>" in xml)
        # U+FFFE and U+FFFF are no characters of XML; a few others begin alike.
        and not (b"\xef" in xml and b"\xef\xbf" in xml)
        # To look for any of them takes four times as long as to leave all of them out.
        and len(xml.translate(None, _FORBIDDEN)) == size
    )


def _has_known_references(xml: bytes) -> bool:
    """Return whether all references of a document are to what XML itself defines."""
    known = (b"&amp;", b"&lt;", b"&gt;", b"&quot;", b"&apos;")
    return xml.count(b"&") == sum([xml.count(each) for each in known])


def _resolved(value: str | None) -> str | None:
    """Return a text with its references resolved."""
    if value is None or "&" not in value:
        return value
    for name, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'")):
        value = value.replace(name, character)
    return value.replace("&amp;", "&")


def _pattern(text: str, leaves: Sequence[int]) -> str | None:
    """Return the pattern of documents like one, with a group for each node's value.

    `leaves` are the elements whose texts are the values, ascending, and -1 where there is none.
    """
    tags: list[str] = _TAG.findall(text)
    wanted = [each for each in leaves if each >= 0]
    if len(tags) > _TAGS_MAX or len(leaves) > _TAGS_MAX or wanted != sorted(wanted):
        return None
    parts: list[str] = []
    waiting = list(leaves)
    element = -1
    for i, tag in enumerate(tags):
        parts.append("".join(_spelled(tag)))
        element += not tag.startswith("</")
        while waiting and waiting[0] < 0:
            parts.append(_NOTHING)
            del waiting[0]
        is_wanted = bool(waiting) and waiting[0] == element and not tag.startswith("</")
        if is_wanted:
            del waiting[0]
            if tag.endswith("/>"):
                parts.append("()")
                is_wanted = False
        if i < len(tags) - 1:
            parts.append(f"({_TEXT})" if is_wanted else _TEXT)
    parts += [_NOTHING] * len(waiting)
    return "".join(parts)


def _spelled(tag: str) -> Iterator[str]:
    """Yield the pattern of a tag: itself, but for values of attributes that may be any."""
    at = len(tag) if "'" in tag else re.match(r"</?[^\s/>]*", tag).end()  # type: ignore[union-attr]
    yield re.escape(tag[:at])
    while found := _ATTRIBUTE.match(tag, at):
        name = found[2]
        is_own = ":" in name or name == "xmlns"  # Namespaces, and what XML defines.
        yield re.escape(found[0]) if is_own else re.escape(found[1]) + _VALUE
        at = found.end()
    yield re.escape(tag[at:])
