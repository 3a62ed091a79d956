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

Steps are numbers here, and sets of them sorted columns: with ten thousand patterns hundreds of
steps select an element, and a name is read in all of them at once.

Bounds: at most `states_max` states are kept; then all are dropped and found again as needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xpath_eval.steps import AutomatonStep
from xscl.path import ANY, NodeTest, matches_name

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Steps = NDArray[np.signedinteger]
    Flags = NDArray[np.bool_]

__all__ = ["Automaton", "State", "Transitions"]


class Transitions:
    """Where names lead from steps: to those below, and to those anywhere below.

    `size` is above the number of every step, also of those to which no name leads.
    """

    def __init__(self) -> None:
        self.size = 1
        self._children = _Tables()
        self._descendants = _Tables()

    def add(self, step: AutomatonStep) -> None:
        """Let the automaton go on to a step from the one above it."""
        self._tables(step).add(step)

    def remove(self, step: AutomatonStep) -> None:
        """Undo `add`."""
        self._tables(step).remove(step)

    def _tables(self, step: AutomatonStep) -> _Tables:
        return self._descendants if step.is_deep else self._children

    def flags(self, steps: Steps) -> Flags:
        """Return for every number whether it is that of one of some steps."""
        flags = np.zeros(self.size, np.bool_)
        flags[steps] = True
        return flags

    def read(self, selected: Steps, awake: Steps, name: str) -> tuple[Steps, Steps]:
        """Return where a name leads: to the steps that select, and those awake below them."""
        found, are_awake = np.zeros(self.size, np.bool_), self.flags(awake)
        for steps in self._children.find(self.flags(selected), name):
            found[steps] = True
        for steps in self._descendants.find(are_awake, name):
            found[steps] = True
        following = found.nonzero()[0]
        return following, self._awake(awake, are_awake, following)

    def start(self, roots: Steps) -> Steps:
        """Return which of the steps of a document node are awake below it."""
        return self._awake(_NONE, np.zeros(self.size, np.bool_), roots)

    def _awake(self, awake: Steps, are_awake: Flags, selected: Steps) -> Steps:
        more = selected[self._descendants.are_above(self.size)[selected]]
        if not len(more):
            return awake
        are_awake[more] = True
        return are_awake.nonzero()[0]


class _Tables:
    """Steps by what they ask of an element, each with the step above it."""

    def __init__(self) -> None:
        self._by_name: dict[str, dict[NodeTest, _Table]] = {}
        self._are_above: Flags | None = None

    def add(self, step: AutomatonStep) -> None:
        assert step.parent is not None
        tables = self._by_name.setdefault(step.test.name, {})
        tables.setdefault(step.test, _Table()).add(step.number, step.parent.number)
        self._are_above = None

    def remove(self, step: AutomatonStep) -> None:
        tables = self._by_name[step.test.name]
        if tables[step.test].remove(step.number):
            del tables[step.test]
        self._are_above = None

    def find(self, flags: Flags, name: str) -> Iterator[Steps]:
        """Yield the steps of this name whose steps above are flagged."""
        _, _, local = name.rpartition("}")
        for each in dict.fromkeys((local, ANY)):
            for test, table in self._by_name.get(each, {}).items():
                if matches_name(test, name):
                    above, steps = table.columns()
                    yield steps[flags[above]]

    def are_above(self, size: int) -> Flags:
        """Return for every number whether it is that of a step above one of these."""
        if self._are_above is None or len(self._are_above) < size:
            self._are_above = np.zeros(size, np.bool_)
            for tables in self._by_name.values():
                for table in tables.values():
                    self._are_above[table.columns()[0]] = True
        return self._are_above


class _Table:
    """Steps with the steps above them, as columns where they are read."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}
        self._columns: tuple[Steps, Steps] | None = None

    def add(self, step: int, above: int) -> None:
        self._above[step] = above
        self._columns = None

    def remove(self, step: int) -> bool:
        """Take a step out; return whether none is left."""
        del self._above[step]
        self._columns = None
        return not self._above

    def columns(self) -> tuple[Steps, Steps]:
        if self._columns is None:
            count = len(self._above)
            above = np.fromiter(self._above.values(), np.int32, count)
            self._columns = above, np.fromiter(self._above.keys(), np.int32, count)
        return self._columns


class State:
    """The numbers of some steps, in their order, and where each name leads from it.

    `output` is for whoever runs the automaton: what it has worked out of the steps.
    """

    __slots__ = ("awake", "next", "output", "selected")

    def __init__(self, selected: Steps, awake: Steps) -> None:
        self.selected = selected
        self.awake = awake
        self.next: dict[str, State] = {}
        self.output: Any = None


class Automaton:
    """The lazily determinised automaton of a tree of steps."""

    def __init__(self, transitions: Transitions, *, states_max: int) -> None:
        self._transitions = transitions
        self._states_max = states_max
        self._states: dict[tuple[bytes, bytes], State] = {}
        self.dropped = 0

    @property
    def state_count(self) -> int:
        """How many states have been found and are kept."""
        return len(self._states)

    def run(
        self, roots: Iterable[AutomatonStep], names: Sequence[str], counts: Sequence[int]
    ) -> list[State]:
        """Return the state of each element, by the names and the child counts of all.

        `roots` are the steps of the document node.
        """
        states: list[State] = []
        start = np.array(sorted(root.number for root in roots), np.int64)
        state = self._state(start, self._transitions.start(start))
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

    def forget(self, changed: Iterable[AutomatonStep]) -> None:
        """Take notice that what stands below some steps, or that they are there, has changed."""
        numbers = np.array([step.number for step in changed], np.int32)
        flags = np.zeros(max(self._transitions.size, 1 + numbers.max(initial=0)), np.bool_)
        flags[numbers] = True
        for key, state in list(self._states.items()):
            # The state of no steps goes too, so that without any nothing is left.
            is_empty = not len(state.selected) and not len(state.awake)
            if is_empty or flags[state.selected].any() or flags[state.awake].any():
                del self._states[key]
        # A state that is gone may still be where another one leads.
        for state in self._states.values():
            state.next.clear()

    def forget_outputs(self) -> None:
        """Take the outputs of all states back."""
        for state in self._states.values():
            state.output = None

    def _read(self, state: State, name: str) -> State:
        return self._state(*self._transitions.read(state.selected, state.awake, name))

    def _state(self, selected: Steps, awake: Steps) -> State:
        key = selected.astype(np.int32).tobytes(), awake.astype(np.int32).tobytes()
        state = self._states.get(key)
        if state is None:
            if len(self._states) >= self._states_max:
                self.dropped += len(self._states)
                self._states.clear()
            # The columns of a state are those of its key.
            state = State(*(np.frombuffer(each, np.int32) for each in key))
            self._states[key] = state
        return state


_NONE: Steps = np.empty(0, np.int64)
