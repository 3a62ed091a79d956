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

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import TYPE_CHECKING

import numpy as np
from lxml import etree

from xpath_eval.automaton import Automaton, State
from xpath_eval.catalog import ANY_STREAM, EvaluationPlan
from xpath_eval.conditions import Conditions, Selected
from xpath_eval.counters import Counters
from xpath_eval.limits import DEFAULT_EVALUATOR_LIMITS, EvaluatorLimits
from xpath_eval.nested import NestedOutput, NestedPatterns, is_nested
from xpath_eval.nodesets import DOCUMENT, NodeSets, node_set
from xpath_eval.parsing import XmlError, parse_elements
from xpath_eval.shape import DerivedValues, Labels, Shape, ShapeCollector, Witnesses, gather
from xpath_eval.steps import AutomatonStep, StepGroup, StepVariable
from xpath_eval.steptree import StepTree
from xpath_eval.structure import Detail, NodeTree, Structure, StructureKey, structure_key
from xpath_eval.tagpatterns import KnownTexts, TagPatterns
from xpath_eval.walk import Answer, Asker, Stage, Walk
from xscl.sharedtexts import SHARED

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Evaluator", "Shape", "Witnesses"]

_RawKey = tuple[str, bool, StructureKey]

_NOTHING_DERIVED: DerivedValues = {}
_NO_LABELS = Labels(np.empty(0, np.int32), np.empty(0, np.int64), ())


@dataclass(slots=True)
class _RawShape:
    """One structure, and its stages so far; `steps` are the nodes of the steps that were asked.

    `stages` are kept behind the first, `worked_out` have been in all.  `parsed` of its documents
    have been parsed since it is known; with so many as `learnt_at` a pattern is made of one.
    """

    structure: Structure
    steps: dict[int, int]
    labels: Labels
    stage: Stage
    stages: int = 0
    worked_out: int = 0
    parsed: int = 0
    learnt_at: int = 16
    selected: Selected = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class _Output:
    """What it means for an element to be in a state: labels, and what the walk wants to know."""

    labels: NDArray[np.int32]
    is_valued: bool
    nested: NestedOutput | None
    steps: tuple[AutomatonStep, ...]
    asked: tuple[StepVariable, ...]
    groups: tuple[StepGroup, ...]
    is_walked: bool


@dataclass(slots=True)
class _Reached:
    """What the states of a document's elements say together."""

    labels: Labels
    steps: dict[int, int] = field(default_factory=dict)
    asked: dict[int, StepVariable] = field(default_factory=dict)
    groups: dict[int, StepGroup] = field(default_factory=dict)


_TICK = b"<tick/>"
"""What stands for a document without content; it is in a stream of its own."""


class Evaluator:
    """Evaluates a plan on documents."""

    def __init__(
        self, plan: EvaluationPlan, limits: EvaluatorLimits = DEFAULT_EVALUATOR_LIMITS
    ) -> None:
        self.limits = limits
        self.plan = EvaluationPlan((), (), frozenset())
        self._counters = Counters()
        self._tree = StepTree()
        self._automaton = Automaton(self._tree.transitions, states_max=limits.states)
        self._nested = NestedPatterns(self._tree, limits.nested_bytes)
        self._labels = np.empty(0, np.int32)
        self._noted = np.empty(0, np.bool_)
        self._raw_shapes: dict[_RawKey, _RawShape] = {}
        self._tagged = TagPatterns[_RawShape]()
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

    @property
    def pattern_count(self) -> int:
        """How many patterns of tags are kept."""
        return len(self._tagged)

    def update(self, plan: EvaluationPlan) -> None:
        """Evaluate another plan from now on; what both have in common is kept."""
        for variable in self._tree.variables.values():
            variable.unwatch()
        self._tree.replace(self.plan, plan)
        self._tree.admit(plan)
        self.plan = plan
        for high, low in plan.edges:
            self._tree.variables[low].highs.append(high)
        self._share_out()
        if self._tree.changed:
            self._automaton.forget(self._tree.changed)
            self._tree.changed.clear()
        self._note()
        self._detail = self._tree.detail
        self._automaton.forget_outputs()
        self.forget_shapes()

    def _share_out(self) -> None:
        """Decide who finds each variable: the automaton, `NestedPatterns`, or the walk."""
        nested: list[StepVariable] = []
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
        if len(nested) < self.limits.nested_variables:
            for variable in nested:
                variable.walk()
            nested = []
        for variable in nested:
            variable.is_labelled = True
        self._nested.follow(nested)

    def _note(self) -> None:
        """Note by the numbers of steps what somebody wants to know of the elements they select."""
        size = self._tree.transitions.size
        self._labels = np.zeros(size, np.int32)
        self._noted = np.zeros(size, np.bool_)
        for number, step in self._tree.steps.items():
            plain = step.plain
            if plain is not None and plain.is_labelled:
                self._labels[number] = plain.id + 1
            if step.watched or step.filtered or (plain is not None and plain.is_asked):
                self._noted[number] = True

    def _watch(self, high: int, low: StepVariable) -> None:
        """Have the nodes known of all steps that the walk composes between two variables."""
        variable: StepVariable | None = low
        while variable is not None:
            if variable.step is not None:
                variable.step.watched = True
            variable = variable.parent if variable.id != high else None

    def evaluate(
        self, stream: str, xml: bytes, *, is_published: bool = False, revision: int = 0
    ) -> Witnesses:
        """Return the witnesses of one document; raise `XmlError` where it cannot be read.

        A document without content is a tick of the clock, in which nothing is found.  `revision`
        says how many documents it revises.
        """
        known = self._tagged.read(stream, xml, is_published=is_published)
        if isinstance(known, Witnesses):
            self._counters.raw_shape_hits += 1
            self._counters.witness_shape_hits += 1
            return known
        tree: NodeTree
        if known is not None:
            self._counters.raw_shape_hits += 1
            is_known, raw, tree = True, known.raw, known.tree
            tree.revision = revision
        else:
            elements = parse_elements(xml or _TICK)
            raw, is_known = self._raw_shape(stream, elements, bool(xml), is_published)
            tree = NodeTree(elements, revision)
        before = raw.worked_out
        if is_known and known is None:
            self._learn(raw, stream, xml, tree, is_published)
        found = self._fill(raw, tree)
        is_known = is_known and before == raw.worked_out
        self._counters.witness_shape_hits += is_known
        self._counters.witness_shape_misses += not is_known
        return found

    def _learn(
        self, raw: _RawShape, stream: str, xml: bytes, tree: NodeTree, is_published: bool
    ) -> None:
        """Make a pattern of a document of a known raw shape, where enough had to be parsed."""
        raw.parsed += 1
        if raw.parsed < raw.learnt_at:
            return
        # Tags may be others each time: then little time goes into patterns.
        raw.learnt_at *= 4
        # Tags do not say where texts are.
        if self._detail is Detail.TEXTS:
            return
        stage = raw.stage
        if not stage.questions:
            assert stage.gathering is not None
            self._tagged.learn(stream, xml, stage.gathering, is_published=is_published)
            return
        leaves = [element for element, count in enumerate(raw.structure.counts) if not count]
        known = KnownTexts(xml, tree.texts(leaves), {leaf: i for i, leaf in enumerate(leaves)})
        known.revision = tree.revision
        self._fill(raw, known)
        if not known.is_parsed:
            self._tagged.learn_asked(stream, xml, raw, leaves, is_published=is_published)

    def _fill(self, raw: _RawShape, tree: NodeTree) -> Witnesses:
        """Return the witnesses of a document of a raw shape."""
        stage, derived = raw.stage, _NOTHING_DERIVED
        shared: tuple[str, ...] = ()
        if stage.questions:
            stage, asker = self._answer(raw, tree)
            derived, shared = asker.derived, tuple(asker.shared.values())
        gathering = stage.gathering
        assert gathering is not None
        nodes, values = gathering.nodes, gathering.values(tree, derived)
        if shared:
            nodes, values = (*nodes, *repeat(SHARED, len(shared))), (*values, *shared)
        return Witnesses(gathering.shape, nodes, values)

    def gathering(
        self, stream: str, xml: bytes, *, is_published: bool = False
    ) -> ShapeCollector | None:
        """Return how every document with the structure of this one is filled in.

        None where their text has a say in what is found.
        """
        elements = parse_elements(xml or _TICK)
        raw, _ = self._raw_shape(stream, elements, bool(xml), is_published)
        return None if raw.stage.questions else raw.stage.gathering

    def evaluate_alike(
        self, stream: str, xml: bytes, trees: Iterable[NodeTree], *, is_published: bool = False
    ) -> Iterator[Witnesses | XmlError]:
        """Yield the witnesses of documents that have the stream and the structure of one."""
        raw, _ = self._raw_shape(stream, parse_elements(xml), bool(xml), is_published)
        for tree in trees:
            try:
                yield self._fill(raw, tree)
            except XmlError as error:
                yield error

    def _raw_shape(
        self, stream: str, elements: list[etree._Element], has_content: bool, is_published: bool
    ) -> tuple[_RawShape, bool]:
        """Return the raw shape of a document, and whether it was known."""
        key = (stream, is_published, structure_key(elements, self._detail))
        raw = self._raw_shapes.get(key)
        if raw is not None:
            self._counters.raw_shape_hits += 1
            return raw, True
        self._counters.raw_shape_misses += 1
        roots = self._roots(stream, is_published=is_published) if has_content else []
        raw = self._read_raw_shape(NodeTree(elements), key[2], roots)
        self._keep(key, raw)
        return raw, False

    def take_counters(self) -> Counters:
        """Return what has been counted since this was last asked."""
        counters, self._counters = self._counters, Counters()
        counters.automaton_states = self._automaton.state_count
        counters.automaton_evictions = self._automaton.dropped
        self._automaton.dropped = 0
        return counters

    def _keep(self, key: _RawKey, raw: _RawShape) -> None:
        is_full = len(self._raw_shapes) >= self.limits.raw_shapes
        if is_full or self._edges_kept > self.limits.edges:
            self._evict()
        if self.limits.raw_shapes:
            self._raw_shapes[key] = raw

    def _evict(self) -> None:
        self._counters.raw_shape_evictions += len(self._raw_shapes)
        stages = sum(raw.stages for raw in self._raw_shapes.values())
        self._counters.witness_shape_evictions += stages
        self.forget_shapes()

    def forget_shapes(self) -> None:
        """Drop all that is known of shapes; the automaton stays."""
        self._raw_shapes.clear()
        self._tagged.clear()
        self._edges_kept = 0

    def _roots(self, stream: str, *, is_published: bool) -> list[StepVariable]:
        """Return the variables of a document's node; `*` is any stream from outside."""
        roots = self._tree.roots
        found = (roots.get(stream), None if is_published else roots.get(ANY_STREAM))
        return [root for root in found if root is not None]

    def _read_raw_shape(
        self, tree: NodeTree, key: StructureKey, roots: Sequence[StepVariable]
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
            raw.steps, raw.labels = {}, _NO_LABELS
        return raw

    def _reach(self, structure: Structure, roots: Sequence[StepVariable]) -> _Reached:
        """Run the automaton, and put together what its states say."""
        start = tuple(root.step for root in roots if root.step is not None)
        states = self._automaton.run(start, structure.names, structure.counts)
        outputs: list[_Output] = [state.output or self._find_output(state) for state in states]
        reached = _Reached(self._label(structure, outputs))
        elements: dict[_Output, list[int]] = {}
        for element, output in enumerate(outputs):
            if output.is_walked:
                elements.setdefault(output, []).append(element)
        for output, where in elements.items():
            reached.asked.update((v.id, v) for v in output.asked)
            reached.groups.update((id(g), g) for g in output.groups)
            nodes = node_set(where)
            for step in output.steps:
                reached.steps[step.number] = reached.steps.get(step.number, 0) | nodes
        return reached

    def _label(self, structure: Structure, outputs: Sequence[_Output]) -> Labels:
        """Return the labels of elements, by what their states say."""
        places = [element for element, output in enumerate(outputs) if len(output.labels)]
        valued = [element for element in places if outputs[element].is_valued]
        rows = [outputs[element].labels for element in places]
        if self._nested.variables:
            nested = [output.nested for output in outputs if output.nested is not None]
            rows += self._nested.find(structure, nested)
            places += range(len(nested))
        if not rows:
            return _NO_LABELS
        elements = np.repeat(places, [len(row) for row in rows])
        return Labels(np.concatenate(rows), elements, valued)

    def _find_output(self, state: State) -> _Output:
        labels = self._labels[state.selected]
        labels = np.sort(labels[labels > 0]) - 1
        noted = state.selected[self._noted[state.selected]].tolist()
        selected = [self._tree.steps[number] for number in noted]
        plain = [step.plain for step in selected if step.plain is not None]
        steps = tuple([step for step in selected if step.watched])
        asked = tuple([variable for variable in plain if variable.is_asked])
        groups = tuple([g for step in selected for g in step.filtered if g.is_walked])
        nested = None
        if self._nested.variables:
            nested = self._nested.output(self._tree.transitions.flags(state.selected))
        output = state.output = _Output(
            labels,
            not self.plan.valued.isdisjoint(labels.tolist()),
            nested,
            steps,
            asked,
            groups,
            is_walked=bool(steps or asked or groups),
        )
        return output

    def _finish(self, raw: _RawShape, stage: Stage) -> None:
        stage.gathering = gather(raw.structure, raw.labels, stage.edges, self.plan.valued)
        self._edges_kept += len(stage.gathering.shape)

    def _answer(self, raw: _RawShape, tree: NodeTree) -> tuple[Stage, Asker]:
        """Follow the stages of a raw shape by the answers of a document, to the last."""
        structure, stage = raw.structure, raw.stage
        if len(raw.selected) > self.limits.selected:
            raw.selected.clear()
        asker = Asker(tree, structure, raw.selected, self._tree.variables)
        while stage.questions:
            answers = tuple(map(asker.ask, stage.questions))
            following = stage.next.get(answers)
            if following is None:
                following = self._go_on(raw, stage, answers, asker)
            stage = following
        return stage, asker

    def _go_on(
        self, raw: _RawShape, stage: Stage, answers: tuple[Answer, ...], conditions: Conditions
    ) -> Stage:
        walk = Walk(NodeSets(raw.structure), conditions, self._tree.variables, raw.steps)
        following = walk.go_on(stage, answers)
        if not following.questions:
            self._finish(raw, following)
        if self._edges_kept > self.limits.edges:
            self._evict()
        if raw.stages >= self.limits.outcomes:
            self._counters.witness_shape_evictions += raw.stages
            raw.stages = 0
            raw.stage.next.clear()
        raw.stages += 1
        raw.worked_out += 1
        stage.next[answers] = following
        return following
