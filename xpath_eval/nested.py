"""Paths with nested paths, thousands at a time: one bit for each step of each.

`/nitf[head/pubdata]/body//org` asks on its way whether something else is there.  Which elements
pass such a filter differs from document to document, so no automaton over names alone can carry
the answer, and following every variable by itself costs a microsecond each.  Here the variables
whose filters are plain nested paths, and of which only the nodes themselves are wanted, are
followed together, as in the Shift-And automaton (Baeza-Yates and Gonnet, CACM 1992): a set of
steps is an integer, going on from each step to the next is one shift.

Layout: a variable has a region of bits; bit 0 stands for the document node, bit i for the i-th
step of its path.  A filter at step i with m steps uses bits i to i + m of a second integer, its
**plane**: bit i + m - r says "r more steps hold from here", so that bit i, the filter's truth,
falls on the bit of the step that it filters.  Filters of one variable that would overlap take
different planes.

Two passes over a document:

- upwards, what holds at an element follows from its name and what holds at its children.  This is
  a tree automaton, determinised lazily: small subtrees recur, and cost a look-up.
- downwards, the steps that an element takes follow from its name, what holds at it, and the steps
  of its parent.

Cost: a dozen operations on integers for each element with a subtree that is new, whatever matches.
Bounds: upward states are dropped together when they take `STATE_BYTES_MAX`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from xpath_eval.nodesets import matches_name, node_set
from xpath_eval.steps import Variable
from xpath_eval.structure import Structure
from xscl.path import Axis, Condition, Exists, NodeTest, Path, Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["NestedPatterns", "is_nested"]

STATE_BYTES_MAX = 64 * 1024 * 1024
"""Bytes of the integers of upward states."""

NAMES_MAX = 10_000
"""Names whose sets of steps are kept.  A vocabulary has hundreds; a hostile stream, any number."""


def is_nested(variable: Variable) -> bool:
    """Return whether a variable's way consists of elements and of filters that are plain paths."""
    is_filtered = False
    above: Variable | None = variable
    while above is not None and above.parent is not None:
        if above.step is None or not above.step.is_followed:
            return False
        if not all(map(_is_plain_path, above.filters)):
            return False
        is_filtered = is_filtered or bool(above.filters)
        above = above.parent
    return is_filtered


def _is_plain_path(condition: Condition) -> bool:
    return (
        isinstance(condition, Exists)
        and bool(condition.path.steps)
        and all(_is_plain_step(step) for step in condition.path.steps)
    )


def _is_plain_step(step: Step) -> bool:
    return step.axis is Axis.CHILD and not step.test.is_text and not step.predicates


class _Plane:
    """The filters of one plane, as sets of bits."""

    def __init__(self) -> None:
        self.tests: dict[NodeTest, list[int]] = {}
        self.ends: list[int] = []
        self.child_bits: list[int] = []
        self.deep_bits: list[int] = []
        self.filtered: list[int] = []
        self.by_name: dict[str, int] = {}

    def add(self, at: int, path: Path) -> None:
        """Lay a filter's path out from the bit of the step that it filters."""
        self.filtered.append(at)
        for i, step in enumerate(path.steps):
            self.tests.setdefault(step.test, []).append(at + i + 1)
            (self.deep_bits if step.is_deep else self.child_bits).append(at + i)
        self.ends.append(at + len(path.steps))

    def seal(self, size: int) -> None:
        """Turn what has been laid out into sets of `size` bits."""
        self.end = node_set(self.ends)
        self.child = node_set(self.child_bits)
        self.deep = node_set(self.deep_bits)
        # Not `~`: operations on negative integers cost twice as much.
        self.unfiltered = ((1 << size) - 1) ^ node_set(self.filtered)
        self.test_sets = {test: node_set(bits) for test, bits in self.tests.items()}

    def named(self, name: str) -> int:
        """Return the bits of the steps that an element of this name takes."""
        found = self.by_name.get(name)
        if found is None:
            found = self.by_name[name] = _named(self.test_sets, name)
            if len(self.by_name) > NAMES_MAX:
                self.by_name.clear()
        return found


class _Upward:
    """What holds at an element: `passes` for the way down, `found` and `below` for its parent."""

    __slots__ = ("below", "found", "passes")

    def __init__(self, passes: int, found: tuple[int, ...], below: tuple[int, ...]) -> None:
        self.passes = passes
        self.found = found
        self.below = below


class _Downward:
    """The steps that an element takes, and those that its children, and all below, can take."""

    __slots__ = ("awake", "next", "selected")

    def __init__(self, selected: int, following: int, awake: int) -> None:
        self.selected = selected
        self.next = following
        self.awake = awake


class NestedPatterns:
    """The variables that are followed together.  A change of them is a new object."""

    def __init__(self, variables: Iterable[Variable]) -> None:
        self.variables = tuple(variables)
        self._planes: list[_Plane] = []
        self._tests: dict[NodeTest, list[int]] = {}
        self._starts: dict[int, list[int]] = {}
        self._child_bits: list[int] = []
        self._deep_bits: list[int] = []
        self._ends: list[int] = []
        size = 0
        for variable in self.variables:
            size += self._lay_out(variable, size)
        self._seal(size)
        self._upward: dict[tuple[str, frozenset[_Upward]], _Upward] = {}
        self._upward_max = STATE_BYTES_MAX // (self._octets * (1 + 2 * len(self._planes)))

    @property
    def state_count(self) -> int:
        """How many upward states are kept."""
        return len(self._upward)

    def _lay_out(self, variable: Variable, base: int) -> int:
        """Give a variable its region of bits; return the region's size."""
        way = _way(variable)
        self._starts.setdefault(way[0].id, []).append(base)
        size = len(way)
        taken: list[list[tuple[int, int]]] = []
        for i, each in enumerate(way[1:], 1):
            assert each.step is not None
            self._tests.setdefault(each.step.test, []).append(base + i)
            (self._deep_bits if each.step.is_deep else self._child_bits).append(base + i)
            for condition in each.filters:
                assert isinstance(condition, Exists)
                end = i + len(condition.path.steps)
                size = max(size, end + 1)
                self._plane(_free_plane(taken, i, end)).add(base + i, condition.path)
        self._ends.append(base + len(way) - 1)
        return size

    def _plane(self, number: int) -> _Plane:
        while len(self._planes) <= number:
            self._planes.append(_Plane())
        return self._planes[number]

    def _seal(self, size: int) -> None:
        self._octets = (size // 64 + 1) * 8
        self._everything = (1 << size) - 1
        self._child = node_set(self._child_bits)
        self._deep = node_set(self._deep_bits)
        self._final = node_set(self._ends)
        self._test_sets = {test: node_set(bits) for test, bits in self._tests.items()}
        self._by_name: dict[str, int] = {}
        self._start_sets = {root: node_set(bits) for root, bits in self._starts.items()}
        self._variable_at = np.zeros(self._octets * 8, np.int32)
        self._variable_at[self._ends] = [variable.id for variable in self.variables]
        for plane in self._planes:
            plane.seal(size)

    def find(
        self, structure: Structure, roots: Iterable[Variable]
    ) -> list[tuple[int, NDArray[np.int32]]]:
        """Return for each element the variables that select it, if there are any."""
        start = 0
        for root in roots:
            start |= self._start_sets.get(root.id, 0)
        if not start:
            return []
        downward = self._go_down(structure, self._go_up(structure), start)
        found = self._read_out(set(downward))
        return [(e, found[state]) for e, state in enumerate(downward) if state in found]

    def _go_up(self, structure: Structure) -> list[_Upward]:
        names, children = structure.names, structure.children
        states: list[_Upward] = [None] * len(names)  # type: ignore[list-item]
        known = self._upward
        for element in range(len(names) - 1, -1, -1):
            below = children[element]
            key = (names[element], frozenset([states[c] for c in below]) if below else _NONE)
            state = known.get(key)
            if state is None:
                if len(known) >= self._upward_max:
                    known.clear()
                state = known[key] = self._hold(*key)
            states[element] = state
        return states

    def _hold(self, name: str, children: frozenset[_Upward]) -> _Upward:
        passes = self._everything
        found: list[int] = []
        below: list[int] = []
        for i, plane in enumerate(self._planes):
            holds, deep = plane.end, 0
            if children:
                near = 0
                for child in children:
                    near |= child.found[i]
                    deep |= child.below[i]
                holds |= (near >> 1) & plane.child | (deep >> 1) & plane.deep
            own = plane.named(name) & holds
            passes &= holds | plane.unfiltered
            found.append(own)
            below.append(own | deep)
        return _Upward(passes, tuple(found), tuple(below))

    def _go_down(
        self, structure: Structure, upward: Sequence[_Upward], start: int
    ) -> list[_Downward]:
        awake = (start << 1) & self._deep
        document = _Downward(0, (start << 1) & self._child | awake, awake)
        known: dict[tuple[_Downward, str, _Upward], _Downward] = {}
        states: list[_Downward] = []
        for name, parent, holding in zip(structure.names, structure.parents, upward, strict=True):
            key = (states[parent] if parent >= 0 else document, name, holding)
            state = known.get(key)
            if state is None:
                state = known[key] = self._take(*key)
            states.append(state)
        return states

    def _take(self, parent: _Downward, name: str, holding: _Upward) -> _Downward:
        named = self._by_name.get(name)
        if named is None:
            if len(self._by_name) >= NAMES_MAX:
                self._by_name.clear()
            named = self._by_name[name] = _named(self._test_sets, name)
        selected = parent.next & named & holding.passes
        if not selected:
            return _Downward(0, parent.awake, parent.awake)
        following = selected << 1
        awake = parent.awake | following & self._deep
        return _Downward(selected, following & self._child | awake, awake)

    def _read_out(self, states: Iterable[_Downward]) -> dict[_Downward, NDArray[np.int32]]:
        """Return the variables whose last bit is in each state that has any, in order."""
        reached = [(state, ends) for state in states if (ends := state.selected & self._final)]
        if not reached:
            return {}
        octets = b"".join([ends.to_bytes(self._octets, "little") for _, ends in reached])
        words = np.frombuffer(octets, np.uint64)
        at = np.flatnonzero(words)
        bits = np.unpackbits(words[at].view(np.uint8), bitorder="little").view(np.bool_)
        which, bit = np.divmod(np.flatnonzero(bits), 64)
        row, column = np.divmod(at[which], self._octets // 8)
        variables = self._variable_at[column * 64 + bit]
        cuts = [0, *np.searchsorted(row, np.arange(1, len(reached))).tolist(), len(variables)]
        return {state: variables[cuts[i] : cuts[i + 1]] for i, (state, _) in enumerate(reached)}


_NONE: frozenset[_Upward] = frozenset()


def _way(variable: Variable) -> list[Variable]:
    """Return the variables from the document node to one, itself included."""
    way = [variable]
    while way[-1].parent is not None:
        way.append(way[-1].parent)
    return way[::-1]


def _free_plane(taken: list[list[tuple[int, int]]], start: int, end: int) -> int:
    """Return the first plane in which bits start to end of a region are free, and take them."""
    for number, ranges in enumerate(taken):
        if all(end < first or last < start for first, last in ranges):
            ranges.append((start, end))
            return number
    taken.append([(start, end)])
    return len(taken) - 1


def _named(test_sets: dict[NodeTest, int], name: str) -> int:
    found = 0
    for test, bits in test_sets.items():
        if matches_name(test, name):
            found |= bits
    return found
