"""One automaton that finds the elements of all patterns in one walk over a document.

Theory of operation.  The definitions of a catalog form a tree of steps; seen as an automaton it
is an NFA as in YFilter (Diao et al., TODS 2003): reading an element's name moves from each step
whose node the parent element is to the child steps that name the element, and a step with `//`
below it stays awake in the whole subtree.  It is determinised lazily (Green et al., TODS 2004):
a **state** is the set of variables that select an element together with the set of those awake
below it, and reading a name in a state is a dictionary look-up after the first time.  So the
cost of one element does not depend on the number of patterns.

Filters are not looked at here: a state says which elements *can* be selected, by their names
alone.  The evaluator asks the filters afterwards, of those elements only.

Bounds: at most `STATES_MAX` states are kept; then all are dropped and found again as needed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from xpath_eval.catalog import ANY_STREAM, EvaluationPlan
from xscl.path import ANY, Axis, NodeTest

__all__ = ["Automaton", "matches_name"]

STATES_MAX = 100_000
"""Bounds the memory of the lazily built automaton to some tens of megabytes."""


def matches_name(test: NodeTest, name: str) -> bool:
    """Return whether an expanded name (`{uri}local` or `local`) passes a node test."""
    namespace, _, local = name.rpartition("}")
    if test.name not in (ANY, local):
        return False
    return test.namespace == ANY or (test.namespace or "") == namespace[1:]


@dataclass
class _Steps:
    """The element steps below one variable: by exact name, and those with a wildcard."""

    named: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    wild: list[tuple[NodeTest, int]] = field(default_factory=list)

    def add(self, test: NodeTest, variable: int) -> None:
        if ANY in (test.name, test.namespace):
            self.wild.append((test, variable))
        else:
            name = f"{{{test.namespace}}}{test.name}" if test.namespace else test.name
            self.named[name].append(variable)

    def read(self, name: str) -> Iterable[int]:
        yield from self.named.get(name, ())
        for test, variable in self.wild:
            if matches_name(test, name):
                yield variable


@dataclass(slots=True)
class _State:
    selected: tuple[int, ...]
    awake: tuple[int, ...]
    next: dict[str, _State] = field(default_factory=dict)


class Automaton:
    """The lazily determinised automaton of one evaluation plan."""

    def __init__(self, plan: EvaluationPlan) -> None:
        self._roots: dict[str, int] = {}
        self._child: dict[int, _Steps] = defaultdict(_Steps)
        self._deep: dict[int, _Steps] = defaultdict(_Steps)
        for variable, definition in plan.definitions:
            step = definition.step
            if step is None:
                self._roots[definition.stream] = variable
            elif step.axis is Axis.CHILD and not step.test.is_text and step.derivation is None:
                steps = self._deep if step.is_deep else self._child
                steps[definition.parent].add(step.test, variable)
        self._states: dict[tuple[tuple[int, ...], tuple[int, ...]], _State] = {}

    @property
    def state_count(self) -> int:
        """How many states have been found so far."""
        return len(self._states)

    def document_variables(self, stream: str, *, is_published: bool) -> tuple[int, ...]:
        """Return the variables of a document's node; `*` is any stream from outside."""
        roots = (self._roots.get(stream), None if is_published else self._roots.get(ANY_STREAM))
        return tuple(sorted(r for r in roots if r is not None))

    def run(
        self, variables: tuple[int, ...], names: Sequence[str], parents: Sequence[int]
    ) -> list[tuple[int, ...]]:
        """Return for each element the variables that can select it, in order.

        `variables` are those of the document node.
        """
        states: list[_State] = []
        start = self._state(variables, tuple(v for v in variables if v in self._deep))
        for name, parent in zip(names, parents, strict=True):
            state = states[parent] if parent >= 0 else start
            following = state.next.get(name)
            if following is None:
                following = state.next[name] = self._read(state, name)
            states.append(following)
        return [state.selected for state in states]

    def _read(self, state: _State, name: str) -> _State:
        selected = {
            v for s in state.selected if s in self._child for v in self._child[s].read(name)
        }
        selected.update(v for s in state.awake for v in self._deep[s].read(name))
        awake = set(state.awake)
        awake.update(v for v in selected if v in self._deep)
        return self._state(tuple(sorted(selected)), tuple(sorted(awake)))

    def _state(self, selected: tuple[int, ...], awake: tuple[int, ...]) -> _State:
        state = self._states.get((selected, awake))
        if state is None:
            if len(self._states) >= STATES_MAX:
                self._states.clear()
            state = self._states[selected, awake] = _State(selected, awake)
        return state
