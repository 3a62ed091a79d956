"""Longer cases reach what little ones do not: what is remembered goes, is moved and is merged."""

from __future__ import annotations

from collections import Counter
from unittest.mock import PropertyMock, patch

import pytest
from generators.choosers import RandomChooser
from generators.kinds import KINDS
from generators.longer_cases import longer
from generators.outcome_cases import outcome_case
from generators.strategies import random_case
from histories.decided import ordered_history
from histories.history import parse_history
from support.happenings import noted
from support.kit import parse_case
from support.runners import DEFAULT_ENGINE, lines, run_oracle
from support.ways import CaseWay, random_case_way

from templates.decision import Decision

FORGETS_TOO_SOON = ("ordered", 291)
"""A kind and a seed of which a decision is wrong that forgets what NOT JOIN still looks at."""


def test_what_is_remembered_goes_and_is_moved_merged_and_written_to_files() -> None:
    case = parse_case(longer(outcome_case(RandomChooser(0)), RandomChooser(0)))
    expected = lines(run_oracle(case))
    with noted() as happenings:
        assert lines(CaseWay(DEFAULT_ENGINE, 8, 0, 3, 0, 1, 1).run(case, {})) == expected
    assert (
        Counter(
            {
                "forget documents": 1,
                "move what is left together": 1,
                "write rows to files": 1,
                "merge runs of values": 1,
                "merge pieces of shards": 1,
            }
        )
        <= happenings
    )


def test_a_decision_that_forgets_too_soon_is_found_out() -> None:
    kind, seed = FORGETS_TOO_SOON
    case = parse_case(KINDS[kind].case(seed))
    way = random_case_way(seed, case, [DEFAULT_ENGINE])
    expected = lines(run_oracle(case))
    assert lines(way.run(case, {})) == expected
    with patch.object(Decision, "lookback", PropertyMock(return_value=1)):
        assert lines(way.run(case, {})) != expected


@pytest.mark.parametrize("seed", range(4))
def test_documents_come_again_later_and_all_else_stays(seed: int) -> None:
    text = random_case(seed)
    case, long = parse_case(text), parse_case(longer(text, RandomChooser(seed)))
    assert long.queries == case.queries
    assert long.assignments == case.assignments
    assert len(long.lines) >= 20
    assert long.lateness_us <= 3_600_000_000
    known = [line.time_us for line in long.lines if line.time_us is not None]
    assert max(known) > max(line.time_us or 0 for line in case.lines)


def test_a_history_is_longer_in_the_same_way() -> None:
    text = ordered_history(3)
    history, long = (parse_history(each) for each in (text, longer(text, RandomChooser(3))))
    assert len(long.events) > len(history.events)
    others = [[each for each in one.events if not hasattr(each, "line")] for one in (history, long)]
    assert others[0] == others[1]
