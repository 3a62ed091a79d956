"""With whom a query would share its joins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from broker.explain.decisiontext import spell_decision
from broker.explain.model import Survey, TemplateView
from broker.explain.survey import survey
from xscl.query import Query

__all__ = ["Sharing", "render_sharing", "sharing"]


@dataclass(frozen=True, slots=True)
class Sharing:
    """One template of a query: its value joins, in the query's words, and who else joins by it.

    `template` are the ids of the others of that template, `query_class` those whose joins are the
    very same, so that one evaluation serves both.  Of a decision, `decision` says what is decided,
    and the others are the queries that decide the very same.
    """

    joins: tuple[str, ...]
    template: tuple[str, ...]
    query_class: tuple[str, ...]
    decision: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "joins": list(self.joins),
            "decision": self.decision or None,
            "queries_of_template": len(self.template),
            "queries_of_class": len(self.query_class),
        }


def sharing(query: Query, others: Sequence[Query]) -> list[Sharing]:
    """Return the templates and decisions that a query would join, registered with the others."""
    shown = [other for other in others if other.id != query.id]
    found = survey([*shown, query])
    classes = dict.fromkeys(
        found.class_of(clause).number
        for clause in found.query(query.id).clauses()
        if clause.is_join
    )
    decided = [
        Sharing((), others, others, spell_decision(one))
        for one in found.query(query.id).decisions
        for others in [_others(one.others, query.id)]
    ]
    return [*(_sharing(found, number, query.id) for number in classes), *decided]


def _sharing(found: Survey, number: int, query_id: str) -> Sharing:
    own = found.classes[number - 1]
    view: TemplateView = found.templates[own.template - 1]
    names = [found.name(variable) for variable in own.query_class.row.variables]
    return Sharing(
        tuple(f"{names[a]} = {names[b]}" for a, b in view.template.value_joins),
        _others([q for n in view.classes for q in found.classes[n - 1].queries()], query_id),
        _others(own.queries(), query_id),
    )


def _others(queries: Sequence[str], query_id: str) -> tuple[str, ...]:
    return tuple(each for each in dict.fromkeys(queries) if each != query_id)


def render_sharing(found: Sequence[Sharing]) -> str:
    """Return it as lines of an estimate."""
    lines = []
    for one in found:
        joins = ", ".join(one.joins) or "no value join"
        what = f"decision ({one.decision})" if one.decision else f"template ({joins})"
        with_whom = "of its own"
        if one.template:
            count = len(one.template)
            with_whom = f"shared with {count:,} other{'' if count == 1 else 's'}"
        if one.query_class and not one.decision:
            with_whom += f", {len(one.query_class):,} of them in the same query class"
        lines.append(f"  {what}: {with_whom}\n")
    return "".join(lines)
