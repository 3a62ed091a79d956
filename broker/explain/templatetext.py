"""Templates as text for people: their members, their form, and their rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker.explain.model import Survey, TemplateView
from broker.explain.trees import beside, indent, table, tree, wrap
from templates.template import Template
from xscl.durations import render_duration

__all__ = ["counted", "template_lines", "template_trees"]

ROWS_MAX = 12
"""Rows of a template's table that are shown; the rest is counted."""


def template_lines(survey: Survey, view: TemplateView, query_id: str = "") -> Iterator[str]:
    """Yield a template: its members, its form, and its rows."""
    classes = [survey.classes[number - 1] for number in view.classes]
    queries = list(dict.fromkeys(q for c in classes for q in c.queries()))
    others = [q for q in queries if q != query_id]
    count = counted(len(classes), "query class", "es")
    with_whom = f"with {wrap(others)}" if others and query_id else wrap(others) or "this query only"
    yield f"template {view.number}: {count}, {with_whom}"
    template = view.template
    names = [f"var{i + 1}" for i in range(template.size)]
    yield from indent(template_trees(template, names))
    joins = [f"{names[a]} = {names[b]}" for a, b in template.value_joins]
    yield from indent([", ".join(joins)] if joins else [])
    residuals = [f"{names[a]} {operator} {names[b]}" for a, operator, b in template.residuals]
    yield from indent([", ".join(residuals)] if residuals else [])
    yield ""
    rows = [
        [
            str(c.number),
            *map(survey.name, c.query_class.row.variables),
            _window(c.window_us) if template.has_right or c.window_us else "-",
            wrap(c.queries(), 3),
        ]
        for c in classes[:ROWS_MAX]
    ]
    yield from table(["R_T  class", *names, "window", "queries"], _padded(rows))
    if len(classes) > ROWS_MAX:
        yield f"     and {len(classes) - ROWS_MAX:,} more classes"


def _padded(rows: list[list[str]]) -> list[list[str]]:
    return [[f"     {row[0]}", *row[1:]] for row in rows]


def _window(length_us: int) -> str:
    return render_duration(length_us) if length_us else "as given"


def template_trees(template: Template, names: Sequence[str]) -> list[str]:
    """Return the lines of a template's sides, beside each other, under the names of its nodes."""
    size = template.left_size
    left = tree(template.parents[:size], names[:size])
    above = [p if p < 0 else p - size for p in template.parents[size:]]
    right = tree(above, names[size:])
    return beside([left, right] if right else [left])


def counted(number: int, name: str, ending: str) -> str:
    """Return a number of things, with the ending of the plural where it is one."""
    return f"{number:,} {name}{'' if number == 1 else ending}"
