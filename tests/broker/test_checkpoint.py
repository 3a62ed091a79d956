"""Spark's checkpoint is believed only where it says something and does not lead the commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from broker.pipeline.checkpoint import is_ahead


def checkpoint(directory: Path, offsets: str) -> Path:
    for name, text in (("commits", "v1\n{}"), ("offsets", offsets)):
        (directory / name).mkdir()
        (directory / name / "0").write_text("v1\n{}")
        (directory / name / "1").write_text(text)
    return directory


@pytest.mark.parametrize(("through", "leads"), [(6, True), (7, False), (8, False)])
def test_it_is_ahead_where_its_last_batch_is_not_committed(
    tmp_path: Path, through: int, leads: bool
) -> None:
    assert is_ahead(checkpoint(tmp_path, 'v1\n{}\n{"segment": 7}'), through) == leads


@pytest.mark.parametrize(
    "offsets", ["", "v1", "v1\n{}\n{", 'v1\n{}\n"7"', "v1\n{}\n7", "v1\n{}\n{}"]
)
def test_a_checkpoint_of_which_half_is_written_counts_as_ahead(
    tmp_path: Path, offsets: str
) -> None:
    assert is_ahead(checkpoint(tmp_path, offsets), 7)


def test_a_checkpoint_without_batches_counts_as_ahead(tmp_path: Path) -> None:
    (tmp_path / "commits").mkdir()
    assert is_ahead(tmp_path, 7)
