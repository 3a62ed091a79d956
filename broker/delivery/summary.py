"""What a person reads of a match: its items, what joined them, and how far apart they are."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import lru_cache
from itertools import groupby
from typing import Any

from lxml import etree

from broker.documents.document import parse_time
from broker.documents.wellformed import root_of, text_of
from broker.matching.rendering.matchlines import (
    likenesses_of,
    nodes_of,
    spell_confidence,
    spell_likeness,
)
from broker.pipeline.matchlog import CommittedMatch

__all__ = ["Summary", "SummaryGroup", "SummaryPart", "read_part", "summarise"]

_TEXT_MAX = 400
_VALUES_MAX = 8
_LISTED_MAX = 30
_NO_LISTS: Mapping[str, Sequence[str]] = {}
_NAMED = ("title", "link", "author", "source", "summary", "content")


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """One document of a match, or its whole output where the query builds its own.

    `html` is the publisher's, not to be trusted; `fields` are what has no place of its own.  One
    that `is_element` is one of several of a run, or of a row.
    """

    title: str = ""
    link: str = ""
    author: str = ""
    source: str = ""
    html: str = ""
    time_us: int | None = None
    fields: tuple[tuple[str, str], ...] = ()
    is_element: bool = False


@dataclass(frozen=True, slots=True)
class SummaryGroup:
    """One document of a match, or several in a row that are a list; `omitted` more are not in it.

    >>> parts = [SummaryPart(str(n), is_element=n > 0) for n in range(4)]
    >>> [(len(each.parts), each.is_list) for each in SummaryGroup.of(parts)]
    [(1, False), (3, True)]
    """

    parts: tuple[SummaryPart, ...]
    is_list: bool = False
    omitted: int = 0

    @classmethod
    def of(cls, parts: Iterable[SummaryPart]) -> tuple[SummaryGroup, ...]:
        """Return parts in groups, in their order."""
        found: list[SummaryGroup] = []
        for is_list, some in groupby(parts, key=lambda part: part.is_element):
            own = tuple(some)
            if is_list:
                found.append(cls(own[:_LISTED_MAX], is_list, max(0, len(own) - _LISTED_MAX)))
            else:
                found += [cls((part,)) for part in own]
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Summary:
    """A match for people.  `joined` are (variable, value) pairs of what its documents share."""

    match_id: str
    query: str
    headline: str
    parts: tuple[SummaryPart, ...]
    joined: tuple[tuple[str, str], ...]
    apart: timedelta
    output: str

    @property
    def groups(self) -> tuple[SummaryGroup, ...]:
        """Its parts, where those of a run are together."""
        return SummaryGroup.of(self.parts)


@lru_cache(maxsize=256)
def summarise(match: CommittedMatch) -> Summary:
    """Read a match line for a person."""
    line: dict[str, Any] = json.loads(match.line)
    parts = tuple(_parts(line))
    titles = [part.title for part in parts if part.title]
    return Summary(
        match_id=match.id,
        query=match.query,
        headline=titles[-1] if titles else f"match of {match.query}",
        parts=parts,
        joined=_joined(line),
        apart=timedelta(microseconds=parse_time(line["end"]) - parse_time(line["start"])),
        output=line["output"],
    )


def read_part(xml: bytes) -> SummaryPart:
    """Read one document for a person; what is not XML has nothing to show."""
    root = root_of(xml)
    return SummaryPart() if root is None else _part(root, "", None)


def _parts(line: Mapping[str, Any]) -> Iterator[SummaryPart]:
    root = root_of(line["output"].encode())
    documents = line["documents"]
    if root is None:
        return
    children = list(root.iterchildren("*"))
    if _name(root) == "match" and len(children) == len(documents):
        of_block = Counter(document.get("block") for document in documents)
        for child, document in zip(children, documents, strict=True):
            # A row has documents of no block.
            is_element = of_block[document.get("block")] > 1 and (
                "block" in document or not line["roots"]
            )
            part = _part(child, document["stream"], parse_time(document["time"]))
            yield replace(part, is_element=is_element)
    else:
        yield from _constructed(root, line.get("values", {}).values())


def _constructed(root: etree._Element, values: Iterable[Any]) -> Iterator[SummaryPart]:
    """Yield what a query has built; what it has collected for it is a list again."""
    lists = {_spaced(own): own for own in values if isinstance(own, list)}
    part = _part(root, "", None, lists)
    items = lists.get(_own_text(root), ())
    if items:
        part = replace(part, title="")
    if not items or part.fields:
        yield part
    yield from (SummaryPart(_one_line(item), is_element=True) for item in items)


def _part(
    element: etree._Element,
    stream: str,
    time_us: int | None,
    lists: Mapping[str, Sequence[str]] = _NO_LISTS,
) -> SummaryPart:
    """Read one element; a text that is one of `lists` is as many fields as these have items."""
    found: dict[str, str] = {}
    fields = [(_local(str(name)), str(value)) for name, value in element.attrib.items()]
    for child in element.iterchildren("*"):
        name, text = _name(child), text_of(child)
        if name == "link":
            text = text or child.get("href", "")
        if name in _NAMED and name not in found:
            found[name] = text
        elif text and time_us is None:
            fields += [(name, item) for item in lists.get(_spaced([text]), (text,))]
    title = found.get("title", "") or _own_text(element)
    if not (title or found or fields):
        # Values of several elements are not one word.
        title = _spaced(map(str, element.itertext()))
    return SummaryPart(
        title=_one_line(title),
        link=found.get("link", ""),
        author=_one_line(found.get("author", "")),
        source=_one_line(found.get("source", "") or stream),
        html=found.get("summary", "") or found.get("content", ""),
        time_us=time_us,
        fields=tuple((name, _one_line(text)) for name, text in fields),
    )


def _joined(line: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return each value that two documents share once, under the first variable that has it.

    Other values were compared too, and are different: by `!=`, or by what a function makes of them.
    What is similar comes with its score, and the words that are shared.
    """
    values: dict[str, str] = {}
    for witness in line["witnesses"]:
        blocks: dict[str, set[int]] = defaultdict(set)
        for _, node in nodes_of(witness):
            blocks[str(node.get("value") or "")].add(node["block"])
        for variable, node in nodes_of(witness):
            value = str(node.get("value") or "")
            if value and len(blocks[value]) > 1:
                values.setdefault(_one_line(value), variable)
        for score, shared in likenesses_of(witness):
            label, _, words = spell_likeness(score, shared).partition(": ")
            if words:
                values.setdefault(_one_line(words), label)
    found = [(variable, value) for value, variable in list(values.items())[:_VALUES_MAX]]
    if "confidence" in line:
        found.append(("confidence", spell_confidence(line)))
    return tuple(found)


def _own_text(element: etree._Element) -> str:
    """Return the text that stands in an element, and not in one below it, on one line."""
    return _spaced([element.text or "", *(child.tail or "" for child in element)])


def _spaced(texts: Iterable[str]) -> str:
    return " ".join(" ".join(texts).split())


def _one_line(text: str) -> str:
    text = _spaced([text])
    return text if len(text) <= _TEXT_MAX else text[: _TEXT_MAX - 1] + "…"


def _name(element: etree._Element) -> str:
    return _local(str(element.tag))


def _local(name: str) -> str:
    return name.rpartition("}")[2]
