"""How runs are found, in words; and what a chain under MATCH is made of."""

from __future__ import annotations

from templates.chaindecision import ChainDecision
from templates.rundecision import RunDecision
from xscl.query import Strategy
from xscl.sequence import Absence, Node, Operator

__all__ = ["chain_parts", "how_found"]

_BY_STRATEGY = {
    Strategy.ANY: "every choice of elements is a run; none is listed before it is complete",
    Strategy.NEXT: "a run takes the next that fits; of a repetition the next within it goes first",
    Strategy.PARTITION: "a run ends at the first document of its key that does not fit",
    Strategy.STRICT: "a run ends at the first document of its streams that does not fit",
}


def how_found(decision: RunDecision | ChainDecision) -> str:
    """Return in which way runs are found, what bounds their number, and for whom they go on."""
    how, given = _how_found(decision), ", ".join(f"${each.parameter}" for each in decision.given)
    return (
        f"{how}; runs go on for each {given} that is given, over common elements" if given else how
    )


def _how_found(decision: RunDecision | ChainDecision) -> str:
    if isinstance(decision, ChainDecision):
        if decision.counting is not None:
            drawn = "drawn as graphs" if decision.counting.has_steps else "counted"
            return f"every choice of elements is a match: they are {drawn}, and none is listed"
        return _BY_STRATEGY[decision.strategy]
    if decision.is_next:
        return "a run takes the next element that fits, and each of its beginnings is one"
    if decision.counting is not None:
        drawn = "drawn as graphs" if decision.counting.has_steps else "counted"
        return f"every choice of elements is a run: they are {drawn}, and none is listed"
    if decision.speaks_of_neighbours:
        return "every choice of elements is a run: they are counted before they are listed"
    return "every choice of elements is a run, and they are found one by one"


def chain_parts(node: Node) -> tuple[list[Node], list[Absence]]:
    """Return the units and repetitions of a chain in order, and what must be absent."""
    match node:
        case Absence(operand=operand):
            parts, absences = chain_parts(operand)
            return parts, [*absences, node]
        case Operator(left=left, right=right):
            parts, absences = chain_parts(left)
            return [*parts, right], absences
    return [node], []
