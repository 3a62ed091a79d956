"""What matches of a chain are told apart by, where their last element says it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from joins.sequences.chained.neighbours import Neighbours
from joins.sequences.runparts import Part
from templates.chaindecision import ChainDecision
from templates.neighbours import read_term
from templates.rundecision import RunAtHand, RunReading, compile_keys

__all__ = ["EndKey", "end_key"]

EndKey = Callable[[Part], Collection[str]]
"""Gives the values of the key of the matches that end with an element."""


def end_key(decision: ChainDecision, neighbours: Sequence[Neighbours]) -> EndKey | None:
    """Return what reads the key off the last element; None where that does not say it, or is none.

    It does where the key is its own, or of a unit whose value all behind it must have in common.
    """
    counting, links = decision.counting, decision.links
    assert counting is not None
    if len(counting.keys) != 1:
        return None
    [key] = counting.keys
    step = next(i for i, each in enumerate(links) if each.elements[0].block == key.block)
    if any(link.is_repeated for link in links[step:]):
        return None
    if step == len(links) - 1:
        read = compile_keys(key.operand)
        return lambda part: set(
            read(RunReading({}, 0, part.end_us, RunAtHand((), part.element, {})))
        )
    term = read_term(key.operand)
    for each in neighbours[step + 1 :]:
        # A path may have several values, of which one is in common.
        equal = (own for before, own in each.key_terms if before == term)
        term = None if term is None or term.is_path else next(equal, None)
    if term is None or term.is_path:
        return None
    name = term.name

    def value(part: Part) -> Collection[str]:
        assert part.element is not None
        return [part.element.value(name)]

    return value
