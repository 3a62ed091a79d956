"""The key of a match: what tells messages of one subscription apart.

A term is the name under which the match line has a compared value (`topic`, `a/link`), or a path
into the output: `output/item/@id`.  Of several values the first counts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from lxml import etree

from broker.documents.wellformed import root_of, text_of
from broker.matching.rendering.matchlines import nodes_of
from broker.pipeline.matchlog import CommittedMatch

__all__ = ["key_of"]

_SHOWN_MAX = 200
"""A longer key is cut, and a hash stands for the rest."""


def key_of(match: CommittedMatch, terms: Sequence[str]) -> str:
    """Return the key of a match; without terms all have the same, the empty one."""
    if not terms:
        return ""
    line: dict[str, Any] = json.loads(match.line)
    values = [" ".join(_value(line, term).split()) for term in terms]
    key = values[0] if len(values) == 1 else json.dumps(values, ensure_ascii=False)
    if len(key) <= _SHOWN_MAX:
        return key
    digest = hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    return f"{key[: _SHOWN_MAX - 17]}…{digest}"


def _value(line: dict[str, Any], term: str) -> str:
    steps = term.split("/")
    if steps[0] == "output":
        return _of_output(line["output"], steps[1:])
    # A clause behind an OR compares other nodes than this one's.
    nodes = (dict(nodes_of(witness)) for witness in line["witnesses"])
    found = (own[term].get("value") for own in nodes if term in own)
    return str(next((value for value in found if value), ""))


def _of_output(output: str, steps: Sequence[str]) -> str:
    root = root_of(output.encode())
    places = [] if root is None else [root]
    for step in steps:
        if step.startswith("@"):
            values = (value for place in places for value in _attributes(place, step[1:]))
            return str(next(values, ""))
        places = [
            child
            for place in places
            for child in place.iterchildren("*")
            if step in ("*", _local(child.tag))
        ]
    return text_of(places[0]) if places else ""


def _attributes(element: etree._Element, name: str) -> list[str]:
    return [str(value) for each, value in element.attrib.items() if _local(each) == name]


def _local(name: object) -> str:
    return str(name).rpartition("}")[2]
