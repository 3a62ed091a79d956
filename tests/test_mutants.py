"""The mutants that are tried on the code are changes of what runs, and each is found again."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from mutants import run
from mutants.mutations import mutants_of
from mutants.rooms import ROOMS

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
    assert Path("tests/joins/test_retention.py") in room.related(path, run.ROOT)
