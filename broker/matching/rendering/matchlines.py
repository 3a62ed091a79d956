"""A match line as people read it: what was matched, of what, and by which values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

__all__ = [
    "compared_in",
    "likenesses_of",
    "match_lines",
    "nodes_of",
    "spell_confidence",
    "spell_likeness",
]

_VALUE_MAX = 80
_NAMES_MAX = 8


def match_lines(match: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a match: its time and documents, then what was compared, or counted.

    Of many documents the first ones are named, and the last.

    >>> witness = {"x": {"block": 0, "value": "Ann"}}
    >>> line = {"end": "2026-01-01T12:00:00Z", "witnesses": [witness]}
    >>> documents = [{"stream": "S", "key": "one"}, {"stream": "S", "key": "two"}]
    >>> list(match_lines({**line, "documents": documents}))
    ['2026-01-01T12:00:00Z  S one + S two', '  x = Ann']
    >>> run = [{"stream": "S", "key": str(n)} for n in range(1, 31)]
    >>> next(match_lines({**line, "documents": run}))
    '2026-01-01T12:00:00Z  S 1 + S 2 + S 3 + 26 more + S 30'
    >>> row = {"end": "2026-01-01T12:00:00Z", "witnesses": [], "documents": documents}
    >>> list(match_lines({**row, "values": {"count()": 2, "collect(t)": ["One", "Two"]}}))[1:]
    ['  count() = 2', '  collect(t) = One, Two']
    """
    names = [f"{each['stream']} {each['key']}" for each in match["documents"]]
    if len(names) > _NAMES_MAX:
        names[3:-1] = [f"{len(names) - 4} more"]
    yield f"{match['end']}  {' + '.join(names)}"
    witness = match["witnesses"][0] if match["witnesses"] else {}
    said = dict.fromkeys((name, node["value"] or "") for name, node in compared_in(witness))
    for name, value in said:
        yield f"  {name} = {_short(value)}"
    for name, found in match.get("values", {}).items():
        text = ", ".join(map(str, found)) if isinstance(found, list) else str(found)
        yield f"  {name} = {_short(text)}"
    for score, shared in likenesses_of(witness):
        yield f"  {_short(spell_likeness(score, shared))}"
    if "confidence" in match:
        yield f"  confidence {spell_confidence(match)}"


def nodes_of(witness: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the variables of a witness of a match line with their nodes."""
    yield from ((name, node) for name, node in witness.items() if isinstance(node, dict))


def compared_in(witness: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the variables of a witness with their nodes, under the names that the query has.

    The second `a/title` of a query is `a/title#2` in a match line: it may be another node.

    >>> list(compared_in({"a/title": {"node": 1}, "a/title#2": {"node": 4}}))
    [('a/title', {'node': 1}), ('a/title', {'node': 4})]
    """
    yield from ((name.partition("#")[0], node) for name, node in nodes_of(witness))


def likenesses_of(witness: Mapping[str, Any]) -> Iterator[tuple[float, list[str]]]:
    """Yield what the similarity joins of a witness have found: scores, and shared words."""
    found = witness.get("similar")
    if isinstance(found, list):
        yield from ((each["score"], each["shared"]) for each in found)


def spell_likeness(score: float, shared: Sequence[str]) -> str:
    """Return what a similarity join has found as text.

    >>> spell_likeness(0.625, ["harbour", "ship"])
    'similar 0.62: harbour, ship'
    >>> spell_likeness(2, ["harbour", "ship"])
    '2 in common: harbour, ship'
    """
    said = f"{score} in common" if isinstance(score, int) else f"similar {score:.2f}"
    return said + (f": {', '.join(shared)}" if shared else "")


def spell_confidence(match: Mapping[str, Any]) -> str:
    """Return how sure a match is of which something may be lost, and what is missing.

    >>> spell_confidence({"confidence": 0.09, "missing": [{"block": 1, "stream": "reviews"}]})
    '0.09, a document of reviews is missing'
    """
    missing = [each["stream"] for each in match["missing"]]
    number = f"{match['confidence']:.3g}"
    if not missing:
        return number
    what = f"a document of {' and one of '.join(missing)}"
    return f"{number}, {what} {'is' if len(missing) == 1 else 'are'} missing"


def _short(value: str) -> str:
    text = " ".join(value.split())
    return text if len(text) <= _VALUE_MAX else text[: _VALUE_MAX - 1] + "…"
