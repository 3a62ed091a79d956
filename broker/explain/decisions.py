"""What a query decides, for `survey`: its decisions in words, and the clauses that these read.

An ordered statement has one decision for all its alternatives.  So the clauses of the join stand
apart from it: blocks, and operators below and above what is decided.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from broker.explain.model import AbsenceView, DecisionView, RepeatedView
from broker.explain.runways import chain_parts, how_found
from broker.explain.spelling import spell_disjunct, spell_length, spell_operand
from templates.chaindecision import ChainDecision
from templates.clause import Alternative, Clause
from templates.decision import Decision, DecisionKind
from templates.ordered import Chained, Ordered, Repeated, ordered_nodes
from templates.plain import plain_statements
from templates.plainnodes import decided_nodes
from templates.rundecision import RunDecision
from xscl.counting import counted_form
from xscl.path import Parameter
from xscl.query import INFINITE_US, Disjunct, Query
from xscl.sequence import (
    Absence,
    From,
    Node,
    Operator,
    Repetition,
    Unit,
    Window,
    absences_at,
    nodes_below,
)

__all__ = [
    "AnyDecision",
    "decided_clauses",
    "decision_numbers",
    "decision_views",
    "decisions_of",
    "joined_clauses",
]

AnyDecision = Decision | RunDecision | ChainDecision

Decisions = Mapping[int, AnyDecision]
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


def _is_settled(decision: AnyDecision) -> bool:
    return isinstance(decision, Decision) and decision.kind is DecisionKind.SETTLED


def decisions_of(alternatives: Iterable[Alternative]) -> dict[int, AnyDecision]:
    """Return the decisions of a query by their places."""
    return {
        origin: clause.query_class.decided.decision
        for origin, clause in decided_clauses(alternatives).items()
        if clause.query_class.decided is not None
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
    users: Mapping[AnyDecision, Sequence[str]],
) -> Iterator[DecisionView]:
    """Yield the decisions of a query; `users` are the queries that have each."""
    query = counted_form(query)
    every = (node for each in plain_statements(query) for node in ordered_nodes(each.root))
    plain = list(every)
    numbers = decision_numbers(alternatives)
    decisions = decisions_of(alternatives)
    for origin, clause in decided_clauses(alternatives).items():
        decision = decisions[origin]
        own = [each for each in plain if each.origin == origin]
        view = _View(query, numbers, origin, own)
        if isinstance(decision, Decision):
            yield view.of(decision, clause, users[decision])
        else:
            yield view.of_runs(decision, clause, users[decision])


def decision_numbers(alternatives: Iterable[Alternative]) -> dict[int, int]:
    """Return the numbers of a query's decisions, from 1, by their places.

    Several absences at one operator are one decision with it: the outermost has its place.
    """
    return {place: number for number, place in enumerate(decided_clauses(alternatives), 1)}


class _View:
    """One decision of a query: its node, and what it is in each plain statement."""

    def __init__(
        self,
        query: Query,
        numbers: Mapping[int, int],
        origin: int,
        plain: Sequence[Ordered | Repeated | Chained],
    ) -> None:
        self._labels = {variable.name: variable.label for variable in query.variables}
        self._nodes = decided_nodes(query)
        self._numbers = numbers
        self._origin = origin
        self._plain = [each for each in plain if isinstance(each, Ordered)]
        self._runs = [each for each in plain if not isinstance(each, Ordered)]
        self._root = query.root
        self._within = [n.within for n in _around(query.root, self._nodes[origin])]

    def of_runs(
        self, decision: RunDecision | ChainDecision, clause: Clause, users: Sequence[str]
    ) -> DecisionView:
        """Return the view of a repetition, or of a chain."""
        node = self._nodes[self._origin]
        within = self._spell_within(decision.within_us)
        window, kind = "", "+"
        operands: tuple[str, ...] = (self._unit(node),)
        before = self._before(node)
        absences: list[Absence] = []
        asked: list[Disjunct] = []
        if isinstance(node, From):
            assert node.strategy is not None
            parts, absences = chain_parts(node.node)
            operands, kind = tuple(map(self._unit, parts)), f"MATCH {node.strategy.value}"
        elif before is not None:
            absences, operator = before
            operands = (self._operand(operator.left), self._unit(node))
            window, kind = _spell_window(operator.window), operator.kind.value
            asked = [d for each in self._runs if isinstance(each, Repeated) for d in each.begin]
        return DecisionView(
            number=self._numbers[self._origin],
            kind=kind,
            operands=operands,
            asked=self._spelled(asked) if asked else "",
            is_looked_up=self._are_looked_up(),
            window=window,
            within=within,
            absences=tuple(
                AbsenceView(
                    self._operand(each.absent),
                    each.kind.value,
                    self._spelled(each.disjuncts),
                    _spell_window(each.window),
                )
                for each in absences
            ),
            grace_us=decision.grace_us,
            retention_us=clause.reach.under(defaultdict(int)),
            stratum=clause.query_class.stratum,
            others=tuple(users),
            repeated=tuple(self._repeated()),
            how=how_found(decision),
            is_open=decision.is_open,
        )

    def _before(self, node: Node) -> tuple[list[Absence], Operator] | None:
        """Return the operator whose right side a repetition is, and the absences at it."""
        for each in nodes_below(self._root):
            if isinstance(each, Operator) and each.right is node:
                around = [a for a in nodes_below(self._root) if isinstance(a, Absence)]
                return [a for a in around if absences_at(a)[1] is each], each
        return None

    def _unit(self, node: Node) -> str:
        if isinstance(node, Repetition):
            return f"{self._operand(node.unit)}+"
        return self._operand(node)

    def _repeated(self) -> Iterator[RepeatedView]:
        """Yield what is asked of the elements of each repetition."""
        inside = [n for n in nodes_below(self._nodes[self._origin]) if isinstance(n, Repetition)]
        for node in inside:
            yield RepeatedView(
                self._unit(node),
                self._spelled(node.disjuncts),
                _spell_window(node.gap),
                self._spelled(node.condition or ()),
                tuple(
                    f"{fold.name} = {spell_operand(fold.first, self._labels)}"
                    f" THEN {spell_operand(fold.following, self._labels)}"
                    for fold in node.folds
                ),
            )

    def _are_looked_up(self) -> bool:
        """Return whether elements are looked up by a key, or by what they have in common."""
        asked = [
            d
            for each in self._runs
            for d in (each.conditions() if isinstance(each, Chained) else each.each)
        ]
        keys = any(
            keys
            for each in self._runs
            for keys in (
                each.keys if isinstance(each, Repeated) else [k for s in each.steps for k in s.keys]
            )
        )
        return keys or any(test.function == "joins" for each in asked for test in each.tests)

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
            is_looked_up=_has_keys(decision) or all(map(_is_looked_up, self._disjuncts())),
            window=_spell_window(window),
            within=self._spell_within(decision.within_us),
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

    def _spell_within(self, within_us: int) -> str:
        """Return the shortest WITHIN around it, the innermost where subscriptions give them."""
        given = [each for each in self._within if isinstance(each, Parameter)]
        return _spell_window(given[-1] if given else Window(within_us))

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
        place = self._place(node)
        if place is not None and place in self._numbers:
            return f"decision {self._numbers[place]}"
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

    def _place(self, node: Node) -> int | None:
        """Return the place of the decision at a node; that of a repetition has its operator too."""
        operator = absences_at(node)[1]
        if isinstance(operator, Operator) and isinstance(operator.right, Repetition):
            node = operator.right
        return next((i for i, each in enumerate(self._nodes) if each is node), None)


def _around(root: Node, node: Node) -> list[From]:
    """Return what bounds, keys or filters a node, the innermost last."""
    found = [
        each
        for each in nodes_below(root)
        if isinstance(each, From) and any(below is node for below in nodes_below(each))
    ]
    return found[::-1]


def _spell_window(window: Window | Parameter | None) -> str:
    is_unbounded = isinstance(window, Window) and window.length_us >= INFINITE_US
    return "" if window is None or is_unbounded else spell_length(window)


def _has_keys(decision: Decision) -> bool:
    """Return whether pairs, or what is absent, are looked up by data that both are asked for."""
    cases = [case for absent in decision.absences for case in absent.cases]
    return all(each.asked.same for each in decision.fits or cases)


def _is_looked_up(disjunct: Disjunct) -> bool:
    """Return whether rows that may be together are found by what they have in common."""
    return bool(disjunct.value_joins or disjunct.similarity_joins)
