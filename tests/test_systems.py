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
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 3 and cells[1].startswith("`") and not cells[2].startswith("`tests/"):
            name = f"{system}: {unescape(cells[0]).rstrip('.')}"
            found[name] = [unescape(text) for text in re.findall(r"`(.*?)`", cells[1])]
    return found


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
    named = re.findall(r"`(tests/\S+?\.py)`", PAGE)
    assert named
    assert [path for path in named if not (ROOT / path).is_file()] == []
