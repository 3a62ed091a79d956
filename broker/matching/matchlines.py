"""A match line as people read it: what was matched, of what, and by which values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

__all__ = ["match_lines"]

_VALUE_MAX = 80


def match_lines(match: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of a match: its time and documents, then what was compared.

    >>> witness = {"x": {"block": 0, "value": "Ann"}}
    >>> line = {"end": "2026-01-01T12:00:00Z", "witnesses": [witness]}
    >>> documents = [{"stream": "S", "key": "one"}, {"stream": "S", "key": "two"}]
    >>> list(match_lines({**line, "documents": documents}))
    ['2026-01-01T12:00:00Z  S one + S two', '  x = Ann']
    """
    names = " + ".join(f"{each['stream']} {each['key']}" for each in match["documents"])
    yield f"{match['end']}  {names}"
    witness = match["witnesses"][0] if match["witnesses"] else {}
    for name, node in witness.items():
        yield f"  {name} = {_short(node['value'] or '')}"


def _short(value: str) -> str:
    text = " ".join(value.split())
    return text if len(text) <= _VALUE_MAX else text[: _VALUE_MAX - 1] + "…"
