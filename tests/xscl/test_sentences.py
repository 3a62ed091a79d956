"""Every sentence that the semantics say of the language names its tests, and these exist."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
LINES = (Path(__file__).parent / "sentences.txt").read_text(encoding="utf-8").splitlines()
NAMED = [
    (sentence, name.strip())
    for sentence, names in itertools.pairwise(LINES)
    if names.startswith("  ")
    for name in re.split(r", (?=test_|case )", names.strip())
]
FUNCTIONS = {
    name
    for path in TESTS.rglob("test_*.py")
    for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
}
CASES = [
    line.removeprefix("# ")
    for path in (TESTS / "cases").glob("*.case")
    for line in path.read_text(encoding="utf-8").splitlines()
    if line.startswith("# ")
]


def test_every_sentence_names_a_test() -> None:
    sentences = [line for line in LINES if re.match(r"\d", line)]
    assert len(sentences) > 80
    assert sentences == list(dict.fromkeys(sentence for sentence, _ in NAMED))


@pytest.mark.parametrize("name", sorted({name for _, name in NAMED}))
def test_the_named_tests_exist(name: str) -> None:
    if name.startswith("case "):
        assert any(case.startswith(name.removeprefix("case ")) for case in CASES)
    else:
        assert name in FUNCTIONS
