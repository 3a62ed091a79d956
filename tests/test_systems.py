"""The page on the systems of the papers is right: rows have cases, which find what they say."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from support.kit import CASES, cases, check
from support.runners import run_engine, run_oracle

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "systems.md").read_text()
ALL = dict(cases(CASES / "systems"))


def rows(page: str) -> dict[str, list[str]]:
    """Return the statements of each row that has a case, by the name of the case."""
    found = {}
    system = ""
    for line in page.splitlines():
        if link := re.search(r"\((?:\S*/)?(\w+)\.case\)", line):
            system = link[1]
        cells = cells_of(line)
        if len(cells) == 3 and has_case(cells):
            name = f"{system}: {unescape(cells[0]).rstrip('.')}"
            found[name] = [unescape(text) for text in re.findall(r"`(.*?)`", cells[1])]
    return found


def cells_of(line: str) -> list[str]:
    """Return the cells of a line, if it is of a table."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def has_case(cells: list[str]) -> bool:
    """Return whether a row is shown by a case, and not by a test that it names."""
    return cells[1].startswith("`") and not cells[2].startswith("`tests/")


def written(text: str) -> list[str]:
    """Return the statements of a case as they are written, each in one line."""
    found = re.findall(r"^query \S+\n((?:    .*\n)+)", text.partition("----")[0], re.MULTILINE)
    return [" ".join(statement.split()).replace("|", "\\|") for statement in found]


@pytest.mark.parametrize("name", ALL)
def test_a_feature_of_a_paper_is_right(name: str) -> None:
    check(ALL[name], run_oracle)
    check(ALL[name], run_engine)


def test_every_row_says_what_its_case_runs() -> None:
    assert rows(PAGE) == {name: written(text) for name, text in ALL.items()}


def test_what_no_case_shows_is_shown_by_a_test() -> None:
    every = [cells for line in PAGE.splitlines() if len(cells := cells_of(line)) == 3]
    others = [
        cells
        for cells in every
        if cells[0] not in ("feature", "query", "---") and not has_case(cells)
    ]
    assert others
    for feature, _, shown in others:
        named = re.fullmatch(r"`(tests/\S+?\.py)`", shown)
        assert named is not None, feature
        assert (ROOT / named[1]).is_file(), feature


def test_no_row_is_left_for_later() -> None:
    assert not re.search(r"not yet|to do\b", PAGE, re.IGNORECASE)
