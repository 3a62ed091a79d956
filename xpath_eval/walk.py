"""From the states of a document's elements to bound variables, as far as its structure decides.

The walk goes down the variables.  What is plain comes from the automaton; each other variable
takes the nodes that its step reaches from its parent's, and keeps nodes that pass its filters.
Where the answer is in the document's text, the walk stops with a **question**:

- which variables of a group let which of some candidates through, or
- how many values a derived variable has at each of some nodes.

So the evaluation of a raw shape is a tree of **stages**: the first is what structure alone
decides; given the answers of a document to its questions, the next stage goes on below what
passed.  A document that gives answers that were given before follows a known branch, and only the
questions cost anything.  The last stage of a branch has no questions, and a gathering.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from xpath_eval.conditions import Conditions, Selected
from xpath_eval.describe import value_text
from xpath_eval.nodesets import NodeSets, members, node_set
from xpath_eval.parsing import XmlError
from xpath_eval.shape import Bound, ShapeCollector
from xpath_eval.steps import StepGroup, StepVariable
from xpath_eval.structure import NodeTree, Structure
from xscl import functions
from xscl.comparison import REVISION, Call, Derived, PathFrom
from xscl.evaluation import optional_values
from xscl.path import Axis, Excerpt
from xscl.pattern import Values

__all__ = ["DERIVED_CHARACTERS_MAX", "Answer", "Asker", "ConditionQuestion", "Stage", "Walk"]

DERIVED_CHARACTERS_MAX = 64 << 20
"""Characters of the values that functions give of one document: for each query that applies another
function, the values of its nodes once more."""


def _what_is_made(derivation: Derived | PathFrom | Values) -> str:
    """Return what is too much of a document, named by the last of it."""
    if not (read := _excerpts(derivation)):
        return "the values that functions in queries give of the document have"
    return f"what queries read of the document, as {value_text(read[0])}, has"


def _excerpts(derivation: Derived | PathFrom | Values) -> tuple[Excerpt, ...]:
    return derivation.excerpts if isinstance(derivation, Values) else ()


@dataclass(frozen=True, slots=True)
class ConditionQuestion:
    """Who of a group's variables passes which candidates, or how many values one has where."""

    about: StepGroup | StepVariable
    nodes: int
    places: tuple[int, ...]


def _question(about: StepGroup | StepVariable, nodes: int) -> ConditionQuestion:
    return ConditionQuestion(about, nodes, tuple(members(nodes)))


Answer = tuple[tuple[int, int], ...]
"""Of a group: (variable, set of nodes); of a derived variable: (node, number of values)."""

UnplacedEdge = tuple[int, int, Bound, Bound]


@dataclass(slots=True)
class Stage:
    """What is known after some answers: more questions, or how to gather the witnesses.

    `nodes` are the nodes of each variable that has been met, `counts` how many values each derived
    variable has where.
    """

    questions: tuple[ConditionQuestion, ...]
    nodes: Mapping[int, int]
    counts: Mapping[int, Answer]
    edges: Sequence[UnplacedEdge]
    gathering: ShapeCollector | None = None
    next: dict[tuple[Answer, ...], Stage] = field(default_factory=dict)


class Walk:
    """Goes on from one stage to the next on one structure.

    `steps` gives the nodes of each step that the automaton reached, by the step's number.
    """

    def __init__(
        self,
        sets: NodeSets,
        conditions: Conditions,
        variables: Mapping[int, StepVariable],
        steps: Mapping[int, int],
    ) -> None:
        self._sets = sets
        self._conditions = conditions
        self._variables = variables
        self._steps = steps
        self._nodes: dict[int, int] = {}
        self._counts: dict[int, Answer] = {}
        self._edges: list[UnplacedEdge] = []
        self._questions: list[ConditionQuestion] = []
        self._groups: list[tuple[StepGroup, int]] = []
        self._pairs: dict[int, list[tuple[int, Bound]]] = {}

    def start(
        self, plain: Iterable[tuple[StepVariable, int]], groups: Iterable[StepGroup]
    ) -> Stage:
        """Return the first stage: what structure alone decides.

        `plain` are plain variables that something is asked of, `groups` the groups of variables
        with filters at the steps that the automaton reached.
        """
        for variable, nodes in plain:
            self._bind(variable, nodes)
        for group in groups:
            if group.is_walked:
                self._groups.append((group, self._steps[group.step.number]))
        return self._stage()

    def go_on(self, stage: Stage, answers: Sequence[Answer]) -> Stage:
        """Return what follows a stage when its questions have been answered."""
        self._nodes = dict(stage.nodes)
        self._counts = dict(stage.counts)
        self._edges = list(stage.edges)
        for question, answer in zip(stage.questions, answers, strict=True):
            if isinstance(question.about, StepVariable):
                self._counts[question.about.id] = answer
                self._add_edges(question.about)
            else:
                for variable, nodes in answer:
                    self._bind(self._variables[variable], nodes)
        return self._stage()

    def _stage(self) -> Stage:
        while self._groups:
            group, candidates = self._groups.pop()
            self._open(group, candidates)
        return Stage(tuple(self._questions), self._nodes, self._counts, self._edges)

    def _bind(self, variable: StepVariable, nodes: int) -> None:
        """Note the nodes of a variable, and look below it."""
        self._nodes[variable.id] = nodes
        self._add_edges(variable)
        for group in variable.groups.values():
            if (variable.is_plain and group.step.is_followed) or not group.is_walked:
                continue
            if candidates := self._candidates(group, nodes):
                self._groups.append((group, candidates))
        for derived in variable.derived:
            # One that nobody wants is not asked for.
            if not derived.highs:
                continue
            self._questions.append(_question(derived, nodes))

    def _candidates(self, group: StepGroup, contexts: int) -> int:
        step = group.step
        if step.is_followed:
            passing = self._steps.get(step.number, 0)
            if not passing:
                return 0
        else:
            passing = self._sets.passing(step.axis, step.test)
        return passing & self._sets.step(
            contexts, step.axis, is_deep=step.is_deep, is_text=step.test.is_text
        )

    def _open(self, group: StepGroup, candidates: int) -> None:
        """Bind the variables of a group that structure decides; ask about the others."""
        if group.free is not None and group.free.is_walked:
            self._bind(group.free, candidates)
        for variable, name in group.structural.values():
            if not variable.is_walked or (name is not None and not self._sets.has(name)):
                continue
            nodes = self._decide(variable, candidates)
            if nodes:
                self._bind(variable, nodes)
        if group.is_open:
            self._questions.append(_question(group, candidates))

    def _decide(self, variable: StepVariable, candidates: int) -> int:
        nodes = candidates
        for condition in variable.filters:
            kept = self._sets.holding(condition)
            if kept is None:
                return survivors(self._sets.structure, self._conditions, variable, candidates)
            nodes &= kept
        return nodes

    def _add_edges(self, variable: StepVariable) -> None:
        for high in variable.highs:
            if high == variable.id:
                if variable.is_labelled:
                    continue
                self._edges.extend((high, high, b, b) for b in self._bound(variable))
            else:
                self._edges.extend(self._compose(high, variable))

    def _bound(self, variable: StepVariable) -> Iterable[Bound]:
        if variable.step is None:
            counts = self._counts[variable.id]
            return [(n, variable.id, i) for n, count in counts for i in range(count)]
        return members(self._nodes_of(variable))

    def _nodes_of(self, variable: StepVariable) -> int:
        nodes = self._nodes.get(variable.id)
        if nodes is None:
            assert variable.is_plain
            assert variable.step is not None
            nodes = self._steps[variable.step.number]
        return nodes

    def _compose(self, high: int, low: StepVariable) -> Iterable[UnplacedEdge]:
        """Yield the edges between a variable and one above it, through all between them."""
        pairs: set[tuple[int, Bound]] = set(self._pairs_of(low))
        variable = low.parent
        while variable is not None and variable.id != high:
            up: dict[Bound, list[int]] = defaultdict(list)
            for above, node in self._pairs_of(variable):
                up[node].append(above)
            pairs = {(above, bound) for node, bound in pairs for above in up[node]}
            variable = variable.parent
        return ((high, low.id, above, bound) for above, bound in pairs)

    def _pairs_of(self, variable: StepVariable) -> list[tuple[int, Bound]]:
        """Return (node of the variable above, node) for each node of a variable."""
        known = self._pairs.get(variable.id)
        if known is None:
            known = self._pairs[variable.id] = list(self._find_pairs(variable))
        return known

    def _find_pairs(self, variable: StepVariable) -> Iterable[tuple[int, Bound]]:
        step, above = variable.step, variable.parent
        if step is None:
            for bound in self._bound(variable):
                assert isinstance(bound, tuple)
                yield bound[0], bound
            return
        assert above is not None
        structure = self._sets.structure
        contexts = self._nodes_of(above)
        for node in members(self._nodes_of(variable)):
            origin = node if step.axis is Axis.SELF else structure.parent(node)
            if not step.is_deep:
                yield origin, node
                continue
            while origin >= 0:
                if contexts >> origin & 1:
                    yield origin, node
                origin = structure.parent(origin)


class Asker(Conditions):
    """Answers questions from one document's text: those of `variables`, by their numbers.

    `selected` may be shared by all documents of one structure.
    """

    __slots__ = ("_derived_characters", "_variables", "derived")

    def __init__(
        self,
        tree: NodeTree,
        structure: Structure,
        selected: Selected,
        variables: Mapping[int, StepVariable],
    ) -> None:
        super().__init__(tree, structure, selected)
        self._variables = variables
        self.derived: dict[tuple[int, int], tuple[str, ...]] = {}
        self._derived_characters = 0

    def ask(self, question: ConditionQuestion) -> Answer:
        """Return the answer of the document in hand."""
        about = question.about
        if isinstance(about, StepVariable):
            return tuple(self._derive(about, question.places))
        found = about.index.find(question.places, self.values)
        passed = self._passed(about, question, found) if found else ()
        return (*passed, *self._admitted(about, question))

    def _admitted(self, group: StepGroup, question: ConditionQuestion) -> Iterable[tuple[int, int]]:
        """Yield the variables whose prefilters hold in the document, with their nodes."""
        for variable in group.prefiltered.values():
            if variable.is_walked and all(
                any(test.holds(partial(self.values, node=node)) for node in question.places)
                for test in variable.prefilters.values()
            ):
                nodes = question.nodes
                if variable.filters:
                    nodes = survivors(self._structure, self, variable, nodes)
                if nodes:
                    yield variable.id, nodes

    def _derive(self, variable: StepVariable, nodes: Iterable[int]) -> Iterable[tuple[int, int]]:
        step = variable.definition.step
        assert step is not None
        assert step.derivation is not None
        nodes = tuple(nodes)
        for excerpt in _excerpts(step.derivation):
            if excerpt.leads_upwards:
                self._count(step.derivation, [self.place(excerpt, nodes)])
        for node in nodes:
            values = self._derived_values(step.derivation, node)
            self._count(step.derivation, values)
            self.derived[variable.id, node] = values
            yield node, len(values)

    def _count(self, derivation: Derived | PathFrom | Values, made: Iterable[str]) -> None:
        """Count texts that are made of the document; raise `XmlError` where they are too many."""
        self._derived_characters += sum(map(len, made))
        if self._derived_characters > DERIVED_CHARACTERS_MAX:
            raise XmlError(
                f"{_what_is_made(derivation)} more than {DERIVED_CHARACTERS_MAX}"
                " characters together"
            )

    def _derived_values(
        self, derivation: Derived | PathFrom | Values, node: int
    ) -> tuple[str, ...]:
        if isinstance(derivation, Values):
            return derivation.of(partial(self.values, node=node))
        if isinstance(derivation, PathFrom):
            selected = self.select(derivation.path, node)
            return (optional_values(map(self.value, selected)),)
        if isinstance(derivation, Call) and derivation.function == REVISION:
            return (str(self._tree.revision),)
        text = self.value(node)
        return tuple(dict.fromkeys(functions.derive(derivation, text)))

    def _passed(
        self, group: StepGroup, question: ConditionQuestion, found: Mapping[int, Sequence[int]]
    ) -> Iterable[tuple[int, int]]:
        decided = group.index.decided
        for id_, hits in sorted(found.items()):
            variable = self._variables[id_]
            if not variable.is_walked:
                continue
            if id_ in decided:
                yield id_, node_set(hits)
                continue
            # Where positions are counted, the nodes that fail the access test count too.
            nodes = question.nodes if variable.counts_positions else node_set(hits)
            passed = survivors(self._structure, self, variable, nodes)
            if passed:
                yield id_, passed


def survivors(
    structure: Structure, conditions: Conditions, variable: StepVariable, candidates: int
) -> int:
    """Return the candidates that pass a variable's filters, one filter after the other.

    Positions are counted among the candidates that a step selects from one origin.
    """
    step = variable.step
    assert step is not None
    groups: dict[int, list[int]] = defaultdict(list)
    for node in members(candidates):
        groups[node if step.axis is Axis.SELF else structure.parent(node)].append(node)
    passed = (n for group in groups.values() for n in conditions.survivors(variable.filters, group))
    return node_set(passed)
