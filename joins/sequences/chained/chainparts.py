"""What runs over chains are made of: heads, and where elements and heads are found.

A head has one element more than the head before it, so runs that begin alike share their beginning.
Lines are in the order of ends, and heads in that of the time until which an element may begin that
concerns them: in order of arrival an element looks at no head that is past.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import overload

from joins.sequences.runparts import Part
from templates.rundecision import GrowingRun, RunAtHand, RunElement, Totals, Values

__all__ = ["ChainHead", "DecidedChain", "WaitingHeads"]

_NOTHING = Totals()


@dataclass(slots=True, eq=False)
class ChainHead(GrowingRun):
    """A run over a chain as far as it has come; as a sequence, the elements of its last step.

    `before` is the run without its last element, and `first` the first element of all.  `left_us`
    is when the step before ended.  `docid` is the largest of its parts, `same` its key.  `runs` are
    those of the steps before.
    """

    before: ChainHead | None
    part: Part
    step: int
    size: int
    first: Part
    left_us: int
    docid: int
    same: tuple[str, ...]
    folds: Mapping[str, Values]
    runs: Mapping[str, RunAtHand]
    nearer: list[Part] = field(default_factory=list)
    has_gone_on: bool = False
    version: int = 0
    _begin: RunElement | None = None
    _totals: dict[Callable[[RunElement], Values], Totals] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> RunElement: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RunElement]: ...
    def __getitem__(self, index: int | slice) -> RunElement | Sequence[RunElement]:
        if index == -1:
            assert self.part.element is not None
            return self.part.element
        if index == 0:
            return self.begin
        return list(self)[index]

    def __iter__(self) -> Iterator[RunElement]:
        return (part.element for part in self.step_parts() if part.element is not None)

    @property
    def begin(self) -> RunElement:
        """The first element of the last step."""
        if self._begin is None:
            head = self
            while head.size > 1 and head._begin is None and head.before is not None:
                head = head.before
            self._begin = head._begin or head.part.element
        assert self._begin is not None
        return self._begin

    def totals(self, of: Callable[[RunElement], Values]) -> Totals:
        """Return what aggregates are of the last step: that of the head before, and its element."""
        heads: list[ChainHead] = []
        head: ChainHead = self
        while of not in head._totals:
            heads.append(head)
            if head.size == 1 or head.before is None:
                break
            head = head.before
        known = head._totals.get(of, _NOTHING)
        for each in reversed(heads):
            assert each.part.element is not None
            known = each._totals[of] = known.with_more(of, (each.part.element,))
        return known

    def step_parts(self) -> list[Part]:
        """Return the elements of the last step."""
        found: list[Part] = []
        head = self
        for _ in range(self.size):
            found.append(head.part)
            if head.before is not None:
                head = head.before
        return found[::-1]

    def steps(self) -> tuple[tuple[Part, ...], ...]:
        """Return the elements of each step."""
        found: list[tuple[Part, ...]] = []
        head: ChainHead | None = self
        while head is not None:
            found.append(tuple(head.step_parts()))
            for _ in range(head.size):
                head = None if head is None else head.before
        return tuple(found[::-1])


@dataclass(frozen=True, slots=True)
class DecidedChain:
    """A run over a chain, perhaps decided at a document: its elements, its runs by their terms."""

    steps: tuple[tuple[Part, ...], ...]
    runs: Mapping[str, RunAtHand]
    docid: int | None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its instances in order."""
        return tuple(part for step in self.steps for part in step)


class WaitingHeads:
    """Heads under one key, by the last time at which an element may begin that concerns them.

    A head that is written again, or is over, gets another version; its entry is void then.
    """

    def __init__(self) -> None:
        self._untils_us: list[int] = []
        self._heads: list[tuple[ChainHead, int]] = []

    def __len__(self) -> int:
        return len(self._heads)

    def add(self, until_us: int, head: ChainHead) -> None:
        """Have a head wait until a time."""
        at = bisect_right(self._untils_us, until_us)
        self._untils_us.insert(at, until_us)
        self._heads.insert(at, (head, head.version))

    def concerned(self, time_us: int) -> list[ChainHead]:
        """Return the heads that what begins at a time may concern."""
        low = bisect_left(self._untils_us, time_us)
        self._keep(low, lambda head: True)
        return [head for head, _ in self._heads[low:]]

    def forget(self, before_us: int) -> None:
        """Leave out heads whose first element ends before a time."""
        self._keep(0, lambda head: head.first.end_us >= before_us)

    def _keep(self, low: int, is_kept: Callable[[ChainHead], bool]) -> None:
        """Leave out void entries from a place on, and those of other heads."""
        kept = [
            (until_us, (head, version))
            for until_us, (head, version) in zip(
                self._untils_us[low:], self._heads[low:], strict=True
            )
            if head.version == version and is_kept(head)
        ]
        if len(kept) < len(self._heads) - low:
            self._untils_us[low:] = [until_us for until_us, _ in kept]
            self._heads[low:] = [entry for _, entry in kept]
