"""The generated cases of sequences try sections 12 to 18: each clause decides in one of them."""

from __future__ import annotations

from collections.abc import Callable

from generators.choosers import RandomChooser
from generators.clause_coverage import CLAUSES, Coverage
from generators.column_cases import column_case, column_run_case
from generators.counted_cases import counted_case
from generators.ordered_cases import ordered_case
from generators.outcome_cases import outcome_case
from generators.run_cases import run_case
from generators.sequence_clauses import SEQUENCE_CLAUSES
from support.kit import parse_case
from support.runners import run_oracle

TELLING: tuple[tuple[Callable[[RandomChooser], str], tuple[int, ...]], ...] = (
    (column_run_case, (0, 3, 4, 9)),
    (column_case, (5, 12, 16, 45, 82, 139)),
    (run_case, (18, 28, 55)),
    (ordered_case, (5, 12)),
    (outcome_case, (2, 18, 23, 62, 76, 79, 220, 284, 288, 303, 527)),
    (counted_case, (3, 8, 46)),
    (column_case, (34, 43, 50)),
)
"""Seeds of cases in which each clause decides; where the oracle takes long, few are left to ask."""

OF_A_WINDOW = """query q
    S//a FOLLOWED BY {, 9 s} S//b UNLESS {, 1 s} S//c GRACE 0 s
document 1 S 00:00:10  <a/>
document 2 S 00:00:12  <c/>
document 3 S 00:00:15  <b/>
tick 4 00:10:00
----
"""
"""What is absent stands between, but too far before the right one: that is rare by chance."""


def test_every_clause_of_sequences_decides_in_a_generated_case() -> None:
    coverage = Coverage()
    undecided = list(SEQUENCE_CLAUSES)
    generated = [kind(RandomChooser(seed)) for kind, seeds in TELLING for seed in seeds]
    for text in (OF_A_WINDOW, *generated):
        case = parse_case(text)
        coverage.add(case, run_oracle(case), undecided)
        undecided = [each for each in undecided if not coverage.decides[each.name]]
    assert [clause.name for clause in undecided] == []


def test_a_value_of_fold_stands_in_no_operand() -> None:
    coverage = Coverage()
    case = parse_case(column_case(RandomChooser(44)))
    inside = [each for each in CLAUSES if each.name == "4 residual: inside one operand"]
    coverage.add(case, run_oracle(case), inside)
    assert not coverage.decides.total()
