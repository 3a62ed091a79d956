"""Sets of nodes of one document, as integers: bit `n` stands for node `n`.

What a step selects from a set, and which nodes have what below them, is asked for the same sets
by very many definitions; every answer is kept for as long as the document is looked at.  An
intersection is one operation on integers, and sets are compared by value.

`DOCUMENT` stands for the document node, which has no number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

from xpath_eval.structure import Structure
from xscl.path import (
    ANY,
    And,
    Axis,
    Condition,
    Exists,
    NodeTest,
    Not,
    Or,
    Path,
    Step,
    matches_name,
)

__all__ = ["DOCUMENT", "NodeSets", "exact_name", "members", "node_set"]

DOCUMENT = -1

SMALL = 512
"""Up to so many bits, taking the lowest bit off again and again beats writing all of them out."""


def exact_name(test: NodeTest) -> str | None:
    """Return the one expanded name that passes a node test, if it is only one."""
    if ANY in (test.name, test.namespace):
        return None
    return f"{{{test.namespace}}}{test.name}" if test.namespace else test.name


def node_set(nodes: Iterable[int]) -> int:
    """Return a set of nodes, in time linear in the largest number."""
    numbers = list(nodes)
    if len(numbers) == 1:
        return 1 << numbers[0]
    largest = max(numbers, default=0)
    if largest < SMALL:
        found = 0
        for node in numbers:
            found |= 1 << node
        return found
    octets = bytearray((largest >> 3) + 1)
    for node in numbers:
        octets[node >> 3] |= 1 << (node & 7)
    return int.from_bytes(octets, "little")


def members(nodes: int) -> Iterator[int]:
    """Yield the nodes of a set in the order of their numbers, in time linear in the largest."""
    if nodes.bit_length() <= SMALL:
        while nodes:
            lowest = nodes & -nodes
            yield lowest.bit_length() - 1
            nodes ^= lowest
        return
    bits = bin(nodes)[:1:-1]
    at = bits.find("1")
    while at >= 0:
        yield at
        at = bits.find("1", at + 1)


class NodeSets:
    """The sets of one document's structure that have been asked for."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self._steps: dict[tuple[int, int, bool, bool], int] = {}
        self._tests: dict[tuple[int, int], int] = {}
        self._parents: dict[int, int] = {}
        self._ancestors: dict[int, int] = {}
        self._holding: dict[int, int | None] = {}
        self._alive: list[object] = []

    @cached_property
    def elements(self) -> int:
        """All elements."""
        return (1 << self.structure.element_count) - 1

    @cached_property
    def texts(self) -> int:
        """All text nodes."""
        return ((1 << len(self.structure.texts)) - 1) << self.structure.text_base

    @cached_property
    def all(self) -> int:
        """All nodes."""
        return (1 << (self.structure.text_base + len(self.structure.texts))) - 1

    @cached_property
    def _by_name(self) -> dict[str, list[int]]:
        return _grouped(enumerate(self.structure.names))

    @cached_property
    def _attributes_by_name(self) -> dict[str, list[int]]:
        first = self.structure.element_count
        return _grouped((first + i, name) for i, (_, name) in enumerate(self.structure.attributes))

    def has(self, name: str) -> bool:
        """Return whether some element has this expanded name."""
        return name in self._by_name

    def passing(self, axis: Axis, test: NodeTest) -> int:
        """Return all nodes of the document that pass the node test of a step."""
        # By identity, as elsewhere here: hashing these costs more than a look-up saves.
        key = (id(axis), id(test))
        found = self._tests.get(key)
        if found is None:
            self._alive.append(test)
            found = self._tests[key] = self._passing(axis, test)
        return found

    def _passing(self, axis: Axis, test: NodeTest) -> int:
        if axis is Axis.SELF:
            return self.all
        if test.is_text:
            return self.texts
        if axis is Axis.CHILD and test.name == test.namespace == ANY:
            return self.elements
        groups = self._attributes_by_name if axis is Axis.ATTRIBUTE else self._by_name
        if (exact := exact_name(test)) is not None:
            return node_set(groups.get(exact, ()))
        return node_set(
            node for name, nodes in groups.items() if matches_name(test, name) for node in nodes
        )

    def step(self, contexts: int, axis: Axis, *, is_deep: bool, is_text: bool) -> int:
        """Return the nodes that a step reaches from some context, whatever they are called."""
        key = (contexts, id(axis), is_deep, is_text)
        found = self._steps.get(key)
        if found is None:
            found = self._steps[key] = self._step(contexts, axis, is_deep, is_text)
        return found

    def _step(self, contexts: int, axis: Axis, is_deep: bool, is_text: bool) -> int:
        if contexts == DOCUMENT:
            return self._from_document(axis, is_deep, is_text)
        if is_deep and axis is Axis.CHILD and not is_text:
            return self._below(contexts)
        origins = contexts | self._below(contexts) if is_deep else contexts
        if axis is Axis.SELF:
            if is_deep:
                origins |= self.step(contexts, Axis.CHILD, is_deep=True, is_text=True)
            return origins
        structure, elements = self.structure, origins & self.elements
        if axis is Axis.ATTRIBUTE:
            return node_set(a for e in members(elements) for a in structure.attributes_of[e])
        below = structure.texts_of if is_text else structure.children
        return node_set(n for e in members(elements) for n in below[e])

    def _from_document(self, axis: Axis, is_deep: bool, is_text: bool) -> int:
        if not is_deep:
            return 1 if axis is Axis.CHILD and not is_text else 0
        if axis is Axis.SELF:
            return self.elements | self.texts
        if axis is Axis.ATTRIBUTE:
            return self.all & ~self.elements & ~self.texts
        return self.texts if is_text else self.elements

    def _below(self, contexts: int) -> int:
        """Return all elements below contexts."""
        found, ends, reached = 0, self.structure.ends, 0
        for element in members(contexts & self.elements):
            if element >= reached:
                reached = ends[element]
                found |= ((1 << (reached - element - 1)) - 1) << (element + 1)
        return found

    def parents(self, nodes: int) -> int:
        """Return the parents of nodes."""
        found = self._parents.get(nodes)
        if found is None:
            parents = {self._parent(node) for node in members(nodes)}
            found = self._parents[nodes] = node_set(parents - {DOCUMENT})
        return found

    def ancestors(self, nodes: int) -> int:
        """Return all proper ancestors of nodes."""
        found = self._ancestors.get(nodes)
        if found is None:
            seen: set[int] = set()
            for node in members(nodes):
                parent = self._parent(node)
                while parent >= 0 and parent not in seen:
                    seen.add(parent)
                    parent = self._parent(parent)
            found = self._ancestors[nodes] = node_set(seen)
        return found

    def _parent(self, node: int) -> int:
        parents = self.structure.parents
        return parents[node] if node < len(parents) else self.structure.parent(node)

    def holding(self, condition: Condition) -> int | None:
        """Return all nodes for which a condition of structure alone holds.

        None where that cannot be said of a node by itself, because positions are counted.
        """
        # By identity: hashing a condition costs more than most answers.  `_alive` keeps it.
        key = id(condition)
        if key not in self._holding:
            self._alive.append(condition)
            self._holding[key] = self._hold(condition)
        return self._holding[key]

    def _hold(self, condition: Condition) -> int | None:
        match condition:
            case Exists(path):
                return self._reaching(path)
            case And(conditions) | Or(conditions):
                sets = [self.holding(each) for each in conditions]
                found = self.all if isinstance(condition, And) else 0
                for each in sets:
                    if each is None:
                        return None
                    found = found & each if isinstance(condition, And) else found | each
                return found
            case Not(inner):
                found_inner = self.holding(inner)
                return None if found_inner is None else self.all & ~found_inner
        return None

    def _reaching(self, path: Path) -> int | None:
        """Return the contexts from which a path selects something, from its end backwards."""
        contexts = self.all
        for step in reversed(path.steps):
            nodes = contexts & self.passing(step.axis, step.test)
            for predicate in step.predicates:
                kept = self.holding(predicate)
                if kept is None:
                    return None
                nodes &= kept
            contexts = self._back(step, nodes) if nodes else 0
        return contexts

    def _back(self, step: Step, nodes: int) -> int:
        if step.axis is Axis.SELF:
            return nodes | self.ancestors(nodes) if step.is_deep else nodes
        return self.ancestors(nodes) if step.is_deep else self.parents(nodes)


def _grouped(named: Iterable[tuple[int, str]]) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    for node, name in named:
        groups.setdefault(name, []).append(node)
    return groups
