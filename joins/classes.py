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
        self.changed = dict(present)

    def take(self) -> dict[int, QueryClass]:
        """Return the classes that have changed by number, and forget them."""
        taken, self.changed = self.changed, {}
        return taken


class _Windows(Durations):
    """The windows of a class, one of each way in which it is used, and how often it is.

    Where statements differ that is one way, once.
    """

    __slots__ = ("_kind", "_several", "_uses")

    def __init__(self, kind: UseKind, times: int) -> None:
        super().__init__(kind.window_us)
        self._kind = kind
        self._uses = times
        self._several: Counter[UseKind] | None = None

    def kinds(self) -> Iterable[UseKind]:
        """Return the different ways in which it is used."""
        return [self._kind] if self._several is None else self._several

    def use(self, kind: UseKind, times: int) -> None:
        """Count so many uses more."""
        if self._several is None:
            if kind == self._kind:
                self._uses += times
                return
            self._several = Counter({self._kind: self._uses})
        before = self._several[kind]
        self._several[kind] = before + times
        if not before:
            self.add(kind.window_us)

    def use_no_more(self, kind: UseKind, times: int) -> None:
        """Undo one `use`."""
        if self._several is None:
            self._uses -= times
            is_left = self._uses > 0
        else:
            self._several[kind] -= times
            is_left = self._several[kind] > 0
            if not is_left:
                del self._several[kind]
        if not is_left:
            self.remove(kind.window_us)


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
        self._windows: dict[int, _Windows] = {}
        self._thresholds: dict[int, list[Largest[float]]] = defaultdict(list)
        self._retained_for: dict[int, Durations] = {}
        self.retention = Retention(Shapes() if shapes is None else shapes)
        self._strata: dict[int, int] = defaultdict(int)
        self._compared: dict[int, int] = defaultdict(int)
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
        number = self._numbers.setdefault(query_class, self.last_number + 1)
        has_changed = bool(least) and self._lower(number, least, times)
        kind = UseKind(window_us, point, holder)
        if number > self.last_number:
            self._enter(number, query_class)
            windows, widest_us = _Windows(kind, times), None
            self._windows[number] = windows
        else:
            windows = self._windows[number]
            widest_us = windows.any_largest
            windows.use(kind, times)
        if widest_us is None or window_us > widest_us:
            self.retention.ask(query_class.sides, windows, widest_us)
            has_changed = True
        if has_changed:
            self._touch(number, query_class)
        return number

    def _enter(self, number: int, query_class: QueryClass) -> None:
        """Take a class that is not in use, with its number."""
        self.last_number = number
        self.by_number[number] = query_class
        self._strata[query_class.stratum] += 1
        own, compared = query_class.compared(), self._compared
        if new := [v for v in own if v not in compared]:
            self._note_compared(new)
        for variable in own:
            compared[variable] += 1

    def _leave(self, number: int) -> None:
        """Undo one `_enter`."""
        del self._windows[number]
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
        windows = self._windows[number]
        before_us = windows.longest
        windows.use_no_more(UseKind(window_us, point, holder), times)
        widest_us = windows.any_largest
        if widest_us != before_us:
            self.retention.ask(query_class.sides, windows, before_us)
            has_changed = True
        if widest_us is None:
            self._leave(number)
        if has_changed:
            self._touch(number, query_class)

    def give(
        self, number: int, window_us: int, point: int, said: Sequence[str], times: int
    ) -> None:
        """Have a class be decided for a vector of data, which it is not here."""

    def take_back(
        self, number: int, window_us: int, point: int, said: Sequence[str], times: int
    ) -> None:
        """Undo so many of what `give` did."""

    def retain(self, number: int, retention_us: int, times: int = 1) -> None:
        """Keep instances that can fill a class for longer than its window; so many ask."""
        retained_for, longest_us = self._retained_for.get(number), None
        if retained_for is None:
            retained_for = self._retained_for[number] = Durations()
        else:
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
            if retention_us is None:
                continue
            for side in self.retention.retaining(shape):
                kept[side, retention_us] += count
        if not kept:
            return Retaining(frozenset(), 0, 0)
        (side, retention_us), documents = max(kept.items(), key=lambda each: (each[1], each[0][1]))
        classes = (n for n, c in self.by_number.items() if side in c.sides())
        return Retaining(frozenset(classes), retention_us, documents)

    def _touch(self, number: int, query_class: QueryClass) -> None:
        for changes in self._watchers:
            changes.changed[number] = query_class
        self.version += 1

    def window_us(self, number: int) -> int:
        """Return the widest window of a class."""
        return self._windows[number].longest

    def kinds(self, number: int) -> list[UseKind]:
        """Return the different uses of a class, in order."""
        windows = self._windows.get(number)
        return [] if windows is None else sorted(windows.kinds())

    def has_holders(self, number: int) -> bool:
        """Return whether a class reads instances that not everybody has."""
        return any(kind.holder for kind in self.kinds(number))

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


def _release(counts: dict[int, int], numbers: Iterable[int]) -> None:
    """Count numbers once less; one that is not counted any more is not there."""
    for number in numbers:
        counts[number] -= 1
        if not counts[number]:
            del counts[number]


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
