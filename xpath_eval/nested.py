"""Paths with nested paths, thousands at a time: one bit for each step of each.

`/nitf[head/pubdata]/body//org` asks on its way whether something else is there.  Which elements
pass such a filter differs from document to document, so no automaton over names alone can carry
the answer, and following every variable by itself costs a microsecond each.  Here the variables
whose filters are plain nested paths, and of which only the nodes themselves are wanted, are
followed together, as in the Shift-And automaton (Baeza-Yates and Gonnet, CACM 1992): a set of
steps is a row of bits, going on from each step to the next is one shift.

Layout: a variable has a region of bits, bit i for the i-th step of its path.  A filter at step i
with m steps uses bits i to i + m of a second row, its **plane**: bit i + m - r says "r more steps
hold from here", so that bit i, the filter's truth, falls on the bit of the step that it filters.
Filters of one variable that would overlap take different planes.

Two passes over a document:

- upwards, what holds at an element follows from its name and what holds at its children.  This is
  a tree automaton, determinised lazily: small subtrees recur, and cost a look-up.
- downwards, the steps that an element takes follow from its name, what holds at it, and the steps
  of its parent.

Cost: a dozen operations on rows for each element with a subtree that is new, whatever matches.
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

    Words = NDArray[np.uint64]

__all__ = ["NestedPatterns", "is_nested"]

WORD = 64
"""Bits of a word.  A region never goes over the edge of one, so that a shift carries nothing."""

_ONE = np.uint64(1)

STATE_BYTES_MAX = 128 * 1024 * 1024
"""Bytes of the sets of upward states."""

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
    return is_filtered and _width(_way(variable)) <= WORD


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

    def add(self, at: int, path: Path) -> None:
        """Lay a filter's path out from the bit of the step that it filters."""
        self.filtered.append(at)
        for i, step in enumerate(path.steps):
            self.tests.setdefault(step.test, []).append(at + i + 1)
            (self.deep_bits if step.is_deep else self.child_bits).append(at + i)
        self.ends.append(at + len(path.steps))

    def seal(self, words: int) -> None:
        """Turn what has been laid out into sets of so many words."""
        self.end = _bits(self.ends, words)
        self.child = _bits(self.child_bits, words)
        self.deep = _bits(self.deep_bits, words)
        self.unfiltered = ~_bits(self.filtered, words)
        self.steps = _NamedSteps(self.tests, words)


class _NamedSteps:
    """The steps that an element takes by its name alone."""

    def __init__(self, tests: dict[NodeTest, list[int]], words: int) -> None:
        self._sets = {test: _bits(bits, words) for test, bits in tests.items()}
        self._nothing = np.zeros(words, np.uint64)
        self._by_name: dict[str, Words] = {}

    def __getitem__(self, name: str) -> Words:
        found = self._by_name.get(name)
        if found is None:
            if len(self._by_name) >= NAMES_MAX:
                self._by_name.clear()
            found = self._nothing
            for test, bits in self._sets.items():
                if matches_name(test, name):
                    found = found | bits
            self._by_name[name] = found
        return found


class _Upward:
    """What holds at an element.

    `gate` is what it lets through on the way down; `found` and `below` are for its parent.
    """

    __slots__ = ("below", "found", "gate", "is_leaf")

    def __init__(
        self, gate: Words, found: tuple[Words, ...], below: tuple[Words, ...], *, is_leaf: bool
    ) -> None:
        self.gate = gate
        self.found = found
        self.below = below
        self.is_leaf = is_leaf


class NestedPatterns:
    """The variables that are followed together.  A change of them is a new object."""

    def __init__(self, variables: Iterable[Variable]) -> None:
        self.variables = tuple(variables)
        self._planes: list[_Plane] = []
        self._tests: dict[NodeTest, list[int]] = {}
        self._child_starts: dict[int, list[int]] = {}
        self._deep_starts: dict[int, list[int]] = {}
        self._child_bits: list[int] = []
        self._deep_bits: list[int] = []
        self._ends: list[int] = []
        self._starts: dict[tuple[int, ...], tuple[Words, Words] | None] = {}
        size = 0
        for variable in self.variables:
            size = self._lay_out(_way(variable), size)
        self._seal(size // WORD + 1)
        self._upward: dict[tuple[str, frozenset[_Upward]], _Upward] = {}
        self._upward_max = STATE_BYTES_MAX // (self._words * 8 * (1 + 2 * len(self._planes)))

    @property
    def state_count(self) -> int:
        """How many upward states are kept."""
        return len(self._upward)

    def _lay_out(self, way: list[Variable], base: int) -> int:
        """Give a variable its region of bits from `base` on; return where the next can begin."""
        if base % WORD + _width(way) > WORD:
            base += -base % WORD
        root = way[0].id
        taken: list[list[tuple[int, int]]] = []
        for i, each in enumerate(way[1:]):
            assert each.step is not None
            self._tests.setdefault(each.step.test, []).append(base + i)
            if i == 0:
                starts = self._deep_starts if each.step.is_deep else self._child_starts
                starts.setdefault(root, []).append(base)
            else:
                (self._deep_bits if each.step.is_deep else self._child_bits).append(base + i)
            for condition in each.filters:
                assert isinstance(condition, Exists)
                plane = _free_plane(taken, i, i + len(condition.path.steps))
                self._plane(plane).add(base + i, condition.path)
        self._ends.append(base + len(way) - 2)
        return base + _width(way)

    def _plane(self, number: int) -> _Plane:
        while len(self._planes) <= number:
            self._planes.append(_Plane())
        return self._planes[number]

    def _seal(self, words: int) -> None:
        self._words = words
        self._child = _bits(self._child_bits, words)
        self._deep = _bits(self._deep_bits, words)
        self._final = _bits(self._ends, words)
        self._steps = _NamedSteps(self._tests, words)
        self._variable_at = np.zeros(words * WORD, np.int32)
        self._variable_at[self._ends] = [variable.id for variable in self.variables]
        for plane in self._planes:
            plane.seal(words)

    def find(
        self, structure: Structure, roots: Iterable[Variable]
    ) -> list[tuple[int, NDArray[np.int32]]]:
        """Return for each element the variables that select it, if there are any."""
        start = self._start(tuple(root.id for root in roots))
        if start is None:
            return []
        states, ends = self._go_down(structure, self._go_up(structure), start)
        found = self._read_out(ends)
        return [(e, found[state]) for e, state in enumerate(states) if len(found[state])]

    def _start(self, roots: tuple[int, ...]) -> tuple[Words, Words] | None:
        """Return the steps that the root element can take, and those all elements can."""
        if roots not in self._starts:
            child = [bit for root in roots for bit in self._child_starts.get(root, ())]
            deep = [bit for root in roots for bit in self._deep_starts.get(root, ())]
            awake = _bits(deep, self._words)
            start = (_bits(child, self._words) | awake, awake) if child or deep else None
            self._starts[roots] = start
        return self._starts[roots]

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
        gate = self._steps[name]
        found: list[Words] = []
        below: list[Words] = []
        for i, plane in enumerate(self._planes):
            holds = plane.end
            if children:
                near = _union([child.found[i] for child in children])
                deep = _union([child.below[i] for child in children])
                holds = holds | near >> _ONE & plane.child | deep >> _ONE & plane.deep
            own = plane.steps[name] & holds
            gate = gate & (holds | plane.unfiltered)
            found.append(own)
            below.append(own | deep if children else own)
        return _Upward(gate, tuple(found), tuple(below), is_leaf=not children)

    def _go_down(
        self, structure: Structure, upward: Sequence[_Upward], start: tuple[Words, Words]
    ) -> tuple[list[int], list[Words]]:
        """Return for each element the row of its state, and for each level the last bits reached.

        Level by level, equal elements of equal parents together: an operation on all rows of a
        level costs little more than on one.
        """
        following, awake = (part.reshape(1, -1) for part in start)
        states = [-1] * len(upward)
        row_in_level = {-1: 0}
        ends: list[Words] = []
        first = 0
        for level in structure.levels:
            known: dict[tuple[int, _Upward], int] = {}
            for element in level:
                above = structure.parents[element]
                key = (row_in_level[-1 if above < 0 else states[above]], upward[element])
                states[element] = first + known.setdefault(key, len(known))
            parents = [row for row, _ in known]
            selected = np.concatenate([up.gate for _, up in known]).reshape(len(known), -1)
            selected &= following[parents]
            inner = [i for i, (_, up) in enumerate(known) if not up.is_leaf]
            row_in_level = {first + i: row for row, i in enumerate(inner)}
            first += len(known)
            awake = awake[[parents[i] for i in inner]]
            following = selected[inner]
            following <<= _ONE
            awake |= following & self._deep
            following &= self._child
            following |= awake
            selected &= self._final
            ends.append(selected)
        return states, ends

    def _read_out(self, ends: Sequence[Words]) -> list[NDArray[np.int32]]:
        """Return the variables whose last bits are in each row, in order."""
        places: list[NDArray[np.intp]] = []
        words: list[Words] = []
        first = 0
        for rows in ends:
            flat = rows.reshape(-1)
            at = np.flatnonzero(flat != 0)
            words.append(flat[at])
            places.append(at + first * self._words)
            first += len(rows)
        bits = np.unpackbits(np.concatenate(words).view(np.uint8), bitorder="little")
        which, bit = np.divmod(np.flatnonzero(bits.view(np.bool_)), WORD)
        row, column = np.divmod(np.concatenate(places)[which], self._words)
        variables = self._variable_at[column * WORD + bit]
        cuts = np.searchsorted(row, np.arange(first + 1)).tolist()
        return [variables[cuts[i] : cuts[i + 1]] for i in range(first)]


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


def _width(way: Sequence[Variable]) -> int:
    """Return how many bits a variable and its filters take, without the document node."""
    ends = [
        i + len(condition.path.steps)
        for i, each in enumerate(way[1:])
        for condition in each.filters
        if isinstance(condition, Exists)
    ]
    return max([len(way) - 2, *ends]) + 1


def _bits(bits: Iterable[int], words: int) -> Words:
    octets = node_set(bits).to_bytes(words * 8, "little")
    return np.frombuffer(octets, np.uint64)


def _union(sets: Sequence[Words]) -> Words:
    found = sets[0]
    for each in sets[1:]:
        found = found | each
    return found
