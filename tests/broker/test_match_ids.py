"""The outbox has each match once, whatever ids have in common."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import pytest

from broker.matching.match import FoundMatch
from broker.matching.stepresult import StepResult
from broker.pipeline.outbox import Outbox


def name(first: int, last: int = 0) -> str:
    """Return an id; those with the same `first` have one number, those with the next the next."""
    return f"{first:015x}{last:017x}"


def matches(names: list[str], position: int = 1) -> StepResult:
    return StepResult([FoundMatch(position, "q", each, "{}", 1, "{}") for each in names])


def found(outbox: Outbox) -> list[tuple[int, str]]:
    return [(match.seq, match.id) for match in outbox.matches.find()]


@pytest.mark.parametrize("first", [0, 7, 16**15 - 1])
def test_ids_with_one_number_are_different_matches(tmp_path: Path, first: int) -> None:
    outbox = Outbox(tmp_path / "o.db")
    names = [name(first, last) for last in (1, 2, 3)]
    for through, each in enumerate(names, 1):
        assert outbox.commit(after=through - 1, through=through, step=matches([each]))
    outbox.add(matches(names[::-1]))
    assert outbox.commit(after=3, through=4, step=matches(names))
    assert found(outbox) == [(1, names[0]), (2, names[1]), (3, names[2])]
    outbox.close()


def test_a_batch_with_some_known_matches_keeps_the_others(tmp_path: Path) -> None:
    outbox = Outbox(tmp_path / "o.db")
    outbox.add(matches([name(3), name(5)]))
    step = matches([name(number) for number in range(1, 7)] * 2)
    assert outbox.commit(after=0, through=2, step=step)
    assert not outbox.commit(after=0, through=2, step=step)
    seqs = enumerate([3, 5, 1, 2, 4, 6], 1)
    assert found(outbox) == [(seq, name(number)) for seq, number in seqs]
    assert outbox.through() == 2
    outbox.close()


@pytest.mark.parametrize("seed", range(8))
def test_each_match_is_there_once_in_the_order_of_commits(tmp_path: Path, seed: int) -> None:
    random_ = random.Random(seed)
    spread = (2, 6, 1_000)[seed % 3]
    outbox, expected = Outbox(tmp_path / "o.db"), dict[str, None]()
    for through in range(1, 60):
        names = [
            name(random_.randrange(spread), random_.randrange(1 + 20 // spread))
            for _ in range(random_.randrange(4))
        ]
        names += random_.choices(["", "match", "a", "ab", "A" * 32], k=random_.randrange(2))
        if random_.random() < 0.5:
            outbox.add(matches(names))
            outbox.commit(after=through - 1, through=through, step=StepResult())
        else:
            outbox.commit(after=through - 1, through=through, step=matches(names))
        expected |= dict.fromkeys(sorted(names))
        if random_.random() < 0.1:
            outbox.close()
            outbox = Outbox(tmp_path / "o.db")
    assert found(outbox) == [(seq, each) for seq, each in enumerate(expected, 1)]
    outbox.close()
    with sqlite3.connect(tmp_path / "o.db") as db:
        kept = db.execute("SELECT seq FROM match_id ORDER BY seq").fetchall()
    assert kept == [(seq,) for seq in range(1, len(expected) + 1)]


@pytest.mark.parametrize("count", [1, 99, 100, 101, 230])
def test_a_batch_of_any_size_is_there_whole_and_in_order(tmp_path: Path, count: int) -> None:
    outbox = Outbox(tmp_path / "o.db", now_us=lambda: 7)
    outbox.add(matches([name(0)]))
    step = StepResult(
        [FoundMatch(i, "q", name(count - i), "{}", i - 1, f"{i}") for i in range(count)]
    )
    outbox.add(step)
    kept = outbox.matches.find(after=1)
    assert [match.seq for match in kept] == list(range(2, count + 2))
    assert {match.committed_us for match in kept} == {7}
    columns = ((m.position, m.query, m.id, m.parameters, m.oldest, m.line) for m in kept)
    assert list(map(FoundMatch._make, columns)) == list(step.matches)
    outbox.close()
