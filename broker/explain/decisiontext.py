"""Decisions as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from broker.explain.model import DecisionView

__all__ = ["asked_lines", "spell_decision"]


def spell_decision(one: DecisionView) -> str:
    """Return what is decided: the operands, and within which window."""
    within = (
        f" within {one.window}" if one.window else f" WITHIN {one.within}" if one.within else ""
    )
    if one.kind.startswith("MATCH"):
        return f"{' FOLLOWED BY '.join(one.operands)}{within} {one.kind}"
    if one.kind == "+":
        return f"{one.operands[0]}{within}"
    if len(one.operands) > 1:
        return f"{f' {one.kind} '.join(one.operands)}{within}"
    if one.kind == "UNLESS":
        return one.operands[0]
    return f"{one.operands[0]} {one.kind} {one.absences[0].unit}{within}"


def asked_lines(one: DecisionView) -> Iterator[str]:
    """Yield what is asked of a tuple, and what takes it away."""
    if one.asked:
        yield f"if {one.asked}"
    for each in one.repeated:
        gap = f"at most {each.gap} behind the one before" if each.gap else ""
        asked = ", ".join(filter(None, [each.asked and f"if {each.asked}", gap]))
        if asked:
            yield f"each element of {each.unit}: {asked}"
        if each.go_on:
            yield f"it goes on while {each.go_on}"
        yield from each.folds
    if one.how:
        yield one.how
    for absence in one.absences:
        asked = f"if {absence.asked}" if absence.asked else ""
        if absence.kind == one.kind != "UNLESS":
            yield from [asked] if asked else []
            continue
        where = "comes before" if absence.kind == "UNLESS before" else "stands between"
        within = f" within {absence.window}" if absence.window else ""
        yield ", ".join(filter(None, [f"unless {absence.unit} {where}{within}", asked]))
