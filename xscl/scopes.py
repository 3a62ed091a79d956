"""Which variables a predicate or a clause may mention, and what it may ask of them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from xscl.path import Span
from xscl.report import Report
from xscl.spelling import did_you_mean

__all__ = ["Names", "Scope"]

_ISO_DURATION = re.compile(r"P(\d+[A-Z])*(T(\d+[A-Z])+)?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Scope:
    """The blocks that a predicate speaks of, those of each side of its operator.

    `elements` are those of them whose candidate the predicate judges: blocks of the unit that a
    repetition takes once more.  `repeated` are those of repetitions that are complete.  `keys` are
    the texts of what WINDOW groups by, where rows are spoken of instead of matches.  In an
    `is_optional` place a path need not lead anywhere, and where `has_tables` rows of tables can be
    read.
    """

    left: frozenset[int] = frozenset()
    right: frozenset[int] = frozenset()
    elements: frozenset[int] = frozenset()
    repeated: frozenset[int] = frozenset()
    keys: frozenset[str] | None = None
    is_optional: bool = False
    has_tables: bool = False

    @property
    def blocks(self) -> frozenset[int]:
        """All blocks in scope."""
        return self.left | self.right


@dataclass(slots=True)
class Names:
    """The variables and FOLD values of a statement, with the blocks that bind each.

    Of a FOLD value these are the blocks of the unit that is repeated.  `absent` are the blocks
    behind UNLESS and NOT; `guessed` are names that an unreadable part seems to bind.
    """

    blocks: dict[str, frozenset[int]]
    guessed: Collection[str]
    absent: frozenset[int]
    report: Report
    folds: set[str] = field(default_factory=set)

    def _meant(self, name: str) -> str | None:
        """Return a hint where a name is what something else looks like without its signs."""
        variable, *behind = re.split(r"([.-])", name, maxsplit=1)
        if variable in self.blocks and behind[1:] > [""]:
            written = "/" if behind[0] == "." else " - "
            return f"write `{variable}{written}{behind[1]}`"
        if name in ("start", "end", "dur", "count", "confidence"):
            return f"the function has parentheses: `{name}()`"
        if name.upper() == "INF":
            return "without a bound nothing is compared: leave it out"
        if _ISO_DURATION.fullmatch(name):
            return "in a condition a duration is a number and a unit, as in `2 h`"
        return None

    def find(self, name: str, span: Span, scope: Scope) -> frozenset[int]:
        """Return the blocks in scope that bind a name; report one that has none."""
        blocks = self.blocks.get(name)
        if blocks is None:
            if name not in self.guessed:
                self.report.error(
                    "XS201",
                    span,
                    f"no block binds the variable `{name}`",
                    self._meant(name)
                    or did_you_mean(name, self.blocks)
                    or f"bind it in a block: `author->{name}`; a string stands in quotes",
                )
            return frozenset()
        found = blocks & scope.blocks
        if not found and blocks <= self.absent:
            self.report.error(
                "XS211",
                span,
                f"`{name}` is bound in a block that must be absent",
                "its variables are known between the braces before it only",
            )
        elif not found:
            self.report.error(
                "XS204",
                span,
                f"`{name}` is bound in a block outside this operator's two operands",
                "operators group from the left; set parentheses, or move the comparison",
            )
        return found
