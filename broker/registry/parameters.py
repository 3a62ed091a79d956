"""The values of a query's parameters as people write them: `who=Ann`, `within="6 h"`."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Mapping

from xscl.durations import render_duration
from xscl.query import Query

__all__ = ["parameter", "parameters", "spell_parameters"]

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?", re.ASCII | re.IGNORECASE)
"""A number as queries have them.  `INF` is a duration, `nan` may be somebody's name."""


def parameter(text: str) -> tuple[str, str | float]:
    """Return the name and the value of NAME=VALUE, a number where it reads as one.

    What stands in quotes is a string.  Raises `ValueError` where it is not NAME=VALUE.

    >>> parameter("low=3"), parameter("isbn='3'"), parameter("within=INF")
    (('low', 3.0), ('isbn', '3'), ('within', 'INF'))
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is not NAME=VALUE")
    return name.removeprefix("$"), _value(value)


def _value(text: str) -> str | float:
    if _is_quoted(text):
        return text[1:-1]
    number = float(text) if _NUMBER.fullmatch(text) else math.inf
    return number if math.isfinite(number) else text


def _is_quoted(text: str) -> bool:
    return len(text) > 1 and text[0] in "'\"" and text[0] == text[-1]


def parameters(text: str) -> dict[str, str | float]:
    """Return the values of several, quoted as in a shell; raise `ValueError`.

    >>> parameters('who=Ann within="6 h" low=3')
    {'who': 'Ann', 'within': '6 h', 'low': 3.0}
    """
    return dict(map(parameter, shlex.split(text)))


def spell_parameters(query: Query, assignment: Mapping[str, object]) -> str:
    """Return the canonical values of a query's parameters as `parameters` reads them."""
    types = dict(query.parameters)
    return " ".join(
        f"{name}={shlex.quote(_spelled(types.get(name), value))}"
        for name, value in assignment.items()
    )


def _spelled(kind: str | None, value: object) -> str:
    if kind == "duration" and isinstance(value, int):
        return render_duration(value)
    if isinstance(value, float):
        return repr(value).removesuffix(".0")
    text = str(value)
    return text if _value(text) == text else f"'{text}'"
