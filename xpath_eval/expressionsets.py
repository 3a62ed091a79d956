"""Regular expressions that are run on each text, some at a time.

Most of what one expression costs is the call, so a few of them are one automaton.  Its states are
combinations of theirs, of which many expressions, or large ones, have too many: they would be made
anew in each text.  So sets are small.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from xscl.patterns import SET_SIZE_MAX, Pattern, PatternSet

__all__ = ["ExpressionSets"]

T = TypeVar("T")

TOGETHER_MAX = 8
"""Expressions of a set.  One run costs some 1.5 µs, whether it is of one or of eight small ones."""


class _Set(Generic[T]):
    """A few expressions, each with who looks for it; `compiled` is None until they are run."""

    __slots__ = ("compiled", "members", "size")

    def __init__(self) -> None:
        self.members: dict[T, Pattern] = {}
        self.size = 0
        self.compiled: PatternSet | None = None

    def fits(self, text: str) -> Iterator[T]:
        """Yield who looks for an expression that fits a text."""
        if self.size > SET_SIZE_MAX:  # a large one stands alone, and is run as it is
            return (each for each, pattern in self.members.items() if pattern.is_found(text))
        if self.compiled is None:
            self.compiled = PatternSet(self.members.values())
        found = self.compiled.fitting(text)
        who = [*self.members] if found else []
        return (who[i] for i in found)


class ExpressionSets(Generic[T]):
    """Expressions that come and go, in small sets."""

    def __init__(self) -> None:
        self._set_of: dict[T, _Set[T]] = {}
        self._sets: dict[_Set[T], None] = {}
        self._open: _Set[T] = _Set()

    def __len__(self) -> int:
        return len(self._set_of)

    def add(self, who: T, pattern: Pattern) -> None:
        """Run an expression for somebody, who has no other."""
        own = self._open
        is_full = len(own.members) == TOGETHER_MAX or own.size + pattern.size > SET_SIZE_MAX
        if own.members and is_full:
            own = self._open = _Set()
        own.members[who] = pattern
        own.size += pattern.size
        own.compiled = None
        self._set_of[who] = own
        self._sets[own] = None

    def remove(self, who: T) -> None:
        """Undo `add`; somebody who has no expression changes nothing."""
        own = self._set_of.pop(who, None)
        if own is not None:
            own.size -= own.members.pop(who).size
            own.compiled = None
            if not own.members:
                del self._sets[own]

    def fits(self, text: str) -> Iterator[T]:
        """Yield who looks for an expression that fits a text."""
        for own in self._sets:
            yield from own.fits(text)
