"""One block on one document: its bindings, or the step at which the document is lost.

This is section 3 of the semantics by plain recursion over the block's tree pattern.  What one
step selects is asked of `xpath_eval`; what is missing is said of the node that came furthest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from broker.explain.spelling import spell_condition, spell_constant, spell_step
from broker.whynot.nearmiss import near_miss, nearest
from broker.whynot.reason import Reason, quote
from xpath_eval.conditions import Conditions
from xpath_eval.structure import NodeTree, Structure
from xscl.comparison import PathFrom, term
from xscl.evaluation import optional_values
from xscl.functions import compare, to_double
from xscl.path import (
    And,
    Axis,
    Comparison,
    Condition,
    Literal,
    Opaque,
    Path,
    PathValue,
    Position,
    Step,
    StringTest,
    matches_name,
)
from xscl.pattern import DOCUMENT, PatternNode, TreePattern

__all__ = ["BINDINGS_MAX", "Binding", "BlockOnDocument", "BoundNode"]

BINDINGS_MAX = 10_000
"""Bindings of one block that are looked at; a document with more is cut there."""

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class BoundNode:
    """A node of a document, and its string value."""

    number: int
    value: str


Binding = dict[str, BoundNode]
_Nodes = frozenset[tuple[str, int]]


class BlockOnDocument:
    """A tree pattern and a parsed document."""

    def __init__(self, pattern: TreePattern, tree: NodeTree) -> None:
        self._pattern = pattern
        self._structure: Structure = tree.structure()
        self._conditions = Conditions(tree, self._structure)
        self._below: dict[int, list[int]] = {}
        for i, node in enumerate(pattern.nodes):
            self._below.setdefault(node.parent, []).append(i)

    def bindings(self, optional: Iterable[PathFrom] = ()) -> list[Binding]:
        """Return the different assignments of the pattern's terms, and of optional paths.

        An optional path is bound to the node that it leads from, with all its values.
        """
        found = [
            {name: BoundNode(number, self._conditions.value(number)) for name, number in nodes}
            for nodes in self._matches()
        ]
        for path in optional:
            for binding in found:
                node = binding[path.variable].number
                binding[term(path)] = BoundNode(
                    node, optional_values(self._values(path.path, node))
                )
        return found

    def _matches(self) -> list[_Nodes]:
        """Return the assignments of the whole pattern: those of all that stands at the document."""
        found: list[_Nodes] = [frozenset()]
        for index in self._below[DOCUMENT]:
            below = self._match(index, DOCUMENT)
            found = list(islice((a | b for a in found for b in below), BINDINGS_MAX))
        return found

    def _match(self, index: int, context: int) -> list[_Nodes]:
        """Return the assignments below pattern node `index`, from a document node."""
        found: dict[_Nodes, None] = {}
        node = self._pattern.nodes[index]
        for number in self._selected(node, context):
            if not self._has_constants(node, number):
                continue
            partial = [frozenset((term, number) for term in node.terms)]
            for child in self._below.get(index, ()):
                below = self._match(child, number)
                partial = list(islice((a | b for a in partial for b in below), BINDINGS_MAX))
            found.update(dict.fromkeys(partial))
            if len(found) >= BINDINGS_MAX:
                break
        return list(found)

    def _selected(
        self, node: PatternNode, context: int, *, filters: Sequence[Condition] | None = None
    ) -> list[int]:
        """Return what a step selects from a node; from the document node where it is -1."""
        predicates = node.filters if filters is None else tuple(filters)
        step = Step(node.axis, node.test, node.is_deep, None, predicates)
        if context != DOCUMENT:
            return sorted(set(self._conditions.select(Path((step,)), context)))
        found: set[int] = set()
        if node.axis is Axis.CHILD and self._is_root(node):
            found.update(self._conditions.survivors(predicates, [0]))
        if node.is_deep:
            found.update(self._conditions.select(Path((step,)), 0))
        return sorted(found)

    def _is_root(self, node: PatternNode) -> bool:
        """Return whether the name of the root element passes a step's test."""
        return not node.test.is_text and matches_name(node.test, self._structure.names[0])

    def _has_constants(self, node: PatternNode, number: int) -> bool:
        value = self._conditions.value(number) if node.constants else ""
        return all(value == constant for constant in node.constants)

    # -- what is missing -----------------------------------------------------------------------

    def failure(self) -> Reason:
        """Return why there is no binding; call it only then."""
        missing = (i for i in self._below[DOCUMENT] if not self._match(i, DOCUMENT))
        return self._failure(next(missing), DOCUMENT, 0)

    def _failure(self, index: int, context: int, depth: int) -> Reason:
        node = self._pattern.nodes[index]
        named = self._selected(node, context, filters=())
        if not named:
            return self._no_step(node, context, depth)
        selected = self._selected(node, context)
        if not selected:
            return self._no_survivor(node, context, named, depth)
        lost = [self._lost(index, number, depth) for number in selected]
        return max(lost, key=lambda reason: reason.progress)

    def _lost(self, index: int, number: int, depth: int) -> Reason:
        """Return what a node that the step selects lacks."""
        node = self._pattern.nodes[index]
        if not self._has_constants(node, number):
            return self._no_constant(node, number, depth)
        below = self._below.get(index, [])
        for place, child in enumerate(below):
            if not self._match(child, number):
                inner = self._failure(child, number, depth + 1)
                share = (place + inner.progress) / len(below)
                return replace(inner, progress=_progress(depth, 1 + share))
        raise AssertionError("a node that lacks nothing is a binding")

    def _no_step(self, node: PatternNode, context: int, depth: int) -> Reason:
        is_first = context == DOCUMENT
        wanted = spell_step(node, is_first=is_first)
        if is_first:
            where = f"the root element is `{self._label(0)}`"
        else:
            inside = "anywhere in" if node.is_deep else "in"
            where = f"nothing {inside} `{self._label(context)}` (node {context}) is called so"
            if node.axis is Axis.ATTRIBUTE:
                where = f"`{self._label(context)}` (node {context}) has no such attribute"
        names = self._names(node, context)
        facts = {"step": wanted, "below": None if is_first else context, "there": names[:_SHOWN]}
        text = f"there is no `{wanted}`: {where}"
        return Reason(
            "step", False, text, self._name_hint(node, names), facts, progress=_progress(depth, 0.0)
        )

    def _names(self, node: PatternNode, context: int) -> list[str]:
        """Return the names that the step could have named, as they stand in the document."""
        structure = self._structure
        anywhere = node.is_deep or context == DOCUMENT
        first = max(context, 0)
        if not structure.is_element(first):
            return []
        elements = range(first, structure.ends[first]) if anywhere else structure.children[first]
        if node.axis is Axis.ATTRIBUTE:
            owners = elements if anywhere else [first]
            found = [
                structure.attribute_name(a) for e in owners for a in structure.attributes_of[e]
            ]
        else:
            found = [structure.names[e] for e in elements]
        return list(dict.fromkeys(found))

    def _name_hint(self, node: PatternNode, names: Sequence[str]) -> str | None:
        wanted = node.test.name
        for name in names:
            local = name.rpartition("}")[2]
            if local == wanted and node.axis is Axis.CHILD:
                if not node.is_deep and "}" not in name and not node.test.namespace:
                    return f"there is a `{local}` deeper in the document: write `//{local}`"
                return f"`{local}` is there, as {name}: a prefix or `*:{local}` would name it"
            if local.casefold() == wanted.casefold():
                return f"`{local}` is there: names are case-sensitive"
        shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
        return f"what is there: {shown}" if shown else None

    def _no_survivor(
        self, node: PatternNode, context: int, named: Sequence[int], depth: int
    ) -> Reason:
        """Return which filter is the first that leaves no node."""
        for count in range(1, len(node.filters) + 1):
            kept = self._selected(node, context, filters=node.filters[:count])
            if not kept:
                before = self._selected(node, context, filters=node.filters[: count - 1])
                return self._no_condition(node.filters[count - 1], before or list(named), depth)
        raise AssertionError("a step without filters keeps what it names")

    def _no_condition(self, condition: Condition, nodes: Sequence[int], depth: int) -> Reason:
        number = nodes[0]
        part = self._first_false(condition, number)
        text = f"`[{spell_condition(part)}]` does not hold for `{self._label(number)}`"
        text += f" (node {number})"
        if len(nodes) > 1:
            text += f", nor for {len(nodes) - 1} more"
        detail, hint = self._condition_detail(part, number)
        facts = {"condition": spell_condition(part), "nodes": list(nodes[:_SHOWN])}
        return Reason(
            "condition", False, text + detail, hint, facts, progress=_progress(depth, 0.5)
        )

    def _first_false(self, condition: Condition, number: int) -> Condition:
        if isinstance(condition, And):
            for each in condition.conditions:
                if not self._conditions.survivors((each,), [number]):
                    return self._first_false(each, number)
        return condition

    def _condition_detail(self, condition: Condition, number: int) -> tuple[str, str | None]:
        """Return the values that a condition was about, and what would have made it hold."""
        match condition:
            case Position() | Opaque(is_positional=True):
                return ": it counts otherwise", None
            case Comparison(PathValue(path), operator, Literal(wanted)):
                values = self._values(path, number)
                return _found(values), _comparison_hint(values, operator, wanted)
            case StringTest(function, PathValue(path), Literal(str() as wanted)):
                values = self._values(path, number)
                folded = wanted.casefold()
                has_case = function == "contains" and any(folded in v.casefold() for v in values)
                return _found(values), "the case differs" if has_case else None
        return "", None

    def _values(self, path: Path, number: int) -> list[str]:
        return [self._conditions.value(n) for n in self._conditions.select(path, number)]

    def _no_constant(self, node: PatternNode, number: int, depth: int) -> Reason:
        value = self._conditions.value(number)
        wanted = next(str(c) for c in node.constants if c != value)
        miss = near_miss(value, wanted)
        text = (
            f"`{self._label(number)}` (node {number}) is {quote(value)},"
            f" not {spell_constant(wanted)}"
        )
        facts = {"node": number, "value": value, "constant": wanted}
        nearness = 0.8 if miss else 0.6
        return Reason(
            "constant",
            False,
            text + (f": {miss.text}" if miss else ""),
            None,
            facts,
            progress=_progress(depth, nearness),
        )

    def _label(self, number: int) -> str:
        structure = self._structure
        if structure.is_element(number):
            name = structure.names[number]
        elif structure.is_text(number):
            return "text()"
        else:
            name = "@" + structure.attribute_name(number)
        return name.rpartition("}")[2]


def _progress(depth: int, share: float) -> float:
    """Return how far a document came: deeper is further, and never the whole way."""
    return 1.0 - float(0.5 ** (depth + share))


def _found(values: Sequence[str]) -> str:
    if not values:
        return ": there is no such node"
    shown = ", ".join(map(quote, values[:_SHOWN]))
    more = f" and {len(values) - _SHOWN} more" if len(values) > _SHOWN else ""
    return (
        f": the value is {shown}{more}" if len(values) == 1 else f": the values are {shown}{more}"
    )


def _comparison_hint(values: Sequence[str], operator: str, wanted: str | float) -> str | None:
    if isinstance(wanted, str) and operator == "=":
        found = nearest(values, [wanted])
        return found[2].text if found else None
    is_numeric = operator not in ("=", "!=") or isinstance(wanted, float)
    if is_numeric and values and not compare(values, "=", [to_double(v) for v in values]):
        return "numbers are compared, and this is no number"
    return None
