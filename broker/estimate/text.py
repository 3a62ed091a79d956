"""An estimate as text."""

from __future__ import annotations

from broker.estimate.model import OperatorEstimate, QueryEstimate

__all__ = ["render_estimate", "spell_number"]


def render_estimate(found: QueryEstimate) -> str:
    """Return an estimate as text."""
    matches = "matches not estimated"
    if found.matches_per_day is not None:
        matches = f"about {spell_number(found.matches_per_day)} matches a day"
    lines = [
        f"{found.query}: {matches} (from {found.documents:,} documents, {found.days:.1f} days)"
    ]
    several = len({one.alternative for one in found.operators}) > 1
    for one in found.operators:
        which = f"alternative {one.alternative}, " if several else ""
        lines.append(f"  {which}{one.text}: remembers {one.remembered:,} documents, {_size(one)}")
        for join in one.joins:
            role = "anchor" if join.text == one.anchor else "join  "
            lines.append(
                f"    {role}  {join.text}: {spell_number(join.pairs_per_day)} pairs a day,"
                f" {spell_number(join.partners)} for each document"
            )
        if not one.joins:
            lines.append(f"    no value join: {spell_number(one.pairs_per_day)} pairs a day")
    lines += [f"  warning: {text}" for text in found.warnings]
    return "\n".join(lines) + "\n"


def _size(one: OperatorEstimate) -> str:
    return f"{one.bytes / 1e6:,.1f} MB" if one.bytes >= 100_000 else f"{one.bytes / 1e3:,.1f} kB"


def spell_number(value: float) -> str:
    """Return a number with two digits that count.

    >>> spell_number(1234.5), spell_number(0.0312), spell_number(0)
    ('1,200', '0.031', '0')
    """
    if not value:
        return "0"
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"
