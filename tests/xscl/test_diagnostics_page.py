"""docs/diagnostics.md has an entry for every code, and its examples do what they say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import xscl
from xscl.codes import CODES
from xscl.diagnostics import Diagnostic
from xscl.files import check_files

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "diagnostics.md").read_text(encoding="utf-8")
ENTRIES = dict(re.findall(r"^## (XS\d+)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL))
WARNINGS = {
    "XS405",
    "XS501",
    "XS502",
    "XS504",
    "XS505",
    "XS506",
    "XS507",
    "XS508",
    "XS509",
    "XS510",
    "XS707",
    "XS800",
    "XS912",
    "XS916",
}
BESIDE = {"XS501", "XS508", "XS509", "XS800"}
"""Warnings that examples of something else may have: that it costs, waits, or does not run yet."""


def example(code: str, kind: str) -> str:
    """Return the wrong or the right text of an entry."""
    found = re.search(rf"```xscl {kind}\n(.*?)\n```", ENTRIES[code], re.DOTALL)
    assert found is not None
    return found[1]


def findings(text: str, directory: Path) -> list[Diagnostic]:
    """Check a text, or the files or values that its comment lines speak of."""
    if text.startswith("-- file"):
        names = []
        for name, content in re.findall(r"-- file (\S+)\n?(.*?)(?=-- file|\Z)", text, re.DOTALL):
            names.append(directory / name)
            names[-1].parent.mkdir(exist_ok=True)
            if content:
                names[-1].write_text(content, encoding="utf-8")
        return check_files(names)[1]
    queries, found = xscl.check(text)
    if text.startswith("-- parameters"):
        [query] = queries
        values = json.loads(text.splitlines()[0].removeprefix("-- parameters"))
        try:
            xscl.assignment(query, values)
        except xscl.XsclError as error:
            return list(error.diagnostics)
    return found


def test_every_code_has_an_entry_with_its_title() -> None:
    assert list(ENTRIES) == sorted(CODES)
    assert all(f"**{title}.**" in ENTRIES[code] for code, title in CODES.items())


def test_every_code_in_the_source_is_listed() -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("xscl/*.py"))
    assert set(re.findall(r'"(XS\d{3})"', source)) == set(CODES)


@pytest.mark.parametrize("code", sorted(CODES))
def test_the_wrong_example_gets_the_code_and_no_other(code: str, tmp_path: Path) -> None:
    found = [
        each
        for each in findings(example(code, "wrong"), tmp_path)
        if each.code == code or each.code not in BESIDE
    ]
    assert {each.code for each in found} == {code}
    assert {each.is_error for each in found} == {code not in WARNINGS}


@pytest.mark.parametrize("code", sorted(CODES))
def test_the_right_example_does_not(code: str, tmp_path: Path) -> None:
    found = findings(example(code, "right"), tmp_path)
    assert code not in {each.code for each in found}
    assert not any(each.is_error for each in found)
