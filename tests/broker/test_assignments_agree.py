"""Assignments that come and go have what each would have alone: of rows, limits and tables too."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from generators.choosers import RandomChooser
from generators.counted_cases import counted_case
from generators.outcome_cases import outcome_case
from generators.rule_cases import rule_case
from generators.shared_cases import shared_case
from support.assigned import Stay, given_by_engine, given_by_oracle, stays_of
from support.examples import examples, size
from support.kit import parse_case

RULE_LEFT_ALONE = """
query t
    CREATE TABLE t (id KEY, n DEFAULT 0)
lateness 5 s
query q
    S//a NEXT S//b NEXT S//c WITHIN $within GRACE 0 s ON MATCH SET t['x'].n = 1
parameters q {"within": "1 h"}
query r
    S//d WHERE t['x'].n = 2 GRACE 0 s
document 1 S 00:00:10 arrival=01:00  <a/>
document 2 TABLE.t 00:00:11 arrival=01:00  <rows><row id="x"><n type="number">2</n></row></rows>
document 3 S 00:00:12 arrival=01:00  <d/>
tick 4 00:10:00
----
"""

ALIKE_IN_STRINGS = """
lateness 5 s
query q
    (S//i[a = $x]->a FOLLOWED BY {a/t = b/t, $v} S//i->b) FOLLOWED BY {b/t = c/t, $w} S//i->c
parameters q {"v": "3 s", "w": "2 s", "x": "1"}
parameters q {"v": "1 s", "w": "2 s", "x": "1"}
parameters q {"v": "5 s", "w": "9 s", "x": "1"}
parameters q {"v": "5 s", "w": "9 s", "x": "2"}
parameters q {"v": "5 s", "w": "9 s", "x": "3"}
parameters q {"v": "6 s", "w": "1 s", "x": "2"}
document 1 S 00:00:10  <i><a>1</a><t>1</t></i>
document 2 S 00:00:12  <i><a>2</a><t>1</t></i>
document 3 S 00:00:14  <i><a>1</a><t>1</t></i>
document 4 S 00:00:15  <i><a>3</a><t>1</t></i>
document 5 S 00:00:16  <i><a>2</a><t>1</t></i>
tick 6 00:10:00
----
"""


WAITING = """
lateness 0 s
query q
    S//a OPERATOR *//b
parameters q {"T": "1 s"}
parameters q {"T": "8 s"}
parameters q {"T": "2 s"}
document 1 S 00:00:11 arrival=01:00  <a/>
document 2 S 00:00:13 arrival=01:00  <e/>
document 3 S 00:00:14 arrival=01:00  <e/>
document 4 S 00:00:16 arrival=01:00  <e/>
document 5 S 00:00:17 arrival=01:00  <e/>
tick 6 00:10:00
----
"""


@pytest.mark.parametrize("kind", [outcome_case, counted_case, rule_case, shared_case])
def test_they_are_given_what_the_oracle_says(kind: Callable[[RandomChooser], str]) -> None:
    wrong: list[int] = []
    seeds = (seed for seed in range(10_000) if "$" in kind(RandomChooser(seed)))
    for seed in [next(seeds) for _ in range(size(3, examples(8)))]:
        case = parse_case(kind(RandomChooser(seed)))
        stays, cut = stays_of(case, seed), random.Random(seed)
        cuts = range(0, len(case.lines), cut.choice([1, 2, 4, 50]))
        restarts = [cut.randint(1, len(case.lines))] if cut.random() < 0.3 else []
        found = given_by_engine(case, stays, cuts, restarts, cut.choice([1, 1, 1, 3]))
        if found != given_by_oracle(case, stays):
            wrong.append(seed)
    assert not wrong


def test_a_table_is_loaded_also_when_nobody_asks_for_a_rule_any_more() -> None:
    case = parse_case(RULE_LEFT_ALONE)
    [values] = case.assignments["q"]
    stays = [Stay("q", values, 0, 1)]
    expected = given_by_oracle(case, stays)
    assert expected[-1] == "('t', 'x') {'n': 2.0}"
    assert given_by_engine(case, stays, [1, 2, 3], [], 1) == expected


@pytest.mark.parametrize("cuts", [range(6), [0, 3], [0]])
def test_those_that_come_together_with_one_string_differ_in_their_windows(cuts: list[int]) -> None:
    case = parse_case(ALIKE_IN_STRINGS)
    stays = [Stay("q", values, i % 2, 4 + i % 3) for i, values in enumerate(case.assignments["q"])]
    expected = given_by_oracle(case, stays)
    assert expected
    assert given_by_engine(case, stays, cuts, [], 1) == expected


@pytest.mark.parametrize("operator", ["NOT FOLLOWED BY", "NOT JOIN"])
def test_what_waited_for_a_window_that_nobody_asks_for_any_more_is_given_to_nobody(
    operator: str,
) -> None:
    case = parse_case(WAITING.replace("OPERATOR", f"{operator} {{, $T}}"))
    ends = [6, 2, 5]
    stays = [Stay("q", v, 0, end) for v, end in zip(case.assignments["q"], ends, strict=True)]
    expected = given_by_oracle(case, stays)
    assert expected
    assert given_by_engine(case, stays, [1], [], 1) == expected


def test_all_of_one_string_go_while_one_of_another_asks_for_more() -> None:
    case = parse_case(ALIKE_IN_STRINGS.replace('"v": "6 s", "w": "1 s"', '"v": "1 s", "w": "9 s"'))
    points = [(0, 1), (0, 1), (0, 1), (1, 6), (0, 6), (0, 6)]
    stays = [
        Stay("q", values, *each) for values, each in zip(case.assignments["q"], points, strict=True)
    ]
    expected = given_by_oracle(case, stays)
    assert expected
    assert given_by_engine(case, stays, [1], [], 1) == expected
