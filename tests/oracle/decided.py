"""Queries in which something is decided (sections 12, 14 and 15), by nested loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from oracle.chains import chains
from oracle.conditions import Facts, TableRows, all_of, applied, compared, compared_in
from oracle.contender import (
    Around,
    Contender,
    Nodes,
    Read,
    Row,
    Run,
    Timeline,
    follows,
    is_within,
    joined_runs,
    open_tuple,
    same,
    share,
)
from oracle.freshpaths import FreshPath, fresh_paths, without_fresh
from oracle.operators import Rules
from oracle.paths import bindings, select
from oracle.runs import Runs, bases_in, with_optional
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
    Operand,
    Operator,
    OperatorKind,
    Query,
    Repetition,
    Strategy,
    Unit,
    operand_variables,
)
from xscl.sequence import blocks_below, is_chain, nodes_below
from xscl.table import Action, DeleteRow, SetCell

__all__ = ["Decisions"]


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
        self.repeated = {
            block
            for node in nodes_below(query.root)
            if isinstance(node, Repetition)
            for block in blocks_below(node)
        }
        self.optional = {p.variable: p for (b, _), p in self.fresh.items() if b in self.repeated}
        self.runs = Runs(self)
        keys = {
            name
            for node in nodes_below(query.root)
            if isinstance(node, From)
            for key in node.keys
            for _, name in key.variables
        }
        asked = {v for each in self._predicates() for d in each for v in compared_in(d)}
        every = {each.variable: each for each in self.fresh.values()}
        elements = {
            v
            for each in self._predicates()
            for d in each
            for v in bases_in(with_optional(d, self.optional))
        }
        of_elements = {v.name for v in query.variables if v.block in self.repeated} & elements
        of_elements |= {
            v
            for each in self.runs.predicates()
            for d in each
            for v in bases_in(with_optional(d, every))
        }
        behind = {v for operand in query.outcome_operands for v in operand_variables(operand)}
        acted = {v for operand in operands_of(query.actions) for v in compared(operand)}
        shown = set(query.visible())
        self.looked_at = (asked | acted | behind | keys | shown | of_elements) - self.paths
        self.rows: TableRows | None = None

    def settled(self) -> tuple[list[Contender], Sequence[Disjunct] | None]:
        """Return the decided tuples of a statement with tables, and what WHERE asks of them."""
        root, where = self.query.root, None
        if isinstance(root, From):
            root, where = replace(root, where=None), root.where
        found = self.contenders(root)
        if not _is_decided(root):
            alone = (self.decided((o,), o.rows, o.start_us, o.end_us) for o in found)
            found = [one for one in alone if one is not None]
        return found, where

    def all_decided(self) -> list[Contender]:
        """Return the tuples of a statement with rows or limits, all of which are decided."""
        found = self.contenders(self.query.root)
        if _is_decided(self.query.root):
            return found
        alone = (self.decided((one,), one.rows, one.start_us, one.end_us) for one in found)
        return [one for one in alone if one is not None]

    def matching(
        self, where: Sequence[Disjunct] | None, one: Contender, rows: TableRows
    ) -> list[tuple[Row, Facts]]:
        """Return the rows of a contender for which WHERE holds beside tables, with their facts."""
        self.rows = rows
        kept = one.rows if where is None else self.holding(where, one)
        facts = self.facts(one)
        return [
            (row, replace(facts, nodes=dict(row.nodes)))
            for row in sorted(kept, key=lambda row: sorted((v, n.number) for v, n in row.nodes))
        ]

    def _predicates(self) -> Iterator[Sequence[Disjunct]]:
        for node in nodes_below(self.query.root):
            match node:
                case Operator(disjuncts=disjuncts) | Absence(disjuncts=disjuncts):
                    yield disjuncts
                case From(where=where) if where is not None:
                    yield where

    def contenders(self, node: Node, around: Around | None = None) -> list[Contender]:
        """Return the tuples of a node under the clauses around it."""
        around = around or Around()
        match node:
            case int():
                found = list(self._block(node, around))
            case Unit(alternatives):
                found = [one for block in alternatives for one in self._block(block, around)]
            case From():
                found = self._from(node, around)
            case Repetition():
                found = self.runs.leading(node, around)
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

    def _block(self, number: int, around: Around) -> Iterator[Contender]:
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

    def _from(self, source: From, around: Around) -> list[Contender]:
        own = () if source.within is None else (self.rules.length_us(source.within),)
        inside = Around((*around.within, *own), (*around.keys, *source.keys))
        if source.strategy in (None, Strategy.ANY):
            found = self.contenders(source.node, inside)
        else:
            found = chains(self, source, inside)
        if source.where is None:
            return found
        kept = [(one, self.holding(source.where, one)) for one in found]
        return [replace(one, rows=rows) for one, rows in kept if rows]

    # -- operators -----------------------------------------------------------------------------

    def _open(self, operator: Operator, around: Around) -> list[Contender]:
        if isinstance(operator.right, Repetition):
            return self.runs.behind(operator, around)
        window_us = around.reach_us(self.rules.length_us(operator.window))
        found = []
        lefts, rights = (self.contenders(n, around) for n in (operator.left, operator.right))
        for left, right in product(lefts, rights):
            if operator.kind is OperatorKind.JOIN:
                in_time = is_within(abs(right.end_us - left.end_us), window_us)
                in_time = in_time and not share(left, right)
            else:
                in_time = follows(right, left)
                in_time = in_time and is_within(right.end_us - left.end_us, window_us)
            if in_time and self.meet(window_us, left, right) and same(around, left, right):
                rows = self.holding(operator.disjuncts, left, right)
                if rows:
                    found.append(open_tuple(left, right, rows))
        return found

    def _between(self, node: Operator | Absence, around: Around) -> list[Contender]:
        """Return the decided tuples of FOLLOWED BY or NEXT with the UNLESS behind it."""
        absences: list[Absence] = []
        while isinstance(node, Absence):
            absences.append(node)
            assert isinstance(node.operand, (Operator, Absence))
            node = node.operand
        window_us = around.reach_us(self.rules.length_us(node.window))
        found: list[Contender] = []
        if isinstance(node.right, Repetition):
            found = self.runs.behind(node, around)
            if node.kind is OperatorKind.FOLLOWED_BY:
                found = [
                    settled
                    for one in found
                    if (
                        settled := self.decided(
                            one.parts, one.rows, one.start_us, one.end_us, one.runs
                        )
                    )
                ]
        else:
            found = self._pairs(node, window_us, around)
        for absence in absences:
            nears = self.absent(absence, around)
            found = [
                one
                for one in found
                if not self._stands_between(absence, nears, one, window_us, around)
            ]
        return [self.with_compared(one, [each.disjuncts for each in absences]) for one in found]

    def _pairs(self, node: Operator, window_us: int, around: Around) -> list[Contender]:
        """Return the decided pairs of an operator: all, or the next ones."""
        found: list[Contender] = []
        rights = self.contenders(node.right, around)
        for left in self.contenders(node.left, around):
            fitting = [
                decided
                for right in rights
                if follows(right, left)
                and is_within(right.end_us - left.end_us, window_us)
                and all(right.end_us - left.start_us <= each for each in around.within)
                and self.meet(window_us, left, right)
                and same(around, left, right)
                and (rows := self.holding(node.disjuncts, left, right))
                and (decided := self.decided((left, right), rows, left.start_us, right.end_us))
            ]
            if node.kind is OperatorKind.NEXT:
                order = [(one.position[0], one.end_us) for one in fitting]
                least = min(order, default=None)
                fitting = [o for o, at in zip(fitting, order, strict=True) if at == least]
            found += fitting
        return found

    def _stands_between(
        self,
        absence: Absence,
        nears: Sequence[Contender],
        one: Contender,
        window_us: int,
        around: Around,
    ) -> bool:
        left, right, *_ = one.parts
        limit_us = INFINITE_US if absence.window is None else self.rules.length_us(absence.window)
        return any(
            self.is_there(near, one)
            and follows(near, left)
            and follows(right, near)
            and is_within(right.end_us - near.end_us, limit_us)
            and self.meet(window_us, left, near)
            and self.meet(window_us, right, near)
            and same(around, one, near)
            and self.holding(absence.disjuncts, *(one.parts[:2] if one.runs else [one]), near)
            for near in nears
        )

    def _before(self, node: Absence, around: Around) -> list[Contender]:
        absences: list[Absence] = []
        operand: Node = node
        while isinstance(operand, Absence) and operand.kind is AbsenceKind.BEFORE:
            absences.append(operand)
            operand = operand.operand
        found = [
            decided
            for one in self.contenders(operand, around)
            if (decided := self.decided((one,), one.rows, one.start_us, one.end_us))
        ]
        for absence in absences:
            assert absence.window is not None
            window_us = self.rules.length_us(absence.window)
            nears = self.absent(absence, around)
            found = [
                one
                for one in found
                if not any(
                    self.is_there(near, one)
                    and follows(one, near)
                    and is_within(one.end_us - near.end_us, window_us)
                    and self.meet(window_us, one.parts[0], near)
                    and same(around, one, near)
                    and self.holding(absence.disjuncts, one, near)
                    for near in nears
                )
            ]
        return [self.with_compared(one, [each.disjuncts for each in absences]) for one in found]

    def _not(self, node: Absence, around: Around) -> list[Contender]:
        """Return the tuples of NOT FOLLOWED BY and of NOT JOIN."""
        return self.absent_behind(node, self.contenders(node.operand, around), around)

    def absent_behind(
        self, node: Absence, lefts: Sequence[Contender], around: Around
    ) -> list[Contender]:
        """Return the tuples of an operand behind which, or around which, nothing stands."""
        own_us = INFINITE_US if node.window is None else self.rules.length_us(node.window)
        window_us = around.reach_us(own_us)
        nears = self.absent(node, around)
        found: list[Contender] = []
        for left in lefts:
            limits_us = [left.start_us + each for each in around.within]
            until_us = min(left.end_us + window_us, *limits_us, INFINITE_US)
            one = self.decided((left,), left.rows, left.start_us, until_us)
            if one is not None and not any(
                self.is_there(near, one)
                and near.end_us <= until_us
                and (
                    follows(near, left)
                    if node.kind is AbsenceKind.AFTER
                    else abs(near.end_us - left.end_us) <= window_us and not share(left, near)
                )
                and self.meet(window_us, left, near)
                and same(around, left, near)
                and self.holding(node.disjuncts, left, near)
                for near in nears
            ):
                found.append(one)
        return [self.with_compared(one, [node.disjuncts]) for one in found]

    def absent(self, absence: Absence, around: Around) -> list[Contender]:
        """Return the tuples of an absent unit, which no WITHIN bounds."""
        return self.contenders(absence.absent, Around((), around.keys))

    # -- what is decided -----------------------------------------------------------------------

    def decided(
        self,
        parts: tuple[Contender, ...],
        rows: Iterable[Row],
        start_us: int,
        end_us: int,
        runs: tuple[Run, ...] | None = None,
    ) -> Contender | None:
        """Return a tuple at the position at which it is decided, None if it never is."""
        settled = self.clock.settled(end_us)
        if settled is None:
            return None
        docid = max(settled, *(each.position[0] for each in parts))
        return Contender(
            tuple(block for each in parts for block in each.blocks),
            tuple(document for each in parts for document in each.documents),
            frozenset().union(*(each.chosen for each in _plain(parts, runs))),
            frozenset(rows),
            start_us,
            end_us,
            (docid, 1 + max(each.position[1] for each in parts), ""),
            max(end_us + self.clock.grace_us, *(each.watermark_us for each in parts)),
            parts,
            joined_runs(*parts) if runs is None else runs,
        )

    def is_there(self, near: Contender, one: Contender) -> bool:
        return near.position[0] <= one.position[0]

    def meet(self, window_us: int, one: Contender, other: Contender) -> bool:
        """Section 1.1: the earlier was still remembered when the later came."""
        if one.position == other.position or window_us >= INFINITE_US:
            return True
        earlier, later = sorted((one, other), key=lambda each: each.position)
        return earlier.end_us >= later.watermark_us - window_us - self.rules.lateness_us

    # -- predicates ----------------------------------------------------------------------------

    def holding(self, disjuncts: Sequence[Disjunct], *operands: Contender) -> frozenset[Row]:
        """Return the rows of operands together for which a predicate holds."""
        facts = self.facts(*operands)
        bound = {*facts.owners, *facts.elements, *facts.folds}
        found: set[Row] = set()
        for disjunct in disjuncts:
            asked = applied(with_optional(disjunct, self.optional), bound)
            if asked is None:
                continue
            compared = compared_in(asked) - facts.elements.keys() - facts.folds.keys()
            blocks = [block for each in operands for block in each.blocks]
            paths = [p for (block, _), p in self.fresh.items() if block in blocks]
            paths = [path for path in paths if path.variable in compared]
            for rows in product(*(each.rows for each in operands)):
                nodes = dict(pair for row in rows for pair in row.nodes)
                before = frozenset(name for row in rows for name in row.compared)
                similar = frozenset(join for row in rows for join in row.similar)
                similar |= frozenset(asked.similarity_joins)
                for extended in self.extended(nodes, paths):
                    if all_of(asked, replace(facts, nodes=extended)):
                        found.add(Row(frozenset(extended.items()), before | compared, similar))
        return frozenset(found)

    def facts(self, *operands: Contender) -> Facts:
        """Return what is known of operands together, but for the nodes of a row of each."""
        owners = {
            variable.name: document
            for each in operands
            for place, (block, document) in enumerate(zip(each.blocks, each.documents, strict=True))
            if place not in each.repeated
            for variable in self.query.variables
            if variable.block == block
        }
        runs = [run for each in operands for run in each.runs]
        elements = {
            variable.name: tuple(map(self.element, run.elements))
            for run in runs
            for variable in self.query.variables
            if variable.block in run.blocks
        }
        return Facts(
            {},
            owners,
            min(each.start_us for each in operands),
            max(each.end_us for each in operands),
            self.rules.parameters,
            elements,
            folds={name: values for run in runs for name, values in run.folds},
            rows=self.rows,
        )

    def element(self, one: Contender) -> Facts:
        """Return what is known of an element of a run."""
        return replace(self.facts(one), nodes=dict(one.chosen))

    def extended(
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

    def with_compared(self, one: Contender, predicates: Sequence[Sequence[Disjunct]]) -> Contender:
        """Add what predicates compare of a tuple that they leave, but for paths."""
        bound = {
            variable.name
            for place, block in enumerate(one.blocks)
            if place not in one.repeated
            for variable in self.query.variables
            if variable.block == block
        }
        asked = {name for each in predicates for d in each for name in compared_in(d)}
        more = frozenset((asked & bound) - self.paths)
        rows = frozenset(replace(row, compared=row.compared | more) for row in one.rows)
        return replace(one, rows=rows)


def _plain(parts: Sequence[Contender], runs: tuple[Run, ...] | None) -> Sequence[Contender]:
    """Return the parts that are no elements of a run."""
    elements = [] if runs is None else [id(each) for run in runs for each in run.elements]
    return [each for each in parts if id(each) not in elements]


def _is_decided(node: Node) -> bool:
    """Return whether a node's tuples are decided already."""
    if isinstance(node, From):
        return is_chain(node) or _is_decided(node.node)
    is_next = isinstance(node, Operator) and node.kind is OperatorKind.NEXT
    return is_next or isinstance(node, Absence)


def operands_of(actions: Sequence[Action]) -> list[Operand]:
    """Return what actions read: keys and values, in the order of the text."""
    found: list[Operand] = []
    for action in actions:
        match action:
            case SetCell(cell, value):
                found += [cell.row.key, value]
            case DeleteRow(row):
                found.append(row.key)
    return found
