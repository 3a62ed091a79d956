"""What a random case is about, and so how likely each construct is in it.

A case is of one of three moods: in a *tame* one constructs are rare, and operators of three and
four blocks find something too; in a *wild* one every construct is likely, and matches are few; most
have a *focus*, one construct that is in everything, the others rare, so that it decides which
matches there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from generators.choosers import Chooser

__all__ = ["FOCI", "Mood"]

FOCI = (
    *("function",) * 13,
    "given",
    *("condition",) * 14,
    *("residual",) * 8,
    *("term",) * 8,
    *("clause",) * 8,
    *("late",) * 6,
    *("position", "parameter") * 4,
    *("or", "publish", "nested", "namespace") * 3,
    *("axis", "key", "register", "empty", "crowd") * 2,
    *("stream", "symmetric", "select", "unjoined", "single"),
)
"""The constructs that a case can be about, each as often as there are kinds of it to try.

`given` is about parameters, too: joined by words, and held against numbers of XPath 1.0.
"""

T = TypeVar("T")


class Mood:
    """Makes choices that fit the case; `wild` percent of cases are wild.

    `has_revisions` says that a query of the case asks for revisions; a case that `joins_parameters`
    is about these.
    """

    def __init__(self, chooser: Chooser, *, wild: int, foci: Sequence[str]) -> None:
        self._choose = chooser
        self.has_revisions = False
        self.is_wild = self.chance(wild)
        focus = "" if self.is_wild or self.chance(15) else chooser.choice(foci)
        self.joins_parameters = focus == "given"
        self._focus = "parameter" if self.joins_parameters else focus

    def choice(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return self._choose.choice(items)

    def integer(self, least: int, most: int) -> int:
        """Return a number between two, both included."""
        return self._choose.integer(least, most)

    def chance(self, percent: int) -> bool:
        """Return true for so many percent of choices."""
        return self._choose.integer(0, 99) >= 100 - percent

    def rarely(self, percent: int, construct: str = "") -> bool:
        """Return true for so many percent of wild cases, and for few of others.

        Of cases that are about the construct, it is true for most.
        """
        if construct and construct == self._focus:
            return self.chance(60)
        if self.is_wild:
            return self.chance(percent)
        return self.chance(percent // (8 if self.has_focus else 4))

    @property
    def has_focus(self) -> bool:
        """Whether the case is about something."""
        return bool(self._focus)

    def is_about(self, *constructs: str) -> bool:
        """Return whether the case is about one of the constructs."""
        return self._focus in constructs
