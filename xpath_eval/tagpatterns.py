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

Where texts have a say in what is found, a pattern has the texts of all elements without children,
and the questions are asked of these (`KnownTexts`).  A document of which more is asked is parsed
after all, and no pattern is made of one like it.

Invariant: witnesses are those that the parser's tree gives.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from lxml import etree

from xpath_eval.parsing import parse_elements
from xpath_eval.shape import Shape, ShapeCollector, Witnesses
from xpath_eval.structure import NodeTree, Structure

__all__ = ["KnownStructure", "KnownTexts", "TagPatterns"]

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


class KnownTexts(NodeTree):
    """A document of known tags: `texts` are those of its elements without children.

    `places` say by element where each text stands.  It is parsed where more is asked.
    """

    __slots__ = ("_known", "_parsed", "_places", "_xml")

    def __init__(self, xml: bytes, texts: Sequence[str], places: Mapping[int, int]) -> None:
        self._xml = xml
        self._known = texts
        self._places = places
        self._parsed: list[etree._Element] | None = None
        self.revision = 0

    @property
    def is_parsed(self) -> bool:
        """Whether more was asked than its texts."""
        return self._parsed is not None

    @property
    def elements(self) -> list[etree._Element]:  # type: ignore[override]
        """The elements, for which it is parsed."""
        if self._parsed is None:
            self._parsed = parse_elements(self._xml)
        return self._parsed

    def texts(self, leaves: Sequence[int]) -> list[str]:
        """Return the texts of elements without children."""
        known, places = self._known, self._places
        return [known[places[leaf]] for leaf in leaves]

    def values(self, leaves: Sequence[int]) -> list[str | None]:
        """Return the texts of elements without children, None in the places of -1."""
        known, places = self._known, self._places
        return [known[places[leaf]] if leaf >= 0 else None for leaf in leaves]

    def value(self, structure: Structure, node: int) -> str:
        """Return the string value of a node."""
        place = self._places.get(node)
        return super().value(structure, node) if place is None else self._known[place]


Raw = TypeVar("Raw")


class KnownStructure(NamedTuple, Generic[Raw]):
    """A document whose texts have a say in what is found, and what is known of its structure."""

    raw: Raw
    tree: KnownTexts


class _Gathered(NamedTuple):
    """What is found in documents like one whose groups are the values of a shape's nodes."""

    shape: Shape
    nodes: tuple[int, ...]


class _AskedOf(NamedTuple, Generic[Raw]):
    """What is asked of documents whose groups are the texts of elements, by their places."""

    raw: Raw
    places: Mapping[int, int]


class _TagPattern(NamedTuple, Generic[Raw]):
    """A pattern by its `fullmatch`, and what is known of documents like it."""

    matched: Callable[[str], re.Match[str] | None]
    known: _Gathered | _AskedOf[Raw]


class _OfStream(Generic[Raw]):
    """The patterns of a stream, and how often in a row all failed.

    One that matches goes before its neighbour, so those that match most are tried first.
    """

    def __init__(self) -> None:
        self.patterns: list[_TagPattern[Raw]] = []
        self.misses = 0


class TagPatterns(Generic[Raw]):
    """The patterns of the documents of one plan, by stream and whether they were published."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, bool], _OfStream[Raw]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def clear(self) -> None:
        """Forget all."""
        self._of.clear()
        self._count = 0

    def read(
        self, stream: str, xml: bytes, *, is_published: bool
    ) -> Witnesses | KnownStructure[Raw] | None:
        """Return the witnesses of a document of known tags and plain texts, else None.

        Where its texts have a say in these, return what they are found by.
        """
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
        for at, (matched, known) in enumerate(patterns):
            found = matched(text)
            if found is not None:
                own.misses = 0
                if at:
                    patterns[at], patterns[at - 1] = patterns[at - 1], patterns[at]
                values = found.groups()
                if has_references:
                    values = tuple(map(_resolved, values))
                if isinstance(known, _Gathered):
                    return _as_tuple(Witnesses, (*known, values))
                return KnownStructure(known.raw, KnownTexts(xml, values, known.places))
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
        if not gathering.others:
            known = _Gathered(gathering.shape, gathering.nodes)
            self._put(stream, xml, gathering.leaves, known, is_published)

    def learn_asked(
        self, stream: str, xml: bytes, raw: Raw, leaves: Sequence[int], *, is_published: bool
    ) -> None:
        """Make a pattern of a document that has been parsed, of whose texts something is asked.

        `leaves` are all its elements without children; the texts of these are all that is asked of
        documents of its structure, of which `raw` is known.
        """
        known = _AskedOf(raw, {leaf: i for i, leaf in enumerate(leaves)})
        self._put(stream, xml, leaves, known, is_published)

    def _put(
        self,
        stream: str,
        xml: bytes,
        leaves: Sequence[int],
        known: _Gathered | _AskedOf[Raw],
        is_published: bool,
    ) -> None:
        if not _is_plain(xml) or b"<!" in xml or b"<?" in xml:
            return
        try:
            spelled = _pattern(xml.decode(), leaves)
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
        own.patterns.append(_TagPattern(re.compile(spelled).fullmatch, known))
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
