"""What a match loses in confidence: a factor for each lost unit, and for each absent one.

A factor is asked of the times of a match's documents alone (`docs/loss.md`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from xscl.delays import Sample, exact, in_time, lost, unseen
from xscl.query import INFINITE_US, Call, Loss, VariableValue

__all__ = ["Factor"]


@dataclass(frozen=True, slots=True)
class Factor:
    """The factor of units that were lost between two neighbours, or of one that was not seen.

    `left` and `right` are the roots of the neighbours' blocks.  Without `right` the unit was absent
    for `window_us` behind the left one, at most until `within_us` behind its start.  `blocks` are
    those of the units, one for each loss.
    """

    losses: tuple[Loss, ...]
    is_lost: bool
    left: tuple[str, ...]
    right: tuple[str, ...]
    blocks: tuple[int, ...]
    window_us: int = INFINITE_US
    within_us: int = INFINITE_US

    def bound(self, names: Iterable[str]) -> Factor:
        """Return the factor of a tuple that binds some roots: of alternatives, one each."""
        known = set(names)
        left, right = (
            tuple(each for each in side if each in known) for side in (self.left, self.right)
        )
        return replace(self, left=left, right=right)

    def terms(self) -> list[Call]:
        """Return the times that it asks for."""
        ends = [Call("time", (VariableValue(name),)) for name in (*self.left, *self.right)]
        if self.right or self.within_us >= INFINITE_US:
            return ends
        return [*ends, *(Call("start", (VariableValue(name),)) for name in self.left)]

    def gap_us(self, times: Mapping[str, int]) -> int:
        """Return the gap of a tuple, given its times by the names of terms."""
        end = max(times[f"time({name})"] for name in self.left)
        if self.right:
            return max(times[f"time({name})"] for name in self.right) - end
        if self.within_us >= INFINITE_US:
            return self.window_us
        start = min(times[f"start({name})"] for name in self.left)
        return min(self.window_us, start + self.within_us - end)

    @property
    def learns(self) -> bool:
        """Whether a delay of its units is learned."""
        return any(loss.delay.kind == "learned" for loss in self.losses)

    def at(self, gap_us: int, learned: Mapping[int, Sample] | None = None) -> Fraction:
        """Return the factor of a gap; where delays are not `learned` yet, the most that it can be.

        `learned` are the delays seen of units, by their blocks.
        """
        if not self.is_lost:
            return unseen(self.losses[0], gap_us)
        if not self.learns:
            return lost(self.losses, gap_us)
        each = (exact(loss.probability) for loss in self.losses)
        eps = math.prod(each, start=Fraction(1))
        if learned is None:
            return eps
        delays = [
            learned[block] if loss.delay.kind == "learned" else loss.delay
            for block, loss in zip(self.blocks, self.losses, strict=True)
        ]
        return eps * in_time(delays, gap_us)

    @property
    def most(self) -> Fraction:
        """The most that it can be: of what is lost it grows with the gap, else it falls."""
        if self.is_lost:
            return self.at(min(self.window_us, self.within_us))
        is_sure = not self.right and self.within_us >= INFINITE_US
        return self.at(self.window_us if is_sure else 0)
