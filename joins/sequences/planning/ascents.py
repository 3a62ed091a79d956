"""The steps in which lefts are served where thresholds or windows are data (`steps`)."""

from __future__ import annotations

import enum

from templates.decision import Decision, DecisionKind

__all__ = ["Ascent", "ascent_of"]


class Ascent(enum.IntEnum):
    """In what steps the lefts of a decision are served: of what its heights are made (`steps`)."""

    NONE = 0
    RISING = 1
    FALLING = 2
    NEARING = 3


def ascent_of(decision: Decision) -> Ascent:
    """Return in what steps the lefts of a decision are served."""
    if decision.kind is not DecisionKind.NEXT:
        return Ascent.NONE
    if decision.is_nearing:
        return Ascent.NEARING
    found = {fit.right.threshold for fit in decision.fits}
    rising = {each.rises for each in found if each is not None}
    if not rising:
        return Ascent.NONE
    [rises] = rising
    return Ascent.RISING if rises else Ascent.FALLING
