"""Histories of a broker's core with crashes; `python -m histories.simulation` runs thousands."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from histories import simulation
from histories.simulated_queries import RealQueries, RuledQueries, StandInQueries
from support.examples import examples


def crashes_of(seeds: Iterable[int], place: Path, kind: simulation.Kind = StandInQueries) -> int:
    """Simulate histories, each in a directory; return how often a broker crashed in them."""
    crashes = 0
    for seed in seeds:
        directory = place / str(seed)
        directory.mkdir()
        crashes += simulation.simulate(seed, directory, kind).crashes
    return crashes


def test_a_history_with_crashes_finds_exactly_the_matches_of_its_documents(
    tmp_path: Path,
) -> None:
    assert crashes_of(range(examples(6)), tmp_path) > 0


@pytest.mark.slow
def test_a_history_with_crashes_and_the_real_engine_finds_what_the_oracle_finds(
    tmp_path: Path,
) -> None:
    assert crashes_of(range(4, 4 + examples(2)), tmp_path, RealQueries) > 0


@pytest.mark.slow
def test_a_history_with_crashes_leaves_the_rows_that_serial_evaluation_leaves(
    tmp_path: Path,
) -> None:
    assert crashes_of(range(4, 4 + examples(2)), tmp_path, RuledQueries) > 0


@pytest.mark.parametrize("kind", [StandInQueries, RealQueries])
def test_a_seed_is_one_history(tmp_path: Path, kind: simulation.Kind) -> None:
    worlds = []
    for name in ("once", "again"):
        (tmp_path / name).mkdir()
        world = simulation.simulate(7, tmp_path / name, kind)
        queries = kind(tmp_path / name)
        worlds.append((world.crashes, world.acknowledged, world.now_us, queries.version()))
        queries.close()
    assert worlds[0] == worlds[1]
