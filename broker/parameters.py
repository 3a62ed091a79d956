"""The values of a query's parameters as people write them: `who=Ann`, `within="6 h"`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from xscl.durations import render_duration
from xscl.query import Query

__all__ = ["parameter", "parameters", "spell_parameters"]


def parameter(text: str) -> tuple[str, str | float]:
    """Return the name and the value of NAME=VALUE, a number where it reads as one.

    Raises `ValueError` where it is not that.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        raise ValueError(f"{text!r} is not NAME=VALUE")
    try:
        return name.removeprefix("$"), float(value)
    except ValueError:
        return name.removeprefix("$"), value


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
    return f"{value:g}" if isinstance(value, float) else str(value)
