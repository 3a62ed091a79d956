"""A document becomes its witnesses, and what has been worked out once is not worked out again.

Everything is kept by what it depends on and nothing else:

- a **raw shape** is a stream and the structure of a document.  Running the automaton on it and
  walking down the variables gives its first stage (`xpath_eval.walk`): what structure decides.
- the answers of a document's text to the questions of a stage lead to the next, and the last one
  has the **witness shape** and which nodes' values to gather.

For a document of a known raw shape whose answers came out as before, all that is left is to parse
it and to gather the values: further queries cost nothing.  Both are bounded; dropping them
changes cost, never witnesses.

`update` turns the evaluator to another plan: variables and steps that both have stay, and with
them the states of the automaton; raw shapes are found again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from lxml import etree

from xpath_eval.automaton import STATES_MAX, Automaton, State
from xpath_eval.catalog import ANY_STREAM, EvaluationPlan
from xpath_eval.conditions import Conditions, Selected
from xpath_eval.nested import NestedPatterns, is_nested
from xpath_eval.nodesets import DOCUMENT, NodeSets, node_set
from xpath_eval.parsing import parse_elements
from xpath_eval.shape import Labels, Shape, gather
from xpath_eval.steps import Group, Step, StepTree, Variable
from xpath_eval.structure import Detail, Structure, StructureKey, Tree, structure_key
from xpath_eval.walk import Answer, Asker, Stage, Walk

__all__ = ["Counters", "Evaluator", "Shape", "Witnesses"]

RAW_SHAPES_MAX = 4_096
OUTCOMES_MAX = 1_024
"""Kept raw shapes, and kept stages of each.  936 real items had 126 and 55 shapes in all."""

EDGES_KEPT_MAX = 4_000_000
"""Edges of all kept shapes together, some 64 MB: with very many queries a shape is large."""


NESTED_MIN = 20
"""Fewer variables with nested paths than this are walked: following them together costs some 0.4 ms
for a document of seventy elements, and walking one some 10 microseconds."""

SELECTED_MAX = 10_000
"""Kept answers of a raw shape to which nodes an operand selects at a node."""

_RawKey = tuple[str, bool, StructureKey]


@dataclass(frozen=True, slots=True)
class Witnesses:
    """The witnesses of one document: its shape, and the number and value of each shape node."""

    shape: Shape
    nodes: tuple[int, ...]
    values: tuple[str | None, ...]


@dataclass(slots=True)
class Counters:
    """How often each cache had the answer, for the metrics."""

    raw_hits: int = 0
    raw_misses: int = 0
    outcome_hits: int = 0
    outcome_misses: int = 0


@dataclass(slots=True)
class _RawShape:
    """One structure, and its stages so far; `steps` are the nodes of the steps that were asked."""

    structure: Structure
    steps: dict[int, int]
    labels: list[tuple[int, Labels]]
    stage: Stage
    stages: int = 0
    selected: Selected = field(default_factory=dict)


@dataclass(slots=True)
class _Output:
    """What it means for an element to be in a state: labels, and what the walk wants to know."""

    labels: Labels | None
    steps: tuple[Step, ...]
    asked: tuple[Variable, ...]
    groups: tuple[Group, ...]


@dataclass(slots=True)
class _Reached:
    """What the states of a document's elements say together."""

    steps: dict[int, int] = field(default_factory=dict)
    labels: list[tuple[int, Labels]] = field(default_factory=list)
    asked: dict[int, Variable] = field(default_factory=dict)
    groups: dict[int, Group] = field(default_factory=dict)


class Evaluator:
    """Evaluates a plan on documents."""

    def __init__(
        self,
        plan: EvaluationPlan,
        *,
        raw_shapes_max: int = RAW_SHAPES_MAX,
        outcomes_max: int = OUTCOMES_MAX,
        states_max: int = STATES_MAX,
        nested_min: int = NESTED_MIN,
    ) -> None:
        self.plan = EvaluationPlan((), (), frozenset())
        self.counters = Counters()
        self._raw_shapes_max = raw_shapes_max
        self._outcomes_max = outcomes_max
        self._nested_min = nested_min
        self._automaton = Automaton(states_max=states_max)
        self._tree = StepTree()
        self._nested = NestedPatterns(())
        self._outputs: dict[State, _Output] = {}
        self._outputs_max = states_max
        self._raw_shapes: dict[_RawKey, _RawShape] = {}
        self._edges_kept = 0
        self._detail = Detail.NAMES
        self.update(plan)

    @property
    def state_count(self) -> int:
        """How many states of the automaton are kept."""
        return self._automaton.state_count

    @property
    def step_count(self) -> int:
        """How many steps the automaton goes through, the document nodes not counted."""
        return self._tree.step_count

    @property
    def raw_shape_count(self) -> int:
        """How many raw shapes are kept."""
        return len(self._raw_shapes)

    def update(self, plan: EvaluationPlan) -> None:
        """Evaluate another plan from now on; what both have in common is kept."""
        for variable in self._tree.variables.values():
            variable.unwatch()
        self._tree.replace(self.plan, plan)
        self.plan = plan
        for high, low in plan.edges:
            self._tree.variables[low].highs.append(high)
        self._share_out()
        if self._tree.changed:
            self._automaton.forget(self._tree.changed)
            self._tree.changed.clear()
        self._detail = self._tree.detail
        self._outputs.clear()
        self.forget_shapes()

    def _share_out(self) -> None:
        """Decide who finds each variable: the automaton, `NestedPatterns`, or the walk."""
        nested: list[Variable] = []
        for _, variable in sorted(self._tree.variables.items()):
            for high in variable.highs:
                if high != variable.id:
                    variable.walk()
                    self._watch(high, variable)
                elif variable.is_plain:
                    variable.is_labelled = True
                elif variable.id not in self.plan.valued and is_nested(variable):
                    nested.append(variable)
                else:
                    variable.walk()
        if len(nested) < self._nested_min:
            for variable in nested:
                variable.walk()
            nested = []
        for variable in nested:
            variable.is_labelled = True
        if self._nested.variables != tuple(nested):
            self._nested = NestedPatterns(nested)

    def _watch(self, high: int, low: Variable) -> None:
        """Have the nodes known of all steps that the walk composes between two variables."""
        variable: Variable | None = low
        while variable is not None:
            if variable.step is not None:
                variable.step.watched = True
            variable = variable.parent if variable.id != high else None

    def evaluate(self, stream: str, xml: bytes, *, is_published: bool = False) -> Witnesses:
        """Return the witnesses of one document; raise `XmlError` where it cannot be read."""
        elements = parse_elements(xml)
        key = (stream, is_published, structure_key(elements, self._detail))
        raw = self._raw_shapes.get(key)
        if raw is None:
            self.counters.raw_misses += 1
            roots = self._roots(stream, is_published=is_published)
            raw = self._read_raw_shape(Tree(elements), key[2], roots)
            self._keep(key, raw)
        else:
            self.counters.raw_hits += 1
        stage = raw.stage
        if stage.questions:
            return self._answer(raw, elements)
        gathering = stage.gathering
        assert gathering is not None
        return Witnesses(gathering.shape, gathering.nodes, gathering.values(elements, {}))

    def _keep(self, key: _RawKey, raw: _RawShape) -> None:
        if len(self._raw_shapes) >= self._raw_shapes_max or self._edges_kept > EDGES_KEPT_MAX:
            self.forget_shapes()
        if self._raw_shapes_max:
            self._raw_shapes[key] = raw

    def forget_shapes(self) -> None:
        """Drop all that is known of shapes; the automaton stays."""
        self._raw_shapes.clear()
        self._edges_kept = 0

    def _roots(self, stream: str, *, is_published: bool) -> list[Variable]:
        """Return the variables of a document's node; `*` is any stream from outside."""
        roots = self._tree.roots
        found = (roots.get(stream), None if is_published else roots.get(ANY_STREAM))
        return [root for root in found if root is not None]

    def _read_raw_shape(
        self, tree: Tree, key: StructureKey, roots: Sequence[Variable]
    ) -> _RawShape:
        structure = Structure(key, self._detail)
        reached = self._reach(structure, roots)
        conditions = Conditions(tree, structure)
        walk = Walk(NodeSets(structure), conditions, self._tree.variables, reached.steps)
        asked = [
            (variable, reached.steps[variable.step.number])
            for _, variable in sorted(reached.asked.items())
            if variable.step is not None
        ]
        document = [(root, DOCUMENT) for root in roots]
        stage = walk.start([*document, *asked], reached.groups.values())
        raw = _RawShape(structure, reached.steps, reached.labels, stage)
        if not stage.questions:
            self._finish(raw, stage)
            raw.steps, raw.labels = {}, []
        return raw

    def _reach(self, structure: Structure, roots: Sequence[Variable]) -> _Reached:
        """Run the automaton, and put together what its states say."""
        start = tuple(root.step for root in roots if root.step is not None)
        states = self._automaton.run(start, structure.names, structure.parents)
        elements: dict[State, list[int]] = {}
        for element, state in enumerate(states):
            elements.setdefault(state, []).append(element)
        reached = _Reached()
        for state, where in elements.items():
            output = self._output(state)
            if output.labels is not None:
                reached.labels += [(element, output.labels) for element in where]
            reached.asked.update((v.id, v) for v in output.asked)
            reached.groups.update((id(g), g) for g in output.groups)
            if output.steps:
                nodes = node_set(where)
                for step in output.steps:
                    reached.steps[step.number] = reached.steps.get(step.number, 0) | nodes
        reached.labels.sort(key=lambda label: label[0])
        reached.labels += [(e, Labels(v, False)) for e, v in self._nested.find(structure, roots)]
        return reached

    def _output(self, state: State) -> _Output:
        output = self._outputs.get(state)
        if output is None:
            if len(self._outputs) >= self._outputs_max:
                self._outputs.clear()
            output = self._outputs[state] = self._find_output(state)
        return output

    def _find_output(self, state: State) -> _Output:
        plain = [step.plain for step in state.selected if step.plain is not None]
        labels = sorted(v.id for v in plain if v.id in v.highs)
        valued = not self.plan.valued.isdisjoint(labels)
        return _Output(
            Labels(np.array(labels, np.int32), valued) if labels else None,
            tuple(step for step in state.selected if step.watched),
            tuple(v for v in plain if v.is_asked),
            tuple(g for step in state.selected for g in step.filtered if g.is_walked),
        )

    def _finish(self, raw: _RawShape, stage: Stage) -> None:
        stage.gathering = gather(raw.structure, raw.labels, stage.edges, self.plan.valued)
        self._edges_kept += len(stage.gathering.shape)

    def _answer(self, raw: _RawShape, elements: list[etree._Element]) -> Witnesses:
        """Follow the stages of a raw shape by the answers of a document."""
        structure, stage = raw.structure, raw.stage
        if len(raw.selected) > SELECTED_MAX:
            raw.selected.clear()
        conditions = Conditions(Tree(elements), structure, raw.selected)
        asker = Asker(conditions, structure, self._tree.variables)
        while stage.questions:
            answers = tuple([asker.ask(question) for question in stage.questions])
            following = stage.next.get(answers)
            if following is None:
                following = self._go_on(raw, stage, answers, conditions)
            else:
                self.counters.outcome_hits += 1
            stage = following
        gathering = stage.gathering
        assert gathering is not None
        return Witnesses(
            gathering.shape, gathering.nodes, gathering.values(elements, asker.derived)
        )

    def _go_on(
        self, raw: _RawShape, stage: Stage, answers: tuple[Answer, ...], conditions: Conditions
    ) -> Stage:
        self.counters.outcome_misses += 1
        walk = Walk(NodeSets(raw.structure), conditions, self._tree.variables, raw.steps)
        following = walk.go_on(stage, answers)
        if not following.questions:
            self._finish(raw, following)
        if self._edges_kept > EDGES_KEPT_MAX:
            self.forget_shapes()
        if raw.stages >= self._outcomes_max:
            raw.stages = 0
            raw.stage.next.clear()
        raw.stages += 1
        stage.next[answers] = following
        return following
