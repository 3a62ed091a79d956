"""Queries in which something is decided (sections 12, 14 and 15), by nested loops.

A contender is a choice of documents and of nodes for the author's variables that the query looks
at.  Paths from variables are existential: a contender has as many rows as there are choices of all
other nodes, and a predicate holds of contenders if it does of some row of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

from broker.documents.document import Document
from oracle.conditions import Facts, all_of, applied, compared_in
from oracle.freshpaths import FreshPath, fresh_paths, without_fresh
from oracle.operators import Rules
from oracle.paths import bindings, select
from oracle.tree import Node as DocumentNode
from oracle.values import compare_with_constant
from xscl.path import Literal, Parameter
from xscl.query import (
    INFINITE_US,
    Absence,
    AbsenceKind,
    Disjunct,
    From,
    Key,
    Node,
    Operator,
    OperatorKind,
    Query,
    Unit,
)
from xscl.sequence import nodes_below

__all__ = ["Contender", "Decisions", "Row", "Timeline"]

Read = Sequence[tuple[Document, DocumentNode]]
"""The documents that a block reads, with their trees."""

Nodes = frozenset[tuple[str, DocumentNode]]


@dataclass(frozen=True, slots=True)
class Row:
    """A node for each variable, and the variables that a predicate has compared."""

    nodes: Nodes
    compared: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Contender:
    """A tuple of an operand; `chosen` are the nodes of the author's variables looked at."""

    blocks: tuple[int, ...]
    documents: tuple[Document, ...]
    chosen: Nodes
    rows: frozenset[Row]
    start_us: int
    end_us: int
    position: tuple[int, int, str]
    watermark_us: int
    parts: tuple[Contender, ...] = ()

    def value(self, variable: str) -> str:
        """Return the value of a variable that is chosen."""
        return dict(self.chosen)[variable].value


@dataclass(frozen=True, slots=True)
class Timeline:
    """The documents from outside in order, as (docid, event time), and the grace of a query."""

    documents: Sequence[tuple[int, int]]
    grace_us: int

    def settled(self, time_us: int) -> int | None:
        """Return the document that settles a time, None while none does."""
        for docid, end_us in self.documents:
            if end_us > time_us + self.grace_us:
                return docid
        return None


@dataclass(frozen=True, slots=True)
class _Around:
    """What the clauses around a node ask of it: all WITHIN, all SAME."""

    within: tuple[int, ...] = ()
    keys: tuple[Key, ...] = ()

    def reach_us(self, window_us: int) -> int:
        """Return a window, or the innermost WITHIN's where it has no bound."""
        return window_us if window_us < INFINITE_US else [INFINITE_US, *self.within][-1]


class Decisions:
    """The tuples of one query under one assignment."""

    def __init__(self, query: Query, read: Sequence[Read], rules: Rules, clock: Timeline) -> None:
        self.query = query
        self.read = read
        self.rules = rules
        self.clock = clock
        self.fresh: dict[tuple[int, str], FreshPath] = {
            (number, each.variable): each
            for number, block in enumerate(query.blocks)
            for each in fresh_paths(block.path)
        }
        self.paths = {name for _, name in self.fresh}
        keys = {
            name
            for node in nodes_below(query.root)
            if isinstance(node, From)
            for key in node.keys
            for _, name in key.variables
        }
        asked = {v for each in self._predicates() for d in each for v in compared_in(d)}
        self.looked_at = (asked | keys | set(query.visible())) - self.paths

    def _predicates(self) -> Iterator[Sequence[Disjunct]]:
        for node in nodes_below(self.query.root):
            match node:
                case Operator(disjuncts=disjuncts) | Absence(disjuncts=disjuncts):
                    yield disjuncts
                case From(where=where) if where is not None:
                    yield where

    def contenders(self, node: Node, around: _Around | None = None) -> list[Contender]:
        """Return the tuples of a node under the clauses around it."""
        around = around or _Around()
        match node:
            case int():
                found = list(self._block(node, around))
            case Unit(alternatives):
                found = [one for block in alternatives for one in self._block(block, around)]
            case From():
                found = self._from(node, around)
            case Operator(kind=OperatorKind.NEXT) | Absence(kind=AbsenceKind.BETWEEN):
                found = self._between(node, around)
            case Operator():
                found = self._open(node, around)
            case Absence(kind=AbsenceKind.BEFORE):
                found = self._before(node, around)
            case Absence():
                found = self._not(node, around)
            case _:
                raise AssertionError(node)
        return [o for o in found if all(o.end_us - o.start_us <= each for each in around.within)]

    # -- units and froms -----------------------------------------------------------------------

    def _block(self, number: int, around: _Around) -> Iterator[Contender]:
        path = without_fresh(self.query.blocks[number].path)
        for document, tree in self.read[number]:
            rows: dict[Nodes, set[Row]] = {}
            for assignment in bindings(path, tree, self.rules.parameters):
                for keyed in self._keyed(number, tree, around.keys):
                    nodes = assignment | keyed
                    chosen = frozenset(each for each in nodes if each[0] in self.looked_at)
                    compared = frozenset(name for name, _ in keyed)
                    rows.setdefault(chosen, set()).add(Row(nodes, compared))
            for chosen, own in rows.items():
                yield Contender(
                    (number,),
                    (document,),
                    chosen,
                    frozenset(own),
                    document.start_us,
                    document.end_us,
                    (document.docid, document.depth, document.match_id),
                    document.watermark_us,
                )

    def _keyed(self, block: int, tree: DocumentNode, keys: Sequence[Key]) -> list[Nodes]:
        """Return the choices of a node for each key that holds of a unit."""
        found: list[Nodes] = [frozenset()]
        for key in keys:
            own = [
                (key.variable(block), node)
                for node in {n for n, _ in select(key.path, tree, self.rules.parameters)}
                if node.value and self._is_literal(key, node.value)
            ]
            found = [each | {one} for each in found for one in own]
        return found

    def _is_literal(self, key: Key, value: str) -> bool:
        match key.literal:
            case Literal(wanted):
                return compare_with_constant(value, "=", wanted)
            case Parameter(name):
                return compare_with_constant(value, "=", self.rules.parameters[name])
        return True

    def _from(self, source: From, around: _Around) -> list[Contender]:
        own = () if source.within is None else (self.rules.length_us(source.within),)
        inside = _Around((*around.within, *own), (*around.keys, *source.keys))
        found = self.contenders(source.node, inside)
        if source.where is None:
            return found
        kept = [(one, self._holding(source.where, one)) for one in found]
        return [replace(one, rows=rows) for one, rows in kept if rows]

    # -- operators -----------------------------------------------------------------------------

    def _open(self, operator: Operator, around: _Around) -> list[Contender]:
        window_us = around.reach_us(self.rules.length_us(operator.window))
        found = []
        lefts, rights = (self.contenders(n, around) for n in (operator.left, operator.right))
        for left, right in product(lefts, rights):
            if operator.kind is OperatorKind.JOIN:
                in_time = _is_within(abs(right.end_us - left.end_us), window_us)
                in_time = in_time and not _share(left, right)
            else:
                in_time = _follows(right, left)
                in_time = in_time and _is_within(right.end_us - left.end_us, window_us)
            if in_time and self._meet(window_us, left, right) and _same(around, left, right):
                rows = self._holding(operator.disjuncts, left, right)
                if rows:
                    found.append(_tuple(left, right, rows))
        return found

    def _between(self, node: Operator | Absence, around: _Around) -> list[Contender]:
        """Return the decided tuples of FOLLOWED BY or NEXT with the UNLESS behind it."""
        absences: list[Absence] = []
        while isinstance(node, Absence):
            absences.append(node)
            assert isinstance(node.operand, (Operator, Absence))
            node = node.operand
        window_us = around.reach_us(self.rules.length_us(node.window))
        rights = self.contenders(node.right, around)
        found: list[Contender] = []
        for left in self.contenders(node.left, around):
            fitting = [
                decided
                for right in rights
                if _follows(right, left)
                and _is_within(right.end_us - left.end_us, window_us)
                and all(right.end_us - left.start_us <= each for each in around.within)
                and self._meet(window_us, left, right)
                and _same(around, left, right)
                and (rows := self._holding(node.disjuncts, left, right))
                and (decided := self._decided((left, right), rows, left.start_us, right.end_us))
            ]
            if node.kind is OperatorKind.NEXT:
                order = [(one.position[0], one.end_us) for one in fitting]
                least = min(order, default=None)
                fitting = [o for o, at in zip(fitting, order, strict=True) if at == least]
            found += fitting
        for absence in absences:
            nears = self._absent(absence, around)
            found = [
                one
                for one in found
                if not self._stands_between(absence, nears, one, window_us, around)
            ]
        return [self._with_compared(one, absences) for one in found]

    def _stands_between(
        self,
        absence: Absence,
        nears: Sequence[Contender],
        one: Contender,
        window_us: int,
        around: _Around,
    ) -> bool:
        left, right = one.parts
        limit_us = INFINITE_US if absence.window is None else self.rules.length_us(absence.window)
        return any(
            self._is_there(near, one)
            and _follows(near, left)
            and _follows(right, near)
            and _is_within(right.end_us - near.end_us, limit_us)
            and self._meet(window_us, left, near)
            and self._meet(window_us, right, near)
            and _same(around, one, near)
            and self._holding(absence.disjuncts, one, near)
            for near in nears
        )

    def _before(self, node: Absence, around: _Around) -> list[Contender]:
        absences: list[Absence] = []
        operand: Node = node
        while isinstance(operand, Absence) and operand.kind is AbsenceKind.BEFORE:
            absences.append(operand)
            operand = operand.operand
        found = [
            decided
            for one in self.contenders(operand, around)
            if (decided := self._decided((one,), one.rows, one.start_us, one.end_us))
        ]
        for absence in absences:
            assert absence.window is not None
            window_us = self.rules.length_us(absence.window)
            nears = self._absent(absence, around)
            found = [
                one
                for one in found
                if not any(
                    self._is_there(near, one)
                    and _follows(one, near)
                    and _is_within(one.end_us - near.end_us, window_us)
                    and self._meet(window_us, one.parts[0], near)
                    and _same(around, one, near)
                    and self._holding(absence.disjuncts, one, near)
                    for near in nears
                )
            ]
        return [self._with_compared(one, absences) for one in found]

    def _not(self, node: Absence, around: _Around) -> list[Contender]:
        """Return the tuples of NOT FOLLOWED BY and of NOT JOIN."""
        own_us = INFINITE_US if node.window is None else self.rules.length_us(node.window)
        window_us = around.reach_us(own_us)
        nears = self._absent(node, around)
        found: list[Contender] = []
        for left in self.contenders(node.operand, around):
            limits_us = [left.start_us + each for each in around.within]
            until_us = min(left.end_us + window_us, *limits_us, INFINITE_US)
            one = self._decided((left,), left.rows, left.start_us, until_us)
            if one is not None and not any(
                self._is_there(near, one)
                and near.end_us <= until_us
                and (
                    _follows(near, left)
                    if node.kind is AbsenceKind.AFTER
                    else abs(near.end_us - left.end_us) <= window_us and not _share(left, near)
                )
                and self._meet(window_us, left, near)
                and _same(around, left, near)
                and self._holding(node.disjuncts, left, near)
                for near in nears
            ):
                found.append(one)
        return [self._with_compared(one, [node]) for one in found]

    def _absent(self, absence: Absence, around: _Around) -> list[Contender]:
        """Return the tuples of an absent unit, which no WITHIN bounds."""
        return self.contenders(absence.absent, _Around((), around.keys))

    # -- what is decided -----------------------------------------------------------------------

    def _decided(
        self, parts: tuple[Contender, ...], rows: Iterable[Row], start_us: int, end_us: int
    ) -> Contender | None:
        """Return a tuple at the position at which it is decided, None if it never is."""
        settled = self.clock.settled(end_us)
        if settled is None:
            return None
        docid = max(settled, *(each.position[0] for each in parts))
        return Contender(
            tuple(block for each in parts for block in each.blocks),
            tuple(document for each in parts for document in each.documents),
            frozenset().union(*(each.chosen for each in parts)),
            frozenset(rows),
            start_us,
            end_us,
            (docid, 1 + max(each.position[1] for each in parts), ""),
            max(end_us + self.clock.grace_us, *(each.watermark_us for each in parts)),
            parts,
        )

    def _is_there(self, near: Contender, one: Contender) -> bool:
        return near.position[0] <= one.position[0]

    def _meet(self, window_us: int, one: Contender, other: Contender) -> bool:
        """Section 1.1: the earlier was still remembered when the later came."""
        if one.position == other.position or window_us >= INFINITE_US:
            return True
        earlier, later = sorted((one, other), key=lambda each: each.position)
        return earlier.end_us >= later.watermark_us - window_us - self.rules.lateness_us

    # -- predicates ----------------------------------------------------------------------------

    def _holding(self, disjuncts: Sequence[Disjunct], *operands: Contender) -> frozenset[Row]:
        """Return the rows of operands together for which a predicate holds."""
        blocks = [block for each in operands for block in each.blocks]
        owners = {
            variable.name: document
            for each in operands
            for block, document in zip(each.blocks, each.documents, strict=True)
            for variable in self.query.variables
            if variable.block == block
        }
        start_us = min(each.start_us for each in operands)
        end_us = max(each.end_us for each in operands)
        found: set[Row] = set()
        for disjunct in disjuncts:
            asked = applied(disjunct, owners)
            if asked is None:
                continue
            compared = compared_in(asked)
            paths = [p for (block, _), p in self.fresh.items() if block in blocks]
            paths = [path for path in paths if path.variable in compared]
            for rows in product(*(each.rows for each in operands)):
                nodes = dict(pair for row in rows for pair in row.nodes)
                before = frozenset(name for row in rows for name in row.compared)
                for extended in self._extended(nodes, paths):
                    facts = Facts(extended, owners, start_us, end_us, self.rules.parameters)
                    if all_of(asked, facts):
                        found.add(Row(frozenset(extended.items()), before | compared))
        return frozenset(found)

    def _extended(
        self, nodes: Mapping[str, DocumentNode], paths: Sequence[FreshPath]
    ) -> Iterator[dict[str, DocumentNode]]:
        choices = [
            [
                (path.variable, node)
                for node, _ in select(path.path, nodes[path.base], self.rules.parameters)
            ]
            for path in paths
        ]
        for choice in product(*choices):
            yield {**nodes, **dict(choice)}

    def _with_compared(self, one: Contender, absences: Sequence[Absence]) -> Contender:
        """Add what absences compare of a tuple that they leave, but for paths."""
        bound = {v.name for v in self.query.variables if v.block in one.blocks}
        asked = {name for each in absences for d in each.disjuncts for name in compared_in(d)}
        more = frozenset((asked & bound) - self.paths)
        return replace(one, rows=frozenset(Row(r.nodes, r.compared | more) for r in one.rows))


def _tuple(left: Contender, right: Contender, rows: frozenset[Row]) -> Contender:
    """Return the tuple of an open operator: it stands where its newest part does."""
    newest = max(left, right, key=lambda each: each.position)
    return Contender(
        left.blocks + right.blocks,
        left.documents + right.documents,
        left.chosen | right.chosen,
        rows,
        min(left.start_us, right.start_us),
        max(left.end_us, right.end_us),
        newest.position,
        newest.watermark_us,
    )


def _follows(later: Contender, earlier: Contender) -> bool:
    return earlier.end_us < later.start_us


def _is_within(distance_us: int, window_us: int) -> bool:
    return window_us >= INFINITE_US or distance_us <= window_us


def _share(left: Contender, right: Contender) -> bool:
    """Return whether two tuples have a document in common."""
    return not {id(d) for d in left.documents}.isdisjoint(id(d) for d in right.documents)


def _same(around: _Around, left: Contender, right: Contender) -> bool:
    """Return whether two tuples have the same keys: all documents of each have the same."""
    return all(
        left.value(key.variable(left.blocks[0])) == right.value(key.variable(right.blocks[0]))
        for key in around.keys
    )
