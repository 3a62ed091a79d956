"""The mutants that are tried on the code are changes of what runs, and each is found again."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest
from mutants import run, trial
from mutants.mutations import mutants_of
from mutants.reach import Reach
from mutants.rooms import ROOMS
from mutants.trial import Fate, Trial, lines_of_statement

SETTINGS = "[pytest]\nmarkers = spark\ntimeout = 60\naddopts = -p no:schemathesis\n"
"""A plugin that is not asked for costs each start of pytest a second, as in `pyproject.toml`."""

CODE = """
from dataclasses import dataclass

@dataclass(slots=True)
class Span:
    length: int | None = 3

def held(self, ends: list[int], limit: int | None = None) -> int | None:
    self.asked += 1
    if not ends and limit is None:
        self.note(ends)
    return max(ends) - 2
"""


def changes(code: str) -> set[tuple[str, str]]:
    path = Path("held.py")
    return {each.difference(code) for each in mutants_of(path, code) if each.is_code(code)}


def test_constants_operators_calls_and_statements_are_changed() -> None:
    found = {(before, "".join(after.split())) for before, after in changes(CODE)}
    assert {
        ("length: int | None = 3", "length:int|None=4"),
        ("return max(ends) - 2", "returnmin(ends)-2"),
        ("return max(ends) - 2", "returnmax(ends)+2"),
        ("return max(ends) - 2", "returnmax(ends)-1"),
        ("self.asked += 1", "pass"),
        ("self.note(ends)", "pass"),
        ("if not ends and limit is None:", "ifnotendsorlimitisNone:"),
        ("if not ends and limit is None:", "ifnotendsandlimitisnotNone:"),
        ("if not ends and limit is None:", "ifendsandlimitisNone:"),
    } <= found


def test_types_and_decorators_are_left_alone() -> None:
    assert not any("slots" in before or "->" in before for before, _ in changes(CODE))
    assert all("&" not in after for _, after in changes(CODE))


@pytest.mark.parametrize("name", ROOMS)
def test_a_sample_is_drawn_by_its_seed_and_is_code(name: str) -> None:
    room, modules = run.modules_of(name)
    sizes = {path: (run.ROOT / path).stat().st_size for path in modules}
    some = [min((path for path in modules if sizes[path] > 3_000), key=sizes.__getitem__)]
    drawn = run.sample_of(some, 6, "1")
    assert drawn == run.sample_of(some, 6, "1") != run.sample_of(some, 6, "2")
    for mutant in drawn:
        source = (run.ROOT / mutant.path).read_text()
        assert ast.dump(ast.parse(mutant.code(source))) != ast.dump(ast.parse(source))
        related = room.related(mutant.path, run.ROOT)
        assert related
        assert all((run.ROOT / test).is_file() for test in related)


def test_what_is_explained_is_still_a_change_of_the_code() -> None:
    for stem, before, after in run.explained():
        _, [path] = run.modules_of(stem)
        source = (run.ROOT / path).read_text()
        lines = {n for n, line in enumerate(source.splitlines(), 1) if line.strip() in before}
        found = (each for each in mutants_of(path, source) if each.line in lines)
        assert any(each.difference(source) == (before, after) for each in found), before


def test_tests_that_are_called_as_a_module_or_import_it_are_related_to_it() -> None:
    room, [path] = run.modules_of("retention")
    assert Path("tests/joins/test_retention.py") in room.related(path, run.ROOT)
    room, [path] = run.modules_of("durations")
    assert Path("tests/joins/test_window_loops.py") in room.related(path, run.ROOT)


def test_the_lines_of_a_statement_are_all_of_it_and_of_a_block_the_head() -> None:
    source = "if (\n    a\n):\n    b = [\n        1,\n    ]\n    c = 2\n"
    assert [lines_of_statement(source, line) for line in (2, 5, 7)] == [{1, 2, 3}, {4, 5, 6}, {7}]


def test_a_mutant_that_never_ends_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "SECONDS_MIN", 3)
    (tmp_path / "room.py").write_text("def last(n):\n    while n:\n        n -= 1\n    return n\n")
    (tmp_path / "tests").mkdir()
    file = Path("tests/test_room.py")
    (tmp_path / file).write_text("from room import last\n\ndef test_last():\n    last(3)\n")
    shutil.copytree(Path(__file__).with_name("mutants"), tmp_path / "tests/mutants")
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    code = (tmp_path / "room.py").read_text()
    [mutant] = [
        each
        for each in mutants_of(Path("room.py"), code)
        if each.difference(code) == ("n -= 1", "pass")
    ]
    reach = Reach(f"{file}::test_last", 0.0, {"room.py": [3]}, starts_processes=False)
    assert Trial(tmp_path, ["room"], {file: [reach]}).of(mutant, [file]) is Fate.TIMED_OUT


def test_a_mutant_is_tried_by_the_tests_that_run_its_line(tmp_path: Path) -> None:
    code = "def small(n):\n    return n < 3\n\n\ndef large(n):\n    return n > 8\n"
    code += "\n\ndef huge(n):\n    return n > 99\n"
    tests = (
        "from room.held import large, small\n\n"
        "def test_small():\n    assert small(2) and not small(3)\n\n"
        "def test_large():\n    assert large(10)\n"
    )
    module, file = Path("room/held.py"), Path("tests/test_held.py")
    for path, text in ((module, code), (file, tests)):
        (tmp_path / path).parent.mkdir()
        (tmp_path / path).write_text(text)
    shutil.copytree(Path(__file__).with_name("mutants"), tmp_path / "tests/mutants")
    (tmp_path / "pytest.ini").write_text(SETTINGS)
    own = Trial(tmp_path, ["room"])
    fates = {
        each.line: own.of(each, [file])
        for each in mutants_of(module, code)
        if each.operator == "NumberReplacer" and each.occurrence % 2 == 0
    }
    assert fates == {2: Fate.KILLED, 6: Fate.SURVIVED, 10: Fate.SURVIVED}
    assert (tmp_path / module).read_text() == code
    left_out = Path("tests/test_left_out.py")
    (tmp_path / left_out).write_text("from room.held import larger\n")
    numbers = {each.line: each for each in mutants_of(module, code) if "Number" in each.operator}
    assert own.of(numbers[2], [left_out]) is Fate.NOT_TRIED
    assert own.of(numbers[6], [file, left_out]) is Fate.SURVIVED
    assert own.of(numbers[10], [file, left_out]) is Fate.NOT_TRIED
    reached = {each.test.partition("::")[2]: each.lines for each in own.reaches[file]}
    assert reached == {"test_small": {str(module): [2]}, "test_large": {str(module): [6]}}
