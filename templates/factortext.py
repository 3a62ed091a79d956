"""Units that may be lost, and their delays, in the words of a statement."""

from __future__ import annotations

from xscl.durations import render_duration
from xscl.path import Parameter
from xscl.query import Loss, Query

__all__ = ["spell_delay", "spell_unit"]


def spell_unit(query: Query, block: int) -> str:
    """Return what a unit is called: its block and its stream."""
    return f"block {block} ({query.blocks[block].stream})"


def spell_delay(loss: Loss) -> str:
    """Return how a unit is lost, as it is written."""
    delay = loss.delay
    lengths = [
        f"${each.name}" if isinstance(each, Parameter) else render_duration(each.length_us)
        for each in delay.lengths
    ]
    if delay.kind == "cdf":
        shares = zip(lengths, delay.shares, strict=True)
        lengths = [f"{length}: {share:g}" for length, share in shares]
    given = f"({', '.join(lengths)})" if lengths else ""
    return f"LOSS {loss.probability:g} DELAY {delay.kind}{given}"
