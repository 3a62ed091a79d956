"""Sums of lengths of time, some of which are parameters: how far back something reaches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import chain
from typing import Any

from xscl.path import Parameter
from xscl.query import INFINITE_US

__all__ = ["NO_LENGTH", "Length", "LongestSum", "longest_of"]


@dataclass(frozen=True, slots=True)
class LongestSum:
    """The largest of several sums: by the names of parameters, microseconds that come to them.

    Where none has a name it is `always` the same.
    """

    sums: tuple[tuple[tuple[str, ...], int], ...]
    always: int | None = field(init=False, compare=False)

    def __post_init__(self) -> None:
        is_always = not any(names for names, _ in self.sums)
        longest = max((length_us for _, length_us in self.sums), default=0)
        always = min(INFINITE_US, max(0, longest)) if is_always else None
        object.__setattr__(self, "always", always)

    @staticmethod
    def of(several: Sequence[LongestSum], own: int = 0) -> LongestSum:
        """Return the largest of some sums and a length of its own, which is not below nothing."""
        if not several:
            return _one_of((((), own),)) if own else NO_LENGTH
        if len(several) == 1 and not own:
            return several[0]
        longest: dict[tuple[str, ...], int] = {(): own}
        for names, length_us in chain.from_iterable([each.sums for each in several]):
            longest[names] = max(length_us, longest.get(names, 0))
        return _one_of(tuple(longest.items()))

    def plus(self, length: Length) -> LongestSum:
        """Return each of the sums with one more length, or with each of several sums."""
        if isinstance(length, LongestSum):
            several = [
                (sorted((*n, *m)), us + more) for n, us in self.sums for m, more in length.sums
            ]
            return _one_of(tuple([(tuple(names), us) for names, us in several]))
        if self.always is not None and len(self.sums) == 1 and not isinstance(length, Parameter):
            [(names, own)] = self.sums
            return _one_of(((names, own + length),))
        names = (length.name,) if isinstance(length, Parameter) else ()
        length_us = 0 if isinstance(length, Parameter) else length
        return _one_of(
            tuple([(tuple(sorted((*n, *names))), us + length_us) for n, us in self.sums])
        )

    def under(self, values: Mapping[str, Any]) -> int:
        """Return the length under an assignment, in microseconds, up to `INFINITE_US`."""
        if self.always is not None:
            return self.always
        longest = 0
        for names, length_us in self.sums:
            total = length_us
            for name in names:
                total += values[name]
            longest = max(longest, total)
        return min(INFINITE_US, longest)


@lru_cache(maxsize=4_096)
def _one_of(sums: tuple[tuple[tuple[str, ...], int], ...]) -> LongestSum:
    """Return the largest of some sums; equal ones are one object, in many clauses."""
    return LongestSum(sums)


Length = int | Parameter | LongestSum
"""A length of time as far as it is known before there are assignments."""


def longest_of(lengths: Iterable[int | Parameter]) -> Length:
    """Return the longest of some lengths, which is one of them if that is known."""
    found = {*lengths}
    known = max((each for each in found if isinstance(each, int)), default=0)
    given = sorted(each.name for each in found if isinstance(each, Parameter))
    if not given or known >= INFINITE_US:
        return known
    if len(given) == 1 and not known:
        return Parameter(given[0])
    return _one_of((((), known), *(((name,), 0) for name in given)))


NO_LENGTH = _one_of((((), 0),))
