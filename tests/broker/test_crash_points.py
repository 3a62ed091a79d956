"""A broker that is killed anywhere finds the same matches, under the same ids and numbers."""

from __future__ import annotations

import json
import random
import shutil
import signal
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from support import doomed
from support.doomed import Forks
from support.examples import examples, some


@pytest.fixture(scope="module")
def forks() -> Iterator[Forks]:
    forks = Forks()
    yield forks
    forks.close()


def contents_after_a_kill(
    forks: Forks, directory: Path, point: str, visit: int, *how: str
) -> list[tuple[object, ...]]:
    """Return what a broker leaves that is killed at a point, and started again."""
    assert forks.run("die_at", directory, point, visit, *how) == -signal.SIGKILL
    assert forks.run("live", directory, *how) == 0
    return doomed.contents(directory)


@pytest.fixture(scope="module")
def undisturbed(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, ...]]:
    directory = tmp_path_factory.mktemp("undisturbed")
    assert forks.run("live", directory) == 0
    found = doomed.contents(directory)
    assert sum(row[0] == "match" for row in found) > 50
    assert sum(row[0] == "dead_letter" for row in found) == 1
    return found


@pytest.mark.parametrize(("visit", "point"), some(product([1, 2, 5], doomed.POINTS), 6))
def test_a_kill_at_a_commit_point_changes_nothing(
    forks: Forks, tmp_path: Path, undisturbed: list[tuple[object, ...]], visit: int, point: str
) -> None:
    assert contents_after_a_kill(forks, tmp_path, point, visit) == undisturbed


@pytest.fixture(scope="module")
def decided(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, ...]]:
    directory = tmp_path_factory.mktemp("decided")
    assert forks.run("live", directory, "real") == 0
    found = doomed.contents(directory)
    counts = Counter(row[3] for row in found if row[0] == "match")
    assert counts.keys() == doomed.DECIDING.keys()
    assert sum(row[0] == "published" for row in found) == counts["quiet"] > 5
    return found


@pytest.mark.parametrize(("point", "visit"), some(product(doomed.POINTS, [2, 5]), 1))
def test_a_kill_at_a_commit_point_changes_nothing_that_is_decided(
    forks: Forks, tmp_path: Path, decided: list[tuple[object, ...]], point: str, visit: int
) -> None:
    assert contents_after_a_kill(forks, tmp_path, point, visit, "real") == decided


@pytest.fixture(scope="module")
def ruled(forks: Forks, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[object, ...]]:
    directory = tmp_path_factory.mktemp("ruled")
    assert forks.run("live", directory, "rules") == 0
    found = doomed.contents(directory)
    assert {row[0] for row in found} >= {"match", "published", "table_row", "note"}
    lines = [json.loads(row[-2]) for row in found if row[0] == "match" and row[3] == "counts_in"]
    assert {line["confidence"] for line in lines} >= {1.0, 0.25}
    return found


@pytest.mark.parametrize(("point", "visit"), some(product(doomed.POINTS, [1, 2, 5]), 1))
def test_a_kill_at_a_commit_point_changes_no_cell_and_nothing_that_is_learned(
    forks: Forks, tmp_path: Path, ruled: list[tuple[object, ...]], point: str, visit: int
) -> None:
    assert contents_after_a_kill(forks, tmp_path, point, visit, "rules") == ruled


@pytest.mark.parametrize(("point", "visit"), some(product(doomed.POINTS, [1, 2, 5]), 3))
def test_a_kill_while_a_batch_is_joined_and_the_next_one_evaluated_changes_nothing(
    forks: Forks, tmp_path: Path, undisturbed: list[tuple[object, ...]], point: str, visit: int
) -> None:
    how = ("stand-in", doomed.OVERLAPPING)
    assert contents_after_a_kill(forks, tmp_path, point, visit, *how) == undisturbed


@pytest.mark.parametrize(("point", "visit"), some(product(doomed.POINTS[3:6], [2, 5]), 1))
@pytest.mark.parametrize(("engine", "left"), [("real", "decided"), ("rules", "ruled")])
def test_a_kill_while_batches_overlap_changes_nothing_that_is_decided(
    forks: Forks,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    engine: str,
    left: str,
    point: str,
    visit: int,
) -> None:
    found = contents_after_a_kill(forks, tmp_path, point, visit, engine, doomed.OVERLAPPING)
    assert unnumbered(found) == unnumbered(request.getfixturevalue(left))


def unnumbered(rows: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    """Return rows without the numbers of published documents, which batches decide."""
    return sorted(((row[0], *row[2:]) if row[0] == "published" else row for row in rows), key=repr)


def test_a_broker_that_is_killed_again_and_again_gets_there(
    forks: Forks, tmp_path: Path, undisturbed: list[tuple[object, ...]]
) -> None:
    kills = 0
    for point in doomed.POINTS * 2:
        kills += forks.run("die_at", tmp_path, point, 1) == -signal.SIGKILL
    assert kills >= len(doomed.POINTS)
    assert forks.run("live", tmp_path) == 0
    assert doomed.contents(tmp_path) == undisturbed


@pytest.mark.slow
def test_kills_at_random_instants_change_nothing(
    forks: Forks, tmp_path: Path, undisturbed: list[tuple[object, ...]]
) -> None:
    chosen = random.Random(5)
    for seed in range(examples(1)):
        directory = tmp_path / str(seed)
        directory.mkdir()
        for _ in range(10):
            if forks.run("die_after", directory, chosen.uniform(0, 0.15)) == 0:
                break
        else:
            assert forks.run("live", directory) == 0
        assert doomed.contents(directory) == undisturbed


def test_a_torn_newest_segment_is_sent_again_and_changes_nothing(
    forks: Forks, tmp_path: Path, undisturbed: list[tuple[object, ...]]
) -> None:
    # Killed before the newest segment was processed; then the disk loses the end of it.
    assert forks.run("die_at", tmp_path, "evaluated", 3) == -signal.SIGKILL
    newest = max((tmp_path / "spool").glob("*.segment"))
    newest.write_bytes(newest.read_bytes()[:-10])
    assert forks.run("live", tmp_path) == 0
    assert doomed.contents(tmp_path) == undisturbed


def test_plans_that_are_lost_are_made_again(
    forks: Forks, tmp_path: Path, undisturbed: list[tuple[object, ...]]
) -> None:
    assert forks.run("die_at", tmp_path, "evaluated", 3) == -signal.SIGKILL
    shutil.rmtree(tmp_path / "plans")
    assert forks.run("live", tmp_path) == 0
    assert doomed.contents(tmp_path) == undisturbed
