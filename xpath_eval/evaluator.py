"""A document becomes its witnesses, and what has been worked out once is not worked out again.

Two caches, both keyed by what the answer depends on and nothing else:

- a **raw shape** is a stream and the structure of a document.  Running the automaton on it says
  which nodes may bind which variables, and which *checks* are left to the document's text:
  filters on values, and how many values a derived value has.
- a raw shape with the outcomes of its checks determines the **witness shape**, the pairs of
  nodes for every wanted edge, and which nodes' values to gather.

For a document of a known raw shape whose checks came out as before, all that is left is to parse
it and to gather the values: further queries cost nothing.  Both caches are bounded; dropping
them changes cost, never witnesses.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xpath_eval.automaton import Automaton, matches_name
from xpath_eval.catalog import Definition, EvaluationPlan
from xpath_eval.conditions import Conditions, Filters, needs_values
from xpath_eval.structure import Structure, Tree, parse_xml
from xscl import functions
from xscl.path import Axis
from xscl.pattern import PatternNode
from xscl.query import Derived

__all__ = ["Evaluator", "Shape", "Witnesses"]

RAW_SHAPES_MAX = 4_096
OUTCOMES_MAX = 1_024
"""Kept raw shapes, and kept outcomes of each.  936 real items had 126 and 55 shapes in all."""

Check = tuple[Filters, tuple[int, ...]] | tuple[Derived, int]
"""A question to a document's text: who of these passes, or how many values are there."""

Outcome = tuple[int, ...] | int
Bound = int | tuple[int, int, int]
"""What a variable is bound to: a node, or value number i of variable d at a node (n, d, i)."""

Edge = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Shape:
    """A witness shape: `edges` are (var1, var2, node1, node2) over its own node positions."""

    id: str
    edges: tuple[Edge, ...]


@dataclass(frozen=True, slots=True)
class Witnesses:
    """The witnesses of one document: its shape, and the number and value of each shape node."""

    shape: Shape
    nodes: tuple[int, ...]
    values: tuple[str | None, ...]


@dataclass(slots=True)
class _RawShape:
    structure: Structure
    checks: tuple[Check, ...]
    outcomes: dict[tuple[Outcome, ...], _Gathering] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Gathering:
    """A witness shape, and how to fill it from a document: (node, whether its value counts)."""

    shape: Shape
    nodes: tuple[int, ...]
    is_valued: tuple[bool, ...]
    derived: tuple[tuple[Derived, int, int] | None, ...]


class Evaluator:
    """Evaluates one plan on documents.  `hits` and `misses` count raw shapes."""

    def __init__(
        self,
        plan: EvaluationPlan,
        *,
        raw_shapes_max: int = RAW_SHAPES_MAX,
        outcomes_max: int = OUTCOMES_MAX,
    ) -> None:
        self.plan = plan
        self.hits = 0
        self.misses = 0
        self._raw_shapes_max = raw_shapes_max
        self._outcomes_max = outcomes_max
        self._automaton = Automaton(plan)
        self._definitions = dict(plan.definitions)
        self._below = _steps_below(self._definitions)
        self._edges_to = _edges_to(plan)
        self._with_text = any(
            d.step is not None and _needs_text(d.step) for d in self._definitions.values()
        )
        self._raw_shapes: dict[tuple[object, ...], _RawShape] = {}

    def evaluate(self, stream: str, xml: bytes, *, is_published: bool = False) -> Witnesses:
        """Return the witnesses of one document; raise `XmlError` where it cannot be read."""
        tree = parse_xml(xml)
        key = (stream, is_published, tree.structure_key(with_text=self._with_text))
        raw = self._raw_shapes.get(key)
        if raw is None:
            self.misses += 1
            roots = self._automaton.document_variables(stream, is_published=is_published)
            raw = self._read_raw_shape(tree, roots)
            self._keep(key, raw)
        else:
            self.hits += 1
        return self._witnesses(tree, raw, key)

    def _keep(self, key: tuple[object, ...], raw: _RawShape) -> None:
        if len(self._raw_shapes) >= self._raw_shapes_max:
            self._raw_shapes.clear()
        if self._raw_shapes_max:
            self._raw_shapes[key] = raw

    def _read_raw_shape(self, tree: Tree, roots: tuple[int, ...]) -> _RawShape:
        structure = tree.structure()
        checks: dict[Check, None] = {}
        conditions = Conditions(tree, structure)
        labels = self._automaton.run(roots, structure.names, structure.parents)

        def ask(check: Check) -> Outcome:
            checks[check] = None
            return check[1] if isinstance(check[1], tuple) else 1

        _Walk(self, structure, conditions, ask).run(roots, labels)
        return _RawShape(structure, tuple(checks))

    def _witnesses(self, tree: Tree, raw: _RawShape, key: tuple[object, ...]) -> Witnesses:
        conditions = Conditions(tree, raw.structure)
        derived: dict[tuple[Derived, int], tuple[str, ...]] = {}
        outcomes = tuple(_outcome(check, conditions, derived) for check in raw.checks)
        gathering = raw.outcomes.get(outcomes)
        if gathering is None:
            stream, is_published = key[0], key[1]
            roots = self._automaton.document_variables(str(stream), is_published=bool(is_published))
            gathering = self._gathering(
                raw, roots, conditions, dict(zip(raw.checks, outcomes, strict=True))
            )
            if len(raw.outcomes) >= self._outcomes_max:
                raw.outcomes.clear()
            raw.outcomes[outcomes] = gathering
        values = tuple(
            None
            if not valued
            else conditions.value(node)
            if source is None
            else derived[source[0], source[1]][source[2]]
            for node, valued, source in zip(
                gathering.nodes, gathering.is_valued, gathering.derived, strict=True
            )
        )
        return Witnesses(gathering.shape, gathering.nodes, values)

    def _gathering(
        self,
        raw: _RawShape,
        roots: tuple[int, ...],
        conditions: Conditions,
        outcomes: Mapping[Check, Outcome],
    ) -> _Gathering:
        labels = self._automaton.run(roots, raw.structure.names, raw.structure.parents)
        walk = _Walk(self, raw.structure, conditions, outcomes.__getitem__)
        above = walk.run(roots, labels)
        edges = self._wanted_edges(above)
        bound: dict[Bound, bool] = {}
        for var1, var2, node1, node2 in edges:
            for variable, node in ((var1, node1), (var2, node2)):
                bound[node] = bound.get(node, False) or variable in self.plan.valued
        order = sorted(bound, key=lambda b: (isinstance(b, tuple), b))
        place = {node: i for i, node in enumerate(order)}
        named = sorted((v1, v2, place[n1], place[n2]) for v1, v2, n1, n2 in edges)
        sources = tuple(self._source(b) for b in order)
        return _Gathering(
            _shape(tuple(named)),
            tuple(b[0] if isinstance(b, tuple) else b for b in order),
            tuple(bound[b] for b in order),
            sources,
        )

    def _source(self, bound: Bound) -> tuple[Derived, int, int] | None:
        if not isinstance(bound, tuple):
            return None
        node, variable, i = bound
        step = self._definitions[variable].step
        assert step is not None
        assert step.derivation is not None
        return step.derivation, node, i

    def _wanted_edges(
        self, above: Mapping[int, Sequence[tuple[Bound, Bound]]]
    ) -> set[tuple[int, int, Bound, Bound]]:
        """Compose the steps between the two variables of every wanted edge that was met."""
        wanted: set[tuple[int, int, Bound, Bound]] = set()
        for low in above:
            for high in self._edges_to.get(low, ()):
                pairs = {(b, b) for _, b in above[low]}
                variable = low
                while variable != high:
                    up: dict[Bound, list[Bound]] = defaultdict(list)
                    for p, n in above[variable]:
                        up[n].append(p)
                    pairs = {(p, d) for n, d in pairs for p in up[n]}
                    variable = self._definitions[variable].parent
                wanted.update((high, low, p, d) for p, d in pairs)
        return wanted


class _Walk:
    """Follows the definitions down one document, from the automaton's labels.

    The result has for each variable that is met the pairs (node of the variable above, node).
    `ask` answers the checks that the structure leaves open.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        structure: Structure,
        conditions: Conditions,
        ask: Callable[[Check], Outcome],
    ) -> None:
        self._definitions = evaluator._definitions
        self._below = evaluator._below
        self._structure = structure
        self._conditions = conditions
        self._ask = ask

    def run(
        self, roots: tuple[int, ...], labels: Sequence[tuple[int, ...]]
    ) -> dict[int, list[tuple[Bound, Bound]]]:
        by_variable: dict[int, list[int]] = defaultdict(list)
        for element, variables in enumerate(labels):
            for variable in variables:
                by_variable[variable].append(element)
        above: dict[int, list[tuple[Bound, Bound]]] = {}
        selected: dict[int, set[int]] = {root: {-1} for root in roots}
        waiting = sorted(roots)
        for variable in waiting:
            for below in self._below.get(variable, ()):
                pairs = self._pairs(below, selected[variable], by_variable.get(below, ()))
                if pairs:
                    above[below] = pairs
                    selected[below] = {n for _, n in pairs if isinstance(n, int)}
                    waiting.append(below)
        return above

    def _pairs(
        self, variable: int, contexts: set[int], labelled: Iterable[int]
    ) -> list[tuple[Bound, Bound]]:
        step = self._definitions[variable].step
        assert step is not None
        if step.derivation is not None:
            return [
                (n, (n, variable, i))
                for n in sorted(contexts)
                for i in range(_count(self._ask((step.derivation, n))))
            ]
        pairs: list[tuple[Bound, Bound]] = []
        for origin, candidates in self._candidates(step, contexts, labelled).items():
            for node in self._survivors(step.filters, tuple(candidates)):
                pairs.extend((p, node) for p in self._contexts_of(step, origin, contexts))
        return pairs

    def _survivors(self, filters: Filters, candidates: tuple[int, ...]) -> tuple[int, ...]:
        if not filters:
            return candidates
        if not any(map(needs_values, filters)):
            return self._conditions.survivors(filters, candidates)
        outcome = self._ask((filters, candidates))
        assert isinstance(outcome, tuple)
        return outcome

    def _candidates(
        self, step: PatternNode, contexts: set[int], labelled: Iterable[int]
    ) -> dict[int, list[int]]:
        """Return what the step selects by name alone, grouped by the node that it starts from."""
        groups: dict[int, list[int]] = defaultdict(list)
        for node in self._named(step, contexts, labelled):
            origin = node if step.axis is Axis.SELF else self._structure.parent(node)
            if step.is_deep or origin in contexts:
                groups[origin].append(node)
        return groups

    def _named(
        self, step: PatternNode, contexts: set[int], labelled: Iterable[int]
    ) -> Iterable[int]:
        structure = self._structure
        if step.axis is Axis.CHILD and not step.test.is_text:
            return labelled
        below = sorted({e for c in contexts for e in self._origins(step, c)})
        if step.axis is Axis.SELF:
            texts = sorted(t for e in below for t in structure.texts_of[e])
            return (*below, *texts)
        if step.axis is Axis.ATTRIBUTE:
            return (
                a
                for e in below
                for a in structure.attributes_of[e]
                if matches_name(step.test, structure.attribute_name(a))
            )
        return (t for e in below for t in structure.texts_of[e])

    def _origins(self, step: PatternNode, context: int) -> Iterable[int]:
        structure = self._structure
        if context >= structure.element_count:
            return ()
        if not step.is_deep:
            return (context,) if context >= 0 else ()
        first = max(context, 0)
        return range(first, structure.ends[first])

    def _contexts_of(self, step: PatternNode, origin: int, contexts: set[int]) -> Iterable[int]:
        """Yield the contexts from which a step reaches what starts from `origin`."""
        if not step.is_deep:
            yield origin
            return
        if origin in contexts:
            yield origin
        node = origin
        while node >= 0:
            node = self._structure.parent(node)
            if node in contexts:
                yield node


def _count(outcome: Outcome) -> int:
    assert isinstance(outcome, int)
    return outcome


def _outcome(
    check: Check, conditions: Conditions, derived: dict[tuple[Derived, int], tuple[str, ...]]
) -> Outcome:
    what, where = check
    if isinstance(where, tuple):
        return conditions.survivors(what, where)  # type: ignore[arg-type]
    values = tuple(dict.fromkeys(functions.derive(what, conditions.value(where))))  # type: ignore[arg-type]
    derived[what, where] = values  # type: ignore[index]
    return len(values)


def _shape(edges: tuple[Edge, ...]) -> Shape:
    digest = hashlib.blake2b(repr(edges).encode(), digest_size=12).hexdigest()
    return Shape(digest, edges)


def _steps_below(definitions: Mapping[int, Definition]) -> dict[int, list[int]]:
    below: dict[int, list[int]] = defaultdict(list)
    for variable, definition in definitions.items():
        if definition.step is not None:
            below[definition.parent].append(variable)
    return below


def _edges_to(plan: EvaluationPlan) -> dict[int, list[int]]:
    edges: dict[int, list[int]] = defaultdict(list)
    for high, low in plan.edges:
        edges[low].append(high)
    return edges


def _needs_text(step: PatternNode) -> bool:
    return "is_text=True" in repr((step.test, step.filters)) or (
        step.axis is Axis.SELF and step.is_deep
    )
