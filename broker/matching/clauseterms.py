"""What a clause's tuples are read by: its terms, and which of them a match shows or compares."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from broker.matching.rendering.form import MatchForm, MatchForms
from templates.clause import Clause, Place, Test
from templates.factor import Factor
from xscl.query import Query, Variable, term

__all__ = ["ClauseTerms", "Instant"]


class Instant(NamedTuple):
    """A time of one side's document: the end of its interval, or the start."""

    side: int
    is_end: bool


@dataclass(frozen=True, slots=True, eq=False)
class ClauseTerms:
    """The terms of a clause's operands, those without a node last.

    `places` say where the nodes are, `instants` what the terms without one are.  The rest are
    places among the terms: of a root the visible nodes of a match (`form`; where there are `runs`
    it depends on them, by `forms`), and what its witness tuples show, each with its place among the
    query's variables; of another what is handed on.
    `counted` is the place of runs that are counted, -1 where none are.
    `equal` are the tests of the box against strings, `joined` the places of the values that the
    join has found equal, `timed` the times that the clause's factors ask for.
    """

    clause: Clause
    names: tuple[str, ...]
    places: tuple[Place, ...]
    instants: tuple[Instant, ...]
    forms: MatchForms | None
    form: MatchForm | None
    runs: tuple[int, ...]
    counted: int
    visible: tuple[int, ...]
    compared: tuple[tuple[int, int], ...]
    carried: tuple[int, ...]
    equal: tuple[Test, ...]
    joined: tuple[tuple[Place, Place], ...]
    timed: tuple[int, ...]

    @classmethod
    def of(cls, query: Query, clause: Clause) -> ClauseTerms:
        """Return the terms of a clause of a query."""
        found = dict(_places(clause))
        instants = {
            term(call): Instant(side, call.function != "start")
            for side, source in enumerate(clause.sources)
            for call in source.instants
        }
        names = (*(name for name in found if name not in instants), *instants)
        at = {name: i for i, name in enumerate(names)}
        forms = None if clause.stream else MatchForms(query)
        counted = "" if clause.stream else clause.counts
        runs = forms.run_terms(clause.blocks) if forms and not counted else []
        form = forms.of(clause.blocks, []) if forms and not runs and not counted else None
        compared = [
            (i, at[variable.name])
            for i, variable in enumerate(_in_order(query))
            if variable.name in clause.compared and variable.block in clause.blocks
        ]
        return cls(
            clause,
            names,
            tuple([found[name] for name in names if name not in instants]),
            tuple(instants.values()),
            forms,
            form,
            tuple([at[name] for name in runs]),
            at[counted] if counted else -1,
            tuple([at[name] for name, _ in form.visible]) if form else (),
            () if clause.stream else tuple(compared),
            tuple([at[name] for name in clause.carried]) if clause.stream else (),
            tuple([test for test in clause.box if test.operator == "="]),
            tuple(_joined(clause)),
            tuple([at[name] for name in dict.fromkeys(_times(clause))]),
        )

    @property
    def factors(self) -> tuple[Factor, ...]:
        """The factors of a root's confidence."""
        return self.clause.factors


def _in_order(query: Query) -> list[Variable]:
    return sorted(query.variables, key=lambda variable: variable.block)


def _places(clause: Clause) -> Iterator[tuple[str, Place]]:
    """Yield the terms that have a node, each with its place."""
    left_size = clause.query_class.template.left_size
    for name, meta in clause.places.items():
        yield name, Place(int(meta >= left_size), meta)
    for side, source in enumerate(clause.sources):
        if source.below is not None:
            for position, name in enumerate(source.below.carried, 1):
                yield name, Place(side, -1, position)


def _times(clause: Clause) -> Iterator[str]:
    return (term(call) for factor in clause.factors for call in factor.terms())


def _joined(clause: Clause) -> Iterator[tuple[Place, Place]]:
    template = clause.query_class.template
    for pair in template.value_joins:
        left, right = (Place(int(meta >= template.left_size), meta) for meta in pair)
        yield left, right
