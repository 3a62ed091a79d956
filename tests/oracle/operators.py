"""The tuples of operators (section 4), by nested loops, with the rule for late documents (1.1)."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from broker.documents.document import Document
from oracle.conditions import Facts, holds, values_of
from oracle.contender import Run
from oracle.tree import Node
from oracle.values import Atom
from xscl.path import Parameter
from xscl.query import INFINITE_US, Disjunct, Operand, Operator, OperatorKind, Window

__all__ = ["Rules", "Tuple", "facts", "join", "position"]


@dataclass(frozen=True, slots=True)
class Tuple:
    """Documents, one for each of some blocks in order, and the nodes that variables are bound to.

    `owners` are the documents that bind the variables, those too whose nodes nothing asks for.
    """

    documents: tuple[Document, ...]
    nodes: Mapping[str, Node]
    owners: Mapping[str, Document]
    start_us: int
    end_us: int
    position: tuple[int, int, str]
    blocks: tuple[int, ...] = ()
    runs: tuple[Run, ...] = ()

    def nodes_at(self, place: int) -> Mapping[str, Node]:
        """Return the nodes of the document at a place, those of other plain units too."""
        for run in self.runs:
            if place in run.places:
                return dict(run.elements[place - run.first].chosen)
        return self.nodes


@dataclass(frozen=True, slots=True)
class Rules:
    """What a join depends on beside its operands: parameters and the allowed lateness.

    Delays are learned from the last matches, so many at least and at most.
    """

    parameters: Mapping[str, Atom]
    lateness_us: int
    learned_least: int = 30
    learned_most: int = 1_000

    def length_us(self, window: Window | Parameter) -> int:
        """Return the length of a window under these parameters."""
        if isinstance(window, Parameter):
            length_us = self.parameters[window.name]
            assert isinstance(length_us, int)
            return length_us
        return window.length_us


def position(document: Document) -> tuple[int, int, str]:
    """Return where a document stands: 1.1."""
    return document.docid, document.depth, document.match_id


def join(
    operator: Operator,
    disjunct: Disjunct,
    lefts: Sequence[Tuple],
    rights: Sequence[Tuple],
    rules: Rules,
) -> Iterator[Tuple]:
    """Yield the tuples of an operator under one alternative of its predicate."""
    window_us = rules.length_us(operator.window)
    left_values = [_joined_values(disjunct, 0, left, rules) for left in lefts]
    right_values = [_joined_values(disjunct, 1, right, rules) for right in rights]
    for left, joined_left in zip(lefts, left_values, strict=True):
        for right, joined_right in zip(rights, right_values, strict=True):
            if (
                all(map(_joins, joined_left, joined_right))
                and _is_in_time(operator.kind, window_us, left, right)
                and _is_remembered(window_us, left, right, rules)
                and holds(disjunct, facts(rules, left, right))
            ):
                yield _combine(left, right)


def _joins(left: frozenset[Atom] | None, right: frozenset[Atom] | None) -> bool:
    """Return whether a value join holds, or does not apply: 13.2."""
    return left is None or right is None or _share(left, right)


def _joined_values(
    disjunct: Disjunct, side: int, one: Tuple, rules: Rules
) -> list[frozenset[Atom] | None]:
    """Return for each value join the values of one side; the empty string joins nothing."""
    operands = [(value_join.left, value_join.right)[side] for value_join in disjunct.value_joins]
    found = [_values(operand, one, rules) for operand in operands]
    return [None if values is None else frozenset(values) - {""} for values in found]


def _values(operand: Operand, one: Tuple, rules: Rules) -> list[Atom] | None:
    return values_of(operand, facts(rules, one))


def _share(left: frozenset[Atom], right: frozenset[Atom]) -> bool:
    return not left.isdisjoint(right)


def _is_in_time(kind: OperatorKind, window_us: int, left: Tuple, right: Tuple) -> bool:
    distance_us = right.end_us - left.end_us
    if kind is OperatorKind.FOLLOWED_BY:
        return left.end_us < right.start_us and _is_within(distance_us, window_us)
    shared = {position(d) for d in left.documents} & {position(d) for d in right.documents}
    return _is_within(abs(distance_us), window_us) and not shared


def _is_within(distance_us: int, window_us: int) -> bool:
    return window_us == INFINITE_US or distance_us <= window_us


def _is_remembered(window_us: int, left: Tuple, right: Tuple, rules: Rules) -> bool:
    """Section 1.1: X was still remembered when Y, of the larger document number, arrived."""
    earlier, later = (left, right) if left.position < right.position else (right, left)
    newest = max(later.documents, key=position)
    return (
        window_us == INFINITE_US
        or earlier.end_us >= newest.watermark_us - window_us - rules.lateness_us
    )


def facts(rules: Rules, *operands: Tuple) -> Facts:
    """Return what conditions are asked of: a tuple, or both operands of an operator together."""
    return Facts(
        dict(ChainMap(*(dict(one.nodes) for one in operands))),
        dict(ChainMap(*(dict(one.owners) for one in operands))),
        min(one.start_us for one in operands),
        max(one.end_us for one in operands),
        rules.parameters,
    )


def _combine(left: Tuple, right: Tuple) -> Tuple:
    return Tuple(
        documents=left.documents + right.documents,
        nodes={**left.nodes, **right.nodes},
        owners={**left.owners, **right.owners},
        start_us=min(left.start_us, right.start_us),
        end_us=max(left.end_us, right.end_us),
        position=max(left.position, right.position),
        blocks=left.blocks + right.blocks,
    )
