"""From a query to plain ones, made of blocks, FOLLOWED BY and JOIN alone.

What is sugar over joins is taken out here, before anything is compiled (semantics, section 13):

    ( a | b )   a statement for each choice of alternatives; a comparison that mentions a variable
                which the choice does not bind is left out
    U+          a `Repeated` node (`templates.repeated`); in conditions its variables are those of
                elements
    MATCH       a `Chained` node for the whole chain (`templates.chained`)
    SAME        a variable for each block and key, and value joins of neighbours
    WITHIN      the window of operators that have none, and `dur() <= T` of each operator
    WHERE       further conditions of the operator whose tuples it keeps; where the statement uses
                tables, of its decided tuples
    of a block  conditions of the operator that reads it; `dur()` is that of its document

All of these are open: a further tuple below adds tuples above.  So it does not matter whether a
condition is asked of an operator's tuples or above it, and the matches of the plain statements
together are those of the query.  An operator that chooses is not so: nothing is moved across it.
It becomes an `Ordered` node, which says what is asked of its operands and, apart, of what it gives;
its absent units keep their alternatives, since all of them take away from one decision.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any, cast

from templates.datatests import without_data
from templates.decision import DecisionKind
from templates.elements import (
    operand_with_elements,
)
from templates.madejoins import with_made_joins
from templates.ordered import (
    Chained,
    Kept,
    Ordered,
    PlainNode,
    Repeated,
)
from templates.outcome import with_outcome
from templates.plainnodes import Around, ImpossibleError, PlainNodes, PlainPart
from templates.predicates import Disjuncts, with_tested_joins
from xscl.comparison import UNBOUND
from xscl.counting import counted_form, is_counted
from xscl.query import (
    INFINITE_US,
    Absence,
    Cell,
    Disjunct,
    From,
    Operand,
    Operator,
    Query,
    Repetition,
    Row,
    Unit,
)
from xscl.sequence import blocks_below, is_of_joins, nodes_below
from xscl.table import Action, DeleteRow, SetCell

__all__ = ["plain_statements"]


def plain_statements(query: Query) -> tuple[Query, ...]:
    """Return the plain statements whose matches together are those of a query.

    Each has all of the query's blocks; blocks that stand in its `root` are asked for, and its
    variables are theirs.
    """
    query = counted_form(query)
    if is_of_joins(query.root) and not query.is_settled:
        return (_joining(with_tested_joins(query)),)
    nodes = list(nodes_below(query.root))
    absent = [node.absent for node in nodes if isinstance(node, Absence)]
    repeated = [node.unit for node in nodes if isinstance(node, Repetition)]
    apart = {block for unit in absent for block in blocks_below(unit)}
    own = {id(unit) for unit in (*absent, *repeated)}
    units = [node for node in nodes if isinstance(node, Unit) and id(node) not in own]
    statements: list[Query] = []
    for choice in product(*(unit.alternatives for unit in units)):
        left_out = {b for unit in units for b in unit.alternatives}.difference(choice)
        variables = tuple(v for v in query.variables if v.block not in left_out)
        bound = frozenset(v.name for v in variables if v.block not in apart)
        made = PlainNodes(query, dict(zip(units, choice, strict=True)), bound)
        plain = _Statement(query, made)
        root = plain.root()
        if root is not None:
            source: Any = root
            statement = replace(
                plain.behind(),
                blocks=made.keys.blocks(),
                root=source,
                variables=(*variables, *made.keys.carried()),
                actions=tuple(plain.actions()),
            )
            statements.append(_joining(statement))
    return tuple(statements)


def _joining(statement: Query) -> Query:
    """Return a statement that joins by texts that are made, where by nothing else."""
    root = with_made_joins(statement, cast(Any, statement.root))
    return statement if root is statement.root else replace(statement, root=root)


class _Statement:
    """The plain statement of one choice of alternatives, of which `nodes` are made."""

    def __init__(self, query: Query, nodes: PlainNodes) -> None:
        self.query = query
        self._nodes = nodes

    def root(self) -> PlainNode | None:
        """Return the root of the plain statement, None where it can have no match."""
        try:
            if self.query.is_settled:
                return self._settled()
            part = self._nodes.part(self.query.root, Around())
        except ImpossibleError:
            return None
        if isinstance(part.node, int) and part.conditions != (Disjunct(),):
            return From(part.node, where=part.conditions)
        return part.node

    def _settled(self) -> PlainNode:
        """Return the root of a statement whose tuples are all decided.

        Where it uses tables, WHERE stands behind that.
        """
        source = self.query.root
        where: Disjuncts = (Disjunct(),)
        if self.query.tables and isinstance(source, From) and source.where is not None:
            where = self._nodes.binding.predicate(source.where)
            origin = self._nodes.origins.get(id(source))
            source = replace(source, where=None)
            if origin is not None:
                self._nodes.origins[id(source)] = origin
        around = Around()
        part = self._nodes.part(source, around)
        if isinstance(part.node, Repeated) and is_counted(self.query):
            return Kept(part.node, where)
        match part.node:
            case Kept(node, kept) if _is_decided(node):
                return Kept(node, self._nodes.all_of(kept, where))
            case Chained() | Ordered() | Repeated() if _is_decided(part.node):
                return Kept(part.node, where)
        part, behind = self._without_data(part)
        where = self._nodes.all_of(where, (behind,))
        operands = (self._nodes.source(part, around),)
        settled = Ordered(
            len(self._nodes.origins),
            DecisionKind.SETTLED,
            operands,
            (Disjunct(),),
            (),
            INFINITE_US,
            INFINITE_US,
        )
        return Kept(settled, where)

    def _without_data(self, part: PlainPart) -> tuple[PlainPart, Disjunct]:
        """Return a part without what it compares with data, and that, to be asked behind it.

        Each tuple is decided by itself, so one decision serves all data.  What boxes test stays.
        """
        node = part.node
        own = node.disjuncts if isinstance(node, Operator) else part.conditions
        if not self.query.parameters or len(own) != 1 or not isinstance(node, (int, Operator)):
            return part, Disjunct()
        if isinstance(node, Operator):
            node = with_made_joins(self.query, node)
            own = node.disjuncts
        here, behind = without_data(self.query, own[0])
        if isinstance(node, int):
            return replace(part, conditions=(here,)), behind
        return replace(part, node=replace(node, disjuncts=(here,))), behind

    def behind(self) -> Query:
        """Return the query with what rows and limits read, `UNBOUND` where it is not bound here."""
        chosen = set(self._nodes.choice.values())
        return with_outcome(
            self.query, self._bound, lambda key: self._nodes.keys.first(key, chosen)
        )

    def actions(self) -> Iterator[Action]:
        """Yield the actions whose variables are bound; rows do theirs."""
        if self.query.rows is not None:
            return
        for action in self.query.actions:
            match action:
                case DeleteRow(row):
                    asked = self._bound(row)
                    if isinstance(asked, Row):
                        yield DeleteRow(asked)
                case SetCell(cell, value):
                    target, bound = self._bound(cell), self._bound(value)
                    if isinstance(target, Cell) and bound != UNBOUND:
                        yield SetCell(target, bound)

    def _bound(self, operand: Operand) -> Operand:
        """Return an operand that says what is of elements, `UNBOUND` where it is not bound here."""
        return self._nodes.binding.operand(
            operand_with_elements(operand, self._nodes.units, self._nodes.of_elements)
        )


def _is_decided(node: PlainNode) -> bool:
    """Whether tuples of a node are decided as they are found."""
    return isinstance(node, (Chained, Ordered)) or (isinstance(node, Repeated) and node.is_next)
