"""The tuples of a query's source: units, operators, and the clauses of a from (section 13)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from broker.documents.document import Document
from oracle.conditions import Facts, holds
from oracle.operators import Rules, Tuple, facts, join, position
from oracle.paths import Assignment, select
from oracle.tree import Node as DocumentNode
from oracle.values import compare_with_constant
from xscl.path import Literal, Parameter
from xscl.query import (
    INFINITE_US,
    Disjunct,
    From,
    Key,
    Node,
    Operator,
    Query,
    Unit,
    Window,
)

__all__ = ["Bound", "Evaluation", "conditioned", "keys_of"]

Bound = list[tuple[Document, DocumentNode, set[Assignment]]]
"""The documents that a block reads, each with its tree and its bindings."""


def conditioned(node: Node) -> Iterator[tuple[Node, tuple[Disjunct, ...]]]:
    """Yield the nodes that have a predicate, each with its alternatives, inner ones first."""
    match node:
        case Operator(left=left, right=right, disjuncts=disjuncts):
            yield from conditioned(left)
            yield from conditioned(right)
            yield node, disjuncts
        case From(node=inner, where=where):
            yield from conditioned(inner)
            if where is not None:
                yield node, where


def keys_of(node: Node) -> Iterator[Key]:
    """Yield the keys of all SAME below a node."""
    match node:
        case Operator(left=left, right=right):
            yield from keys_of(left)
            yield from keys_of(right)
        case From(node=inner, keys=keys):
            yield from keys
            yield from keys_of(inner)


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A query under one choice of a disjunct for each predicate, by the node that has it.

    `read` are the blocks that are read: of each unit one.
    """

    query: Query
    choice: Mapping[int, Disjunct]
    blocks: Sequence[Bound]
    rules: Rules
    read: Collection[int]

    def tuples(
        self,
        node: Node,
        within: Window | Parameter | None = None,
        keys: tuple[Key, ...] = (),
    ) -> list[Tuple]:
        """Return the tuples of a node under the innermost WITHIN and all SAME around it."""
        match node:
            case int():
                return list(self._block(node))
            case Unit(alternatives):
                return [one for b in alternatives if b in self.read for one in self._block(b)]
            case Operator():
                return self._operator(node, within, keys)
            case From():
                return self._from(node, within, keys)
        raise AssertionError(node)

    def _block(self, block: int) -> Iterator[Tuple]:
        names = [variable.name for variable in self.query.variables if variable.block == block]
        for document, tree, bound in self.blocks[block]:
            for assignment in bound:
                for keyed in self._keyed(block, tree):
                    yield Tuple(
                        (document,),
                        {**dict(assignment), **keyed},
                        dict.fromkeys(names, document),
                        document.start_us,
                        document.end_us,
                        position(document),
                        (block,),
                    )

    def _keyed(self, block: int, tree: DocumentNode) -> list[dict[str, DocumentNode]]:
        """Return the choices of a node for each key of the block: 13.3."""
        found: list[dict[str, DocumentNode]] = [{}]
        for key in keys_of(self.query.root):
            name = dict(key.variables).get(block)
            if name is not None:
                nodes = {node for node, _ in select(key.path, tree, self.rules.parameters)}
                found = [{**each, name: node} for each in found for node in nodes if node.value]
        return found

    def _operator(
        self, operator: Operator, within: Window | Parameter | None, keys: tuple[Key, ...]
    ) -> list[Tuple]:
        lefts, rights = (
            _by_key(keys, self.tuples(each, within, keys))
            for each in (operator.left, operator.right)
        )
        if operator.window == Window(INFINITE_US) and within is not None:
            bounded = replace(operator, window=within)
        else:
            bounded = operator
        disjunct = self.choice[id(operator)]
        return [
            one
            for values, of_left in lefts.items()
            for one in join(bounded, disjunct, of_left, rights.get(values, []), self.rules)
        ]

    def _from(
        self, source: From, within: Window | Parameter | None, keys: tuple[Key, ...]
    ) -> list[Tuple]:
        found = self.tuples(source.node, source.within or within, (*keys, *source.keys))
        return [one for one in found if self._is_kept(source, one)]

    def _is_kept(self, source: From, one: Tuple) -> bool:
        if source.within is not None:
            length_us = self.rules.length_us(source.within)
            if one.end_us - one.start_us > length_us:
                return False
        asked = self.choice.get(id(source), Disjunct())
        said: Facts = facts(self.rules, one)
        return holds(asked, said) and all(self._has_one_key(key, one) for key in source.keys)

    def _has_one_key(self, key: Key, one: Tuple) -> bool:
        """Return whether one string is the key of all documents of a tuple, and the literal."""
        names = dict(key.variables)
        values = {one.nodes[names[block]].value for block in one.blocks}
        if len(values) > 1:
            return False
        match key.literal:
            case Literal(wanted):
                pass
            case Parameter(name):
                wanted = self.rules.parameters[name]
            case None:
                return True
        return all(compare_with_constant(value, "=", wanted) for value in values)


def _by_key(keys: Sequence[Key], tuples: Sequence[Tuple]) -> dict[tuple[str, ...], list[Tuple]]:
    """Return tuples by the values of keys, which are the same in all of their documents."""
    found: dict[tuple[str, ...], list[Tuple]] = {}
    for one in tuples:
        values = tuple(one.nodes[key.variable(one.blocks[0])].value for key in keys)
        found.setdefault(values, []).append(one)
    return found
