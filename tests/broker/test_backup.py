from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from click.testing import CliRunner
from support import doomed
from support.examples import some

from broker.cli import main
from broker.documents.spool import SpoolWriter
from broker.operations.backup import back_up
from broker.operations.copies import CopyError


class BackUpAt:
    """Copies the data of the running broker at the n-th visit of a commit point."""

    def __init__(self, data: Path, target: Path, point: str, visit: int) -> None:
        self._data = data
        self._target = target
        self._waited_for = (point, visit)
        self._visits: dict[str, int] = {}

    def __call__(self, point: str) -> None:
        self._visits[point] = self._visits.get(point, 0) + 1
        if (point, self._visits[point]) == self._waited_for:
            back_up(self._data, self._target)


@pytest.mark.parametrize(("visit", "point"), some(product([2, 5], doomed.POINTS), 9))
def test_a_copy_of_a_running_broker_goes_on_to_the_same_matches(
    tmp_path: Path, visit: int, point: str
) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    doomed.run(data, BackUpAt(data, copy, point, visit))
    assert (copy / "outbox.db").exists()
    doomed.live(str(copy))
    assert doomed.contents(copy) == doomed.contents(data)


def test_a_copy_with_segments_merged_over_its_progress_finds_nothing_twice(
    tmp_path: Path,
) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    doomed.run(data, BackUpAt(data, copy, "committed", 3))
    # As if the broker had gone on and merged between the copy of its outbox and of its spool.
    for path in (copy / "spool").iterdir():
        path.unlink()
    writer = SpoolWriter(data / "spool")
    while writer.compact(through=writer.last, documents_max=1000):
        pass
    writer.close()
    for path in (data / "spool").glob("*.segment"):
        (copy / "spool" / path.name).write_bytes(path.read_bytes())
    doomed.live(str(copy))
    assert _without_numbers(doomed.contents(copy)) == _without_numbers(doomed.contents(data))


def _without_numbers(contents: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted((row[2:] if row[0] == "match" else row for row in contents), key=repr)


def test_a_copy_says_how_far_it_is(tmp_path: Path) -> None:
    doomed.live(str(tmp_path / "data"))
    summary = back_up(tmp_path / "data", tmp_path / "copy")
    documents = len(doomed.contents(tmp_path / "data"))
    assert 0 < summary.documents < documents
    assert summary.through == 8


def test_the_command_copies_the_data_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doomed.live(str(tmp_path / "data"))
    (tmp_path / "xscl.toml").write_text('data = "data"\n')
    monkeypatch.chdir(tmp_path)
    first = CliRunner().invoke(main, ["backup", "copy"])
    assert first.exit_code == 0, first.output
    assert doomed.contents(tmp_path / "copy") == doomed.contents(tmp_path / "data")
    second = CliRunner().invoke(main, ["backup", "copy"])
    assert second.exit_code == 1
    assert "not empty" in second.stderr


def test_a_copy_does_not_overwrite_anything(tmp_path: Path) -> None:
    doomed.live(str(tmp_path / "data"))
    back_up(tmp_path / "data", tmp_path / "copy")
    with pytest.raises(CopyError, match="not empty"):
        back_up(tmp_path / "data", tmp_path / "copy")


def test_a_damaged_spool_is_not_copied_and_the_command_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doomed.live(str(tmp_path / "data"))
    damaged = min((tmp_path / "data" / "spool").glob("*.segment"))
    damaged.write_bytes(b"torn")
    with pytest.raises(CopyError, match=r"data cannot be copied: .*segment"):
        back_up(tmp_path / "data", tmp_path / "copy")
    (tmp_path / "xscl.toml").write_text('data = "data"\n')
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["backup", "second"])
    assert result.exit_code == 1
    assert isinstance(result.exception, SystemExit)
    assert "cannot be copied" in result.stderr
    assert damaged.name in result.stderr


def test_what_is_no_data_directory_is_not_copied(tmp_path: Path) -> None:
    with pytest.raises(CopyError, match="not the data directory"):
        back_up(tmp_path, tmp_path / "copy")
