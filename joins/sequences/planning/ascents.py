"""The steps in which lefts are served where thresholds or windows are data (`steps`).

And for which data it is that an absent row takes a tuple away.
"""

from __future__ import annotations

import enum

from templates.decision import Absent, AbsentCase, Decision, DecisionKind

__all__ = ["Ascent", "TakingKind", "ascent_of", "bars_of", "taking_of"]


class Ascent(enum.IntEnum):
    """In what steps the lefts of a decision are served: of what its heights are made (`steps`)."""

    NONE = 0
    RISING = 1
    FALLING = 2
    NEARING = 3
    SCORED = 4


class TakingKind(enum.IntEnum):
    """For which data an absent row takes a tuple away.

    For all; for thresholds below its value, or above; for windows that reach it; for windows under
    which it meets all parts of the tuple; for data that equal its value; for thresholds up to the
    score of both; for all that differ from its values, or for sets of data as these are.
    """

    WHOLE = 0
    RISING = 1
    FALLING = 2
    REACHING = 3
    MEETING = 4
    EQUAL = 5
    SCORED = 6
    OF_DATA = 7


def ascent_of(decision: Decision) -> Ascent:
    """Return in what steps the lefts of a decision are served, or what heights its pairs have."""
    if decision.is_nearing:
        return Ascent.NEARING
    if decision.kind is not DecisionKind.NEXT:
        return Ascent.NONE
    if any(fit.score is not None for fit in decision.fits):
        return Ascent.SCORED
    found = {fit.right.threshold for fit in decision.fits}
    rising = {each.rises for each in found if each is not None and each.held is None}
    if not rising:
        return Ascent.NONE
    [rises] = rising
    return Ascent.RISING if rises else Ascent.FALLING


def taking_of(decision: Decision, absent: Absent, case: AbsentCase) -> TakingKind:
    """Return for which data a row of an absent unit takes a tuple away."""
    if case.score is not None:
        return TakingKind.SCORED
    held = case.stream.threshold
    if held is not None and held.held is not None:
        return TakingKind.OF_DATA
    if held is not None and held.operator == "=":
        return TakingKind.EQUAL
    if held is not None:
        return TakingKind.RISING if held.rises else TakingKind.FALLING
    if not isinstance(absent.window_us, int):
        return TakingKind.REACHING
    return TakingKind.MEETING if decision.is_nearing else TakingKind.WHOLE


def bars_of(decision: Decision) -> Ascent:
    """Return of what the bars of a decision's tuples are made."""
    takings = {taking_of(decision, absent, c) for absent in decision.absences for c in absent.cases}
    raising = [_BARS[each] for each in takings if each in _BARS]
    return raising[0] if raising else ascent_of(decision)


_BARS = {
    TakingKind.RISING: Ascent.RISING,
    TakingKind.FALLING: Ascent.FALLING,
    TakingKind.SCORED: Ascent.RISING,
    TakingKind.REACHING: Ascent.NEARING,
    TakingKind.MEETING: Ascent.NEARING,
}
"""Of what bars are made that absent rows raise: a decision has one kind of them at most."""
