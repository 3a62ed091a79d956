"""Query classes: queries that differ only in data share one, and one evaluation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple, Protocol

import pyarrow as pa

from joins.memory.durations import Durations, Largest
from joins.memory.instance import INSTANCE_SCHEMA, Instance
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.retention import Retention
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints
from joins.memory.times import Flags
from templates.queryclass import QueryClass
from templates.template import Template
from xpath_eval.shape import Edge

__all__ = [
    "ClassChanges",
    "ClassRegistry",
    "Classified",
    "Holders",
    "Positions",
    "Retaining",
    "UseKind",
]


_ROW_SCHEMA = pa.schema([f for f in INSTANCE_SCHEMA if f.name not in ("instance", "shape")])


class UseKind(NamedTuple):
    """The window and the registration point of a use: for the join, uses differ in these alone.

    Where a class reads instances that not everybody has, `holder` says who has it in use
    (`Holders`).
    """

    window_us: int
    point: int
    holder: int = 0


Positions = Callable[[int, Ints], tuple[Ints, Ints]]
"""Finds the nodes that a variable binds in instances, as (index into them, position)."""


class Holders(Protocol):
    """Who has the instances that classes read."""

    def of_pairs(
        self, query_class: int, left: Ints, right: Ints, positions: Positions
    ) -> Callable[[int], Flags]:
        """Return what says of which of some pairs of instances a holder has both."""


class ClassChanges:
    """The classes that came, went, or got another widest window since they were last taken."""

    def __init__(self, present: Mapping[int, QueryClass]) -> None:
        self._changed = dict(present)

    def note(self, number: int, query_class: QueryClass) -> None:
        """Add a class that has changed."""
        self._changed[number] = query_class

    def take(self) -> dict[int, QueryClass]:
        """Return the classes that have changed by number, and forget them."""
        taken, self._changed = self._changed, {}
        return taken


class _Kinds:
    """How often a class is used in each way; where statements differ that is one, once."""

    __slots__ = ("_kind", "_several", "_times")

    def __init__(self) -> None:
        self._kind: UseKind | None = None
        self._times = 0
        self._several: Counter[UseKind] | None = None

    def __iter__(self) -> Iterator[UseKind]:
        if self._several is not None:
            yield from self._several
        elif self._kind is not None:
            yield self._kind

    def add(self, kind: UseKind, times: int) -> int:
        """Count so many uses; return how many there were."""
        if self._several is None:
            if self._kind in (None, kind):
                before = self._times
                self._kind, self._times = kind, before + times
                return before
            assert self._kind is not None
            self._several = Counter({self._kind: self._times})
        before = self._several[kind]
        self._several[kind] = before + times
        return before

    def remove(self, kind: UseKind, times: int) -> int:
        """Count so many uses less; return how many there are."""
        if self._several is None:
            self._times -= times
            if not self._times:
                self._kind = None
            return self._times
        self._several[kind] -= times
        rest = self._several[kind]
        if not rest:
            del self._several[kind]
        return rest


class ClassRegistry:
    """The classes in use, by number, and how often with which window and registration point.

    Numbers only grow.  `retention` says for how long instances that can fill a class are kept: for
    its widest window, or longer where its tuples are joined again (`retain`).  `version` grows with
    every change, and `watch` returns the classes that have changed, so that one change does not
    cost a look at all classes; `watch_compared` does so for variables that are compared.
    """

    def __init__(self, shapes: Shapes | None = None) -> None:
        self.by_number: dict[int, QueryClass] = {}
        self.version = 0
        self.last_number = 0
        self._numbers: dict[QueryClass, int] = {}
        self._windows: dict[int, Durations] = defaultdict(Durations)
        self._thresholds: dict[int, list[Largest[float]]] = defaultdict(list)
        self._retained_for: dict[int, Durations] = defaultdict(Durations)
        self.retention = Retention(Shapes() if shapes is None else shapes)
        self._kinds: dict[int, _Kinds] = defaultdict(_Kinds)
        self._strata: Counter[int] = Counter()
        self._compared: Counter[int] = Counter()
        self._watchers: list[ClassChanges] = []
        self._compared_changes: list[set[int]] = []
        self.holders: Holders | None = None

    def watch(self) -> ClassChanges:
        """Return the changes from now on; the classes that there are count as changed."""
        self._watchers.append(ClassChanges(self.by_number))
        return self._watchers[-1]

    def watch_compared(self) -> set[int]:
        """Return a set to which variables are added that come to be compared, or are no more.

        Who asks takes them out.
        """
        self._compared_changes.append(set(self._compared))
        return self._compared_changes[-1]

    def _note_compared(self, variables: Collection[int]) -> None:
        for changes in self._compared_changes if variables else ():
            changes.update(variables)

    def add(
        self,
        query_class: QueryClass,
        window_us: int,
        point: int = 0,
        least: Sequence[float] = (),
        holder: int = 0,
        times: int = 1,
    ) -> int:
        """Add so many uses of a class; return the class's number.

        `least` are the thresholds of its similarity joins.
        """
        number = self._numbers.get(query_class)
        if number is None:
            number = self._enter(query_class)
        has_changed = bool(least) and self._lower(number, least, times)
        kind = UseKind(window_us, point, holder)
        before = self._kinds[number].add(kind, times)
        if before and not has_changed:
            return number
        windows = self._windows[number]
        widest_us = windows.any_largest
        if not before:
            windows.add(window_us)
        if widest_us is None or window_us > widest_us:
            self.retention.ask(query_class.sides, windows, widest_us)
            has_changed = True
        if has_changed:
            self._touch(number, query_class)
        return number

    def _enter(self, query_class: QueryClass) -> int:
        """Take a class that is not in use; return its number."""
        self.last_number += 1
        number = self._numbers[query_class] = self.last_number
        self.by_number[number] = query_class
        self._strata[query_class.stratum] += 1
        compared, new = self._compared, list[int]()
        for variable in query_class.compared():
            before = compared.get(variable, 0)
            compared[variable] = before + 1
            if not before:
                new.append(variable)
        self._note_compared(new)
        return number

    def _leave(self, number: int) -> None:
        """Undo one `_enter`."""
        del self._windows[number], self._kinds[number]
        self._thresholds.pop(number, None)
        query_class = self.by_number.pop(number)
        del self._numbers[query_class]
        _release(self._strata, [query_class.stratum])
        own = query_class.compared()
        _release(self._compared, own)
        self._note_compared([v for v in own if v not in self._compared])

    def _lower(self, number: int, least: Sequence[float], times: int) -> bool:
        """Ask so often for pairs at some thresholds; return whether the lowest ones change."""
        before = self.thresholds(number)
        lowest = self._thresholds[number]
        while len(lowest) < len(least):
            lowest.append(Largest())
        for largest, threshold in zip(lowest, least, strict=True):
            largest.add(-threshold, times)
        return before != self.thresholds(number)

    def _raise(self, number: int, least: Sequence[float], times: int) -> bool:
        """Undo what `_lower` did; return whether the lowest thresholds change."""
        if not least:
            return False
        before = self.thresholds(number)
        for largest, threshold in zip(self._thresholds[number], least, strict=True):
            largest.remove(-threshold, times)
        return before != self.thresholds(number)

    def thresholds(self, number: int) -> tuple[float, ...]:
        """Return the lowest threshold in force of each similarity join of a class."""
        return tuple(-each.largest for each in self._thresholds.get(number, ()) if len(each))

    def remove(
        self,
        number: int,
        window_us: int,
        point: int = 0,
        least: Sequence[float] = (),
        holder: int = 0,
        times: int = 1,
    ) -> None:
        """Undo so many of what `add` did: of one class, window, point, thresholds and holder."""
        query_class = self.by_number[number]
        has_changed = self._raise(number, least, times)
        kinds, kind = self._kinds[number], UseKind(window_us, point, holder)
        if not kinds.remove(kind, times):
            windows = self._windows[number]
            before_us = windows.longest
            windows.remove(window_us)
            widest_us = windows.any_largest
            if widest_us != before_us:
                self.retention.ask(query_class.sides, windows, before_us)
                has_changed = True
            if widest_us is None:
                self._leave(number)
        if has_changed:
            self._touch(number, query_class)

    def retain(self, number: int, retention_us: int, times: int = 1) -> None:
        """Keep instances that can fill a class for longer than its window; so many ask."""
        retained_for = self._retained_for[number]
        longest_us = retained_for.any_largest
        retained_for.add(retention_us, times)
        if longest_us is None or retention_us > longest_us:
            self.retention.ask(self.by_number[number].retained, retained_for, longest_us)

    def release(self, number: int, retention_us: int, times: int = 1) -> None:
        """Undo so many of what `retain` did."""
        retained_for = self._retained_for[number]
        before_us = retained_for.longest
        retained_for.remove(retention_us, times)
        longest_us = retained_for.any_largest
        if not retained_for:
            del self._retained_for[number]
        if longest_us != before_us:
            self.retention.ask(self.by_number[number].retained, retained_for, before_us)

    def retained_us(self, number: int) -> int | None:
        """Return for how long instances that can fill a class are kept beside its window, if so."""
        retained_for = self._retained_for.get(number)
        return retained_for.longest if retained_for else None

    def retaining(self, of_use: Mapping[int, int]) -> Retaining:
        """Return the classes that keep the most instances; `of_use` counts instances by shape."""
        kept: Counter[tuple[tuple[int, ...], int]] = Counter()
        for shape, count in of_use.items():
            retention_us = self.retention.of(shape)
            for side in self.retention.retaining(shape):
                kept[side, retention_us] += count
        if not kept:
            return Retaining(frozenset(), 0, 0)
        (side, retention_us), documents = max(kept.items(), key=lambda each: (each[1], each[0][1]))
        classes = (n for n, c in self.by_number.items() if side in c.sides())
        return Retaining(frozenset(classes), retention_us, documents)

    def _touch(self, number: int, query_class: QueryClass) -> None:
        for changes in self._watchers:
            changes.note(number, query_class)
        self.version += 1

    def window_us(self, number: int) -> int:
        """Return the widest window of a class."""
        return self._windows[number].longest

    def kinds(self, number: int) -> list[UseKind]:
        """Return the different uses of a class, in order."""
        return sorted(self._kinds[number])

    def has_holders(self, number: int) -> bool:
        """Return whether a class reads instances that not everybody has."""
        return any(kind.holder for kind in self._kinds[number])

    @property
    def strata(self) -> list[int]:
        """The strata in use, lowest first."""
        return sorted(self._strata)

    def compared(self) -> Set[int]:
        """Return the variables whose values any class joins or tests."""
        return self._compared.keys()

    def value_pairs(self) -> list[tuple[int, int, int, int, bool]]:
        """Return (stratum, left variable, right variable, widest window, any symmetric)."""
        uses: dict[tuple[int, int, int], list[tuple[int, bool]]] = defaultdict(list)
        for number, query_class in self.by_number.items():
            for left, right in query_class.value_pairs():
                use = (self.window_us(number), query_class.is_symmetric)
                uses[query_class.stratum, left, right].append(use)
        return [(*k, max(w for w, _ in u), any(s for _, s in u)) for k, u in uses.items()]


def _release(counter: Counter[int], numbers: Iterable[int]) -> None:
    """Undo one `update` of a counter; a number that is not counted any more is not in it."""
    for number in numbers:
        counter[number] -= 1
        if not counter[number]:
            del counter[number]


class Retaining(NamedTuple):
    """The classes with one retention that keep the most documents."""

    classes: frozenset[int]
    retention_us: int
    documents: int


class Classified(ABC):
    """The part that all processors have in common: their classes and shapes."""

    def __init__(self, limits: MemoryLimits = DEFAULT_MEMORY_LIMITS) -> None:
        self.shapes = Shapes(limits)
        self.classes = ClassRegistry(self.shapes)

    def add_shapes(self, shapes: Mapping[str, Sequence[Edge]]) -> None:
        """Learn witness shapes by their edges."""
        self.shapes.add(shapes)

    def tuple_shapes(self, names: Sequence[str], variables: Sequence[tuple[int, ...]]) -> list[int]:
        """Return the numbers of shapes of tuples by the variables of their nodes."""
        return self.shapes.of_tuples(names, variables)

    def shape_number(self, shape: str) -> int | None:
        """Return the number of a witness shape, or None while it is not known."""
        return self.shapes.number(shape)

    @property
    def strata(self) -> list[int]:
        """The strata in use, lowest first."""
        return self.classes.strata

    def add(
        self,
        query_class: QueryClass,
        window_us: int,
        point: int = 0,
        least: Sequence[float] = (),
        holder: int = 0,
        times: int = 1,
    ) -> int:
        """Add so many uses of a class, from a registration point on; return the class's number."""
        return self.classes.add(query_class, window_us, point, least, holder, times)

    def remove(
        self,
        number: int,
        window_us: int,
        point: int = 0,
        least: Sequence[float] = (),
        holder: int = 0,
        times: int = 1,
    ) -> None:
        """Undo so many of what `add` did."""
        self.classes.remove(number, window_us, point, least, holder, times)

    def ask(self, holders: Holders) -> None:
        """Ask these whose tuples are whose, where classes read tuples that not everybody has."""
        self.classes.holders = holders

    def retain(self, number: int, retention_us: int, times: int = 1) -> None:
        """Keep instances that can fill a class for longer than its window, to be joined again."""
        self.classes.retain(number, retention_us, times)

    def release(self, number: int, retention_us: int, times: int = 1) -> None:
        """Undo so many of what `retain` did."""
        self.classes.release(number, retention_us, times)

    @abstractmethod
    def of_use(self, horizon_us: int) -> Mapping[int, int]:
        """Return how many instances of each shape some class can still use."""

    def warm_up(self) -> None:  # noqa: B027 - nothing is to be done in one process
        """Have all that is remembered where it is needed next, as it is in this process."""

    def remembered(self, horizon_us: int) -> int:
        """Return how many of the remembered instances some class can still use."""
        return sum(self.of_use(horizon_us).values())

    def retaining(self, horizon_us: int) -> Retaining:
        """Return the classes because of which most of the remembered instances are kept."""
        return self.classes.retaining(self.of_use(horizon_us))

    @abstractmethod
    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""

    def rows(self, numbers: Iterable[int]) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield the numbers of remembered instances, ascending, with their rows."""
        found = self.instances(numbers)
        if found:
            numbers = sorted(found)
            rows = [{**found[n]._asdict(), "vals": found[n].values} for n in numbers]
            yield numbers, pa.RecordBatch.from_pylist(rows, _ROW_SCHEMA)

    def template_of(self, number: int) -> Template:
        """Return the template of a class."""
        return self.classes.by_number[number].template
