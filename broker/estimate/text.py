"""An estimate as text."""

from __future__ import annotations

from broker.estimate.interval import Interval
from broker.estimate.model import OperatorEstimate, QueryEstimate
from xscl.durations import render_duration

__all__ = ["render_estimate", "spell_interval", "spell_number"]


def render_estimate(found: QueryEstimate) -> str:
    """Return an estimate as text."""
    lines = [f"{found.query}: {_matches(found)}"]
    several = len({one.alternative for one in found.operators}) > 1
    for one in found.operators:
        which = f"alternative {one.alternative}, " if several else ""
        lines.append(f"  {which}{one.text}{_remembered(one)}")
        for join in one.joins:
            role = "anchor" if join.text == one.anchor else "join  "
            lines.append(f"    {role}  {join.text}: {_pairs(join.pairs_per_day, join.partners)}")
        if one.grace_us is not None:
            lines.append(f"    {_waits(one.grace_us)}")
        elif not one.joins:
            lines.append(f"    no value join: {_pairs(one.pairs_per_day, one.partners)}")
    lines += [f"  warning: {text}" for text in found.warnings]
    return "\n".join(lines) + "\n"


def _matches(found: QueryEstimate) -> str:
    if found.days is None:
        return f"matches a day not estimated: {found.refusal}"
    sample = f"(from {found.documents:,} documents, {found.days:.1f} days)"
    if found.matches_per_day is None:
        return f"matches not estimated {sample}"
    return f"{spell_interval(found.matches_per_day)} matches a day {sample}"


def _waits(grace_us: int) -> str:
    if not grace_us:
        return "an answer waits for no late documents"
    return f"an answer waits {render_duration(grace_us)} for late documents"


def spell_interval(found: Interval) -> str:
    """Return an interval in words.

    >>> spell_interval(Interval(0, 0, 893)), spell_interval(Interval(88.2, 118, 151))
    ('fewer than about 890', '88 to 150')
    """
    if not found.expected:
        return f"fewer than about {spell_number(found.high)}"
    return f"{spell_number(found.low)} to {spell_number(found.high)}"


def _remembered(one: OperatorEstimate) -> str:
    if one.remembered is None or one.bytes is None:
        return ""
    size = f"{one.bytes / 1e6:,.1f} MB" if one.bytes >= 100_000 else f"{one.bytes / 1e3:,.1f} kB"
    return f": remembers {one.remembered:,} documents, {size}"


def _pairs(per_day: float | None, partners: float) -> str:
    each = spell_number(partners)
    if per_day is None:
        return f"{each} pairs for each document"
    return f"{spell_number(per_day)} pairs a day, {each} for each document"


def spell_number(value: float) -> str:
    """Return a number with two digits that count.

    >>> spell_number(1234.5), spell_number(0.0312), spell_number(0)
    ('1,200', '0.031', '0')
    """
    if not value:
        return "0"
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"
