"""One automaton that finds the elements of all patterns in one walk over a document.

Theory of operation.  The steps of a plan form a tree (`xpath_eval.steps`); seen as an automaton
it is an NFA as in YFilter (Diao et al., TODS 2003): reading an element's name moves from each
step that selects the parent element to the steps below it that name the element, and a step with
`//` below it stays awake in the whole subtree.  It is determinised lazily (Green et al., TODS
2004): a **state** is the set of steps that select an element together with the set of those awake
below it, and reading a name in a state is a dictionary look-up after the first time.  So the
cost of one element does not depend on the number of patterns.

Filters are not looked at here: a state says which elements *can* be selected, by their names
alone.  The walk asks the filters afterwards, of those elements only, so that a million patterns
that differ in their conditions are one path through the automaton.  (Of very
many filters that are plain paths, the automaton follows the paths too: `xpath_eval.nested`.)

What changes when a step is added or removed: the transitions of the states that select its parent
are forgotten, and states that select a removed step.  Nothing else.  All steps removed, it is as
new.

Bounds: at most `states_max` states are kept; then all are dropped and found again as needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xpath_eval.steps import AutomatonStep

__all__ = ["Automaton", "State"]


class State:
    """A set of steps, in the order of their numbers, and where each name leads from it.

    `output` is for whoever runs the automaton: what it has worked out of the steps.
    """

    __slots__ = ("awake", "next", "output", "selected")

    def __init__(
        self, selected: tuple[AutomatonStep, ...], awake: tuple[AutomatonStep, ...]
    ) -> None:
        self.selected = selected
        self.awake = awake
        self.next: dict[str, State] = {}
        self.output: Any = None


class Automaton:
    """The lazily determinised automaton of a tree of steps."""

    def __init__(self, *, states_max: int) -> None:
        self._states_max = states_max
        self._states: dict[tuple[tuple[AutomatonStep, ...], tuple[AutomatonStep, ...]], State] = {}
        self.dropped = 0

    @property
    def state_count(self) -> int:
        """How many states have been found and are kept."""
        return len(self._states)

    def run(
        self, roots: tuple[AutomatonStep, ...], names: Sequence[str], counts: Sequence[int]
    ) -> list[State]:
        """Return the state of each element, by the names and the child counts of all.

        `roots` are the steps of the document node.
        """
        states: list[State] = []
        state = self._state(roots, tuple(step for step in roots if step.has_deep))
        left = 1
        waiting: list[tuple[State, int]] = []
        for name, count in zip(names, counts, strict=True):
            following = state.next.get(name)
            if following is None:
                following = state.next[name] = self._read(state, name)
            states.append(following)
            left -= 1
            if count:
                if left:
                    waiting.append((state, left))
                state, left = following, count
            elif not left and waiting:
                state, left = waiting.pop()
        return states

    def forget(self, changed: set[AutomatonStep]) -> None:
        """Take notice that what stands below some steps, or that they are there, has changed."""
        for key, state in list(self._states.items()):
            # The state of no steps goes too, so that without any nothing is left.
            steps = (*state.selected, *state.awake)
            if not steps or not changed.isdisjoint(steps):
                del self._states[key]
        # A state that is gone may still be where another one leads.
        for state in self._states.values():
            state.next.clear()

    def forget_outputs(self) -> None:
        """Take the outputs of all states back."""
        for state in self._states.values():
            state.output = None

    def _read(self, state: State, name: str) -> State:
        selected = {below for step in state.selected for below in step.children(name)}
        selected.update(below for step in state.awake for below in step.descendants(name))
        awake = set(state.awake)
        awake.update(step for step in selected if step.has_deep)
        return self._state(_ordered(selected), _ordered(awake))

    def _state(
        self, selected: tuple[AutomatonStep, ...], awake: tuple[AutomatonStep, ...]
    ) -> State:
        state = self._states.get((selected, awake))
        if state is None:
            if len(self._states) >= self._states_max:
                self.dropped += len(self._states)
                self._states.clear()
            state = self._states[selected, awake] = State(selected, awake)
        return state


def _ordered(steps: set[AutomatonStep]) -> tuple[AutomatonStep, ...]:
    return tuple(sorted(steps, key=_number))


def _number(step: AutomatonStep) -> int:
    return step.number
