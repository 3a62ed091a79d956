"""The kinds of random cases, by the names that `benchmarks/oracle_run.py` has for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from generators.choosers import RandomChooser
from generators.column_cases import column_case, column_run_case, counted_chain_case
from generators.counted_cases import counted_any_case, counted_case
from generators.longer_cases import longer
from generators.loss_cases import loss_case
from generators.ordered_cases import absence_case, ordered_case
from generators.outcome_cases import outcome_case
from generators.rule_cases import rule_case
from generators.run_cases import run_case, run_end_case
from generators.shared_cases import shared_case
from generators.similar_cases import similar_case
from generators.strategies import Generator

__all__ = ["KINDS", "MIXED", "RULES", "SIMILAR", "Kind", "longer_by_lot"]

Make = Callable[[RandomChooser], str]


@dataclass(frozen=True, slots=True)
class Kind:
    """What queries of a kind of case do, and what makes the cases.

    One case in eight is of `rare` instead: about what hardly decides among other conditions.
    """

    what: str
    make: Make
    rare: Make | None = None

    def case(self, seed: int) -> str:
        """Return the case of a seed as text; one in four is `longer`."""
        is_rare = self.rare is not None and _lot(seed, "rare", 8)
        text = (self.rare if is_rare and self.rare else self.make)(RandomChooser(seed))
        return longer_by_lot(text, seed)


def longer_by_lot(text: str, seed: int) -> str:
    """Return a case or a history, of one seed in four with many documents more."""
    return longer(text, RandomChooser(seed)) if _lot(seed, "longer", 4) else text


def _lot(seed: int, what: str, one_in: int) -> bool:
    return RandomChooser(f"{what} {seed}").integer(1, one_in) == 1


SIMILAR = Kind("join by similarity", similar_case)
RULES = Kind("read and write tables", rule_case)
"""What is left in tables is compared too."""

KINDS = {
    "plain": Kind("join by values", lambda chooser: Generator(chooser).case()),
    "chains": Kind("have chains that are stepped in columns", column_case),
    "runs-behind-next": Kind("have repetitions behind NEXT, stepped in columns", column_run_case),
    "rows-of-chains": Kind("have rows of such chains", counted_chain_case),
    "counted": Kind("count runs, or draw them", counted_case),
    "counted-any": Kind("count the matches of chains under MATCH ANY", counted_any_case),
    "lossy": Kind("have LOSS", loss_case),
    "ordered": Kind("decide: NEXT, UNLESS, NOT", ordered_case, rare=absence_case),
    "shared": Kind("decide for many assignments together", shared_case),
    "repeated": Kind("have runs", run_case, rare=run_end_case),
    "outcomes": Kind("have rows or limits: WINDOW, LIMIT, DISJOINT", outcome_case),
    "similar": SIMILAR,
    "rules": RULES,
}

MIXED = (
    *("plain",) * 7,
    *("outcomes",) * 2,
    *(name for name, kind in KINDS.items() if kind is not RULES),
)
"""Kinds that take turns.  In joins by values, and in rows, most clauses of the language may stand,
and so few stand in each."""
