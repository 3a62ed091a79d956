"""Constructors whose values are looked up: fixed text, and between it what documents have.

Of a constructor without namespaces whose braces hold variables, names of nodes below them and the
times of the match, all but the values is known before there is a match.  So it is compiled, once,
to functions that write its elements (`compiled_fragments`).

What is written is what `construct` writes part by part, and costs as much.  Where that might not
be, nothing is said and `construct` is asked: where a node is no element, where a copy declares a
namespace, where XML cannot have a character, where more is spent than there is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

from lxml import etree

from xscl.constructor import Attribute, ConstructedElement, Content, Enclosed
from xscl.meter import STEP_BYTES, size
from xscl.nodes import Node, text_within
from xscl.plainpaths import PlainPath, own_texts
from xscl.writing import attribute_text, tagged, text_content

__all__ = [
    "CLOCKS",
    "Fragments",
    "Written",
    "compiled_fragments",
    "spelled_duration",
    "spelled_time",
]

CLOCKS = ("xscl.start", "xscl.end", "xscl.dur")
"""The XPath variables of the times of a match."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _UnwrittenError(Exception):
    """What has been found is not for fragments."""


class _Writing:
    """One constructor that is written: the nodes of variables, the match's times, what is spent."""

    __slots__ = ("cost", "end_us", "nodes", "start_us")

    def __init__(self, nodes: Mapping[str, Sequence[Node]], start_us: int, end_us: int) -> None:
        self.nodes = nodes
        self.start_us = start_us
        self.end_us = end_us
        self.cost = 0


_Write = Callable[[_Writing, list[str]], None]


class Written(NamedTuple):
    """A constructed element, and what it costs, beside `CONSTRUCTOR_BYTES`."""

    text: str
    cost: int


class Fragments:
    """A constructor, compiled."""

    def __init__(self, write: _Write) -> None:
        self._write = write

    def written(
        self, nodes: Mapping[str, Sequence[Node]], start_us: int, end_us: int
    ) -> Written | None:
        """Return the constructed element; None where it is not said.

        `nodes` are those of variables, by their XPath names, in the order of their documents.
        """
        writing, parts = _Writing(nodes, start_us, end_us), list[str]()
        try:
            self._write(writing, parts)
        except (_UnwrittenError, ValueError):
            return None
        [text] = parts
        return Written(text, writing.cost + size(text))


def compiled_fragments(
    element: ConstructedElement, plain: Mapping[int, PlainPath], known: frozenset[str]
) -> Fragments | None:
    """Return a constructor in no namespace, compiled; None where it needs more.

    `plain` are its expressions by their place, as far as they are looked up, and `known` the XPath
    variables that have nodes.
    """
    try:
        return Fragments(_FragmentCompiler(plain, known).element(element))
    except (_UnwrittenError, ValueError):
        return None


def spelled_time(time_us: int) -> str:
    """Return a time as XPath 2.0 spells it.

    >>> spelled_time(1_500_000), spelled_time(60_000_000)
    ('1970-01-01T00:00:01.5Z', '1970-01-01T00:01:00Z')
    """
    text = (_EPOCH + timedelta(microseconds=time_us)).isoformat()[:-6]
    return f"{text.rstrip('0')}Z" if time_us % 1_000_000 else f"{text}Z"


def spelled_duration(length_us: int) -> str:
    """Return a duration, which is not negative, as XPath 2.0 spells it.

    >>> spelled_duration(0), spelled_duration(90_061_500_000), spelled_duration(3_600_000_000)
    ('PT0S', 'P1DT1H1M1.5S', 'PT1H')
    """
    minutes, rest = divmod(length_us, 60_000_000)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    seconds, fraction = divmod(rest, 1_000_000)
    behind = f".{fraction:06}".rstrip("0") if fraction else ""
    parts = ((hours, "H"), (minutes, "M"))
    time = "".join([f"{number}{name}" for number, name in parts if number])
    if rest:
        time += f"{seconds}{behind}S"
    date = f"{days}D" if days else ""
    return f"P{date}T{time}" if time else f"P{date}" if date else "PT0S"


_SPELLED: Mapping[str, Callable[[_Writing], str]] = {
    "xscl.start": lambda writing: spelled_time(writing.start_us),
    "xscl.end": lambda writing: spelled_time(writing.end_us),
    "xscl.dur": lambda writing: spelled_duration(writing.end_us - writing.start_us),
}


class _FragmentCompiler:
    """Makes the functions that write a constructor; what they cannot write is `_UnwrittenError`."""

    def __init__(self, plain: Mapping[int, PlainPath], known: frozenset[str]) -> None:
        self._plain = plain
        self._known = known

    def element(self, element: ConstructedElement) -> _Write:
        """Return what writes an element."""
        attributes = [self._attribute(each) for each in element.attributes]
        contents = [self._content(part) for part in element.content]
        name = element.name

        def write(writing: _Writing, parts: list[str]) -> None:
            own: list[str] = []
            for content in contents:
                content(writing, own)
            parts.append(tagged(name, [value(writing) for value in attributes], own))

        return write

    def _attribute(self, attribute: Attribute) -> Callable[[_Writing], str]:
        """Return what writes an attribute."""
        pieces = [part if isinstance(part, str) else self._texts(part) for part in attribute.parts]
        name = attribute.name

        def written(writing: _Writing) -> str:
            values = [
                piece if isinstance(piece, str) else " ".join(piece(writing)) for piece in pieces
            ]
            return f' {name}="{attribute_text("".join(values))}"'

        return written

    def _content(self, part: Content) -> _Write:
        """Return what adds a part of an element's content."""
        if isinstance(part, ConstructedElement):
            return self.element(part)
        if isinstance(part, str):
            text = text_content(part)
            return lambda writing, parts: parts.append(text)
        path = self._path(part)
        kind = path.steps[-1].kind if path.steps else "element"
        if path.variable in self._known and kind == "element":
            elements = _elements_of(path)
            return lambda writing, parts: _add_copies(writing, parts, elements(writing))
        if kind == "attribute":
            raise _UnwrittenError  # Its copy is an element.
        texts = self._texts(part)
        return lambda writing, parts: _add_texts(writing, parts, texts(writing))

    def _path(self, part: Enclosed) -> PlainPath:
        path = self._plain.get(part.start)
        if path is None or any(step.is_deep for step in path.steps):
            raise _UnwrittenError
        if path.variable not in self._known and (path.steps or path.variable not in _SPELLED):
            raise _UnwrittenError
        return path

    def _texts(self, part: Enclosed) -> Callable[[_Writing], list[str]]:
        """Return what finds the values of an expression as texts."""
        path = self._path(part)
        if path.variable not in self._known:
            spelled = _SPELLED[path.variable]
            return lambda writing: [spelled(writing)]
        *_, kind = ("element", *(step.kind for step in path.steps))
        if kind == "element":
            elements = _elements_of(path)
            return lambda writing: [*map(_string, elements(writing))]
        above = _elements_of(path._replace(steps=path.steps[:-1]))
        if kind == "text":
            return lambda writing: _own_texts(writing, above(writing))
        name = path.steps[-1].name
        return lambda writing: _values(writing, above(writing), name)


def _elements_of(path: PlainPath) -> Callable[[_Writing], list[Any]]:
    """Return what finds the elements of a path of element steps."""
    variable, names = path.variable, [step.name for step in path.steps]

    def found(writing: _Writing) -> list[Any]:
        elements = [*writing.nodes[variable]]
        cost = len(elements)
        for element in elements:
            if type(element) is not etree._Element:
                raise _UnwrittenError
        for name in names:
            below: list[Any] = []
            for element in elements:
                cost += len(element)
                below += element if name == "*" else element.iterchildren(name)
            elements = below
        writing.cost += STEP_BYTES * cost
        return elements

    return found


def _string(element: Any) -> str:
    return text_within(element) if len(element) else element.text or ""


def _own_texts(writing: _Writing, elements: Sequence[Any]) -> list[str]:
    texts = [text for element in elements for text in own_texts(element)]
    writing.cost += STEP_BYTES * len(texts)
    return texts


def _values(writing: _Writing, elements: Sequence[Any], name: str) -> list[str]:
    writing.cost += STEP_BYTES * len(elements)
    values = (element.get(name) for element in elements)
    return [value for value in values if value is not None]


def _add_copies(writing: _Writing, parts: list[str], elements: Sequence[Any]) -> None:
    for element in elements:
        text = etree.tostring(element, encoding="unicode", with_tail=False)
        if " xmlns" in text:
            raise _UnwrittenError
        writing.cost += size(text)
        parts.append(text)


def _add_texts(writing: _Writing, parts: list[str], texts: Sequence[str]) -> None:
    if texts:
        writing.cost += sum([size(text) for text in texts])
        parts.append(text_content("".join(texts)))
