"""What a query decides, for `survey`: its decisions in words, and the clauses that these read.

An ordered statement has one decision for all its alternatives.  So the clauses of the join stand
apart from it: blocks, and operators below and above what is decided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from broker.explain.model import AbsenceView, DecisionView
from broker.explain.spelling import spell_disjunct
from templates.chaindecision import ChainDecision
from templates.clause import Alternative, Clause
from templates.decision import Decided, Decision, DecisionKind
from templates.ordered import Ordered, ordered_nodes
from templates.plain import plain_statements
from templates.rundecision import RunDecision
from xscl.durations import render_duration
from xscl.path import Parameter
from xscl.query import INFINITE_US, Disjunct, Query
from xscl.sequence import (
    AbsenceKind,
    From,
    Node,
    Operator,
    Unit,
    Window,
    absences_at,
    decides,
    nodes_below,
)

__all__ = [
    "decided_clauses",
    "decision_numbers",
    "decision_views",
    "decisions_of",
    "joined_clauses",
]

Decisions = Mapping[int, Decision]
"""Decisions by their places in a query."""


def decided_clauses(alternatives: Iterable[Alternative]) -> dict[int, Clause]:
    """Return one clause for each decision of a query, by its place.

    That the tuples of a query with tables wait until they are settled is no decision of its own.
    """
    found: dict[int, Clause] = {}
    for alternative in alternatives:
        for clause in alternative.clauses:
            decided = clause.query_class.decided
            if decided is not None and not _is_settled(decided.decision):
                found.setdefault(clause.origin, clause)
    return dict(sorted(found.items()))


def _is_settled(decision: Decision | RunDecision | ChainDecision) -> bool:
    return isinstance(decision, Decision) and decision.kind is DecisionKind.SETTLED


def decisions_of(alternatives: Iterable[Alternative]) -> dict[int, Decision]:
    """Return the decisions of a query by their places."""
    return {
        origin: clause.query_class.decided.decision
        for origin, clause in decided_clauses(alternatives).items()
        if isinstance(clause.query_class.decided, Decided)
    }


def joined_clauses(alternative: Alternative) -> list[Clause]:
    """Return the clauses of an alternative that are no decisions, but for those read twice.

    A block that is decided upon and handed on is read in two streams; the one that is handed on
    binds more.
    """
    root = alternative.root
    reached = {root.stream: root}
    waiting = [root]
    while waiting:
        clause = waiting.pop()
        for source in clause.sources:
            if source.below is not None and source.below.stream not in reached:
                reached[source.below.stream] = source.below
                waiting.append(source.below)
    covered = {block for clause in reached.values() for block in clause.blocks}
    return [
        clause
        for clause in alternative.clauses
        if clause.query_class.decided is None
        and (clause.stream in reached or covered.isdisjoint(clause.blocks))
    ]


def decision_views(
    query: Query,
    alternatives: Sequence[Alternative],
    users: Mapping[Decision, Sequence[str]],
) -> Iterator[DecisionView]:
    """Yield the decisions of a query; `users` are the queries that have each."""
    nodes = [node for node in nodes_below(query.root) if decides(node)]
    every = (node for each in plain_statements(query) for node in ordered_nodes(each.root))
    plain = [node for node in every if isinstance(node, Ordered)]
    decisions = decisions_of(alternatives)
    for origin, clause in decided_clauses(alternatives).items():
        decision = decisions[origin]
        own = [each for each in plain if each.origin == origin]
        yield _View(query, nodes, origin, own).of(decision, clause, users[decision])


def decision_numbers(query: Query) -> dict[int, int]:
    """Return the numbers of a query's decisions, from 1, by their places.

    Several absences at one operator are one decision with it: the outermost has its place.
    """
    nodes = [node for node in nodes_below(query.root) if decides(node)]
    inside: set[int] = set()
    for node in nodes:
        absences, first = absences_at(node)
        inside.update(map(id, absences[1:]))
        if absences and absences[0].kind is AbsenceKind.BETWEEN:
            inside.add(id(first))
    places = [place for place, node in enumerate(nodes) if id(node) not in inside]
    return {place: number for number, place in enumerate(places, 1)}


class _View:
    """One decision of a query: its node, and what it is in each plain statement."""

    def __init__(
        self, query: Query, nodes: Sequence[Node], origin: int, plain: Sequence[Ordered]
    ) -> None:
        self._labels = {variable.name: variable.label for variable in query.variables}
        self._nodes = list(nodes)
        self._numbers = decision_numbers(query)
        self._origin = origin
        self._plain = plain
        self._within = [n.within for n in _around(query.root, nodes[origin])]

    def of(self, decision: Decision, clause: Clause, users: Sequence[str]) -> DecisionView:
        """Return the view of a decision, whose tuples are those of a clause."""
        absences, first = absences_at(self._nodes[self._origin])
        is_pair = decision.kind.has_right
        operands: tuple[Node, ...] = (first,)
        if is_pair:
            assert isinstance(first, Operator)
            operands = (first.left, first.right)
        window = first.window if isinstance(first, Operator) and is_pair else None
        if decision.kind in (DecisionKind.AFTER, DecisionKind.AROUND):
            window = absences[0].window
        return DecisionView(
            number=self._numbers[self._origin],
            kind=decision.kind.value,
            operands=tuple(map(self._operand, operands)),
            asked=self._spelled(d for each in self._plain for d in each.disjuncts),
            is_looked_up=all(map(_is_looked_up, self._disjuncts())),
            window=_spell_window(window),
            within=self._spell_within(decision),
            absences=tuple(
                AbsenceView(
                    self._operand(absence.absent),
                    absence.kind.value,
                    self._absent(number),
                    _spell_window(absence.window),
                )
                for number, absence in enumerate(absences)
            ),
            grace_us=decision.grace_us,
            retention_us=clause.reach.under(defaultdict(int)),
            stratum=clause.query_class.stratum,
            others=tuple(users),
        )

    def _spell_within(self, decision: Decision) -> str:
        """Return the shortest WITHIN around it, the innermost where subscriptions give them."""
        given = [each for each in self._within if isinstance(each, Parameter)]
        return _spell_window(given[-1] if given else Window(decision.within_us))

    def _disjuncts(self) -> Iterator[Disjunct]:
        """Yield the alternatives of all predicates; one that asks nothing if there are none."""
        absent = [own for node in self._plain for unit in node.absences for _, own in unit.blocks]
        predicates = [*(node.disjuncts for node in self._plain), *absent]
        asking = [each for each in predicates if Disjunct() not in each]
        for disjuncts in asking or [(Disjunct(),)]:
            yield from disjuncts

    def _absent(self, number: int) -> str:
        """Return what is asked of an absent unit; of several blocks, of each."""
        asked: dict[int, list[Disjunct]] = defaultdict(list)
        for each in self._plain:
            for block, disjuncts in each.absences[number].blocks:
                asked[block] += disjuncts
        spelled = {block: self._spelled(disjuncts) for block, disjuncts in asked.items()}
        if len(spelled) == 1 or not any(spelled.values()):
            return next(iter(spelled.values()))
        return "; ".join(f"block {block}: {text or 'any'}" for block, text in spelled.items())

    def _spelled(self, disjuncts: Iterable[Disjunct]) -> str:
        """Return a predicate in the query's words; empty where it asks nothing."""
        found = list(dict.fromkeys(disjuncts))
        if Disjunct() in found:
            return ""
        return " OR ".join(dict.fromkeys(spell_disjunct(each, self._labels) for each in found))

    def _operand(self, node: Node) -> str:
        """Return what an operand is called here."""
        if decides(node):
            return f"decision {self._numbers[self._place(node)]}"
        match node:
            case int():
                return f"block {node}"
            case Unit(alternatives):
                return "block " + " | ".join(map(str, alternatives))
            case From(node=inner):
                return self._operand(inner)
            case Operator(kind=kind, left=left, right=right):
                return f"({self._operand(left)} {kind.value} {self._operand(right)})"
        raise AssertionError(node)

    def _place(self, node: Node) -> int:
        return next(i for i, each in enumerate(self._nodes) if each is node)


def _around(root: Node, node: Node) -> list[From]:
    """Return what bounds, keys or filters a node, the innermost last."""
    found = [
        each
        for each in nodes_below(root)
        if isinstance(each, From) and any(below is node for below in nodes_below(each))
    ]
    return found[::-1]


def _spell_window(window: Window | Parameter | None) -> str:
    if isinstance(window, Parameter):
        return f"${window.name}"
    if window is None or window.length_us >= INFINITE_US:
        return ""
    return render_duration(window.length_us)


def _is_looked_up(disjunct: Disjunct) -> bool:
    """Return whether rows that may be together are found by what they have in common."""
    return bool(disjunct.value_joins or disjunct.similarity_joins)
