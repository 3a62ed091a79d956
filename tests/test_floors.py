from __future__ import annotations

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PACKAGES = PROJECT["tool"]["importlinter"]["root_packages"]


def test_imports_only_go_down_and_through_their_doors() -> None:
    command = [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_package_is_shipped_checked_and_typed() -> None:
    present = {p.parent.name for p in ROOT.glob("*/__init__.py")} - {"tests", "benchmarks"}
    shipped = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["only-include"]
    assert present == set(PACKAGES)
    assert present | {"examples"} == set(shipped)
    assert present == set(PROJECT["tool"]["mypy"]["packages"])


@pytest.mark.parametrize("package", PACKAGES)
def test_every_directory_with_modules_is_a_package(package: str) -> None:
    """The build lists top-level packages; what is below them must be importable as it stands."""
    for directory in {path.parent for path in (ROOT / package).rglob("*.py")}:
        assert (directory / "__init__.py").is_file(), f"{directory} has no __init__.py"


def test_what_is_imported_is_declared() -> None:
    """Else it works where a developer happens to have it, and nowhere else."""
    extras = PROJECT["project"]["optional-dependencies"]
    requirements = [*PROJECT["project"]["dependencies"]]
    requirements += [each for name in extras if name != "dev" for each in extras[name]]
    declared = {
        re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")
        for requirement in requirements
    }
    distributions = packages_distributions()
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for name in imported_by(path) - set(PACKAGES) - sys.stdlib_module_names - PROVIDED:
            found = {each.lower().replace("_", "-") for each in distributions.get(name, [name])}
            assert found & declared, f"{path} imports {name}, which pyproject.toml does not name"


PROVIDED = {"markupsafe", "multidict", "py4j", "yarl"}
"""These come with Jinja, aiohttp and PySpark."""


@cache
def statements(path: Path) -> list[ast.Import | ast.ImportFrom | ast.ClassDef]:
    """The imports and the classes of a file, anywhere in it."""
    kinds = (ast.Import, ast.ImportFrom, ast.ClassDef)
    return [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds)]


def imported_by(path: Path) -> set[str]:
    """The top-level names of the modules that a file imports, anywhere in it."""
    names = set()
    for node in statements(path):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names - {"__future__"}


def test_there_is_no_room_for_leftovers() -> None:
    names = {path.stem for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert not names & {"utils", "util", "common", "helpers", "misc"}


ROOMS = [path for package in ("broker", "joins") for path in (ROOT / package).rglob("__init__.py")]
MODULES_MAX = 25
"""More than these do not fit on a screen; `cli` has one for each verb, and `--help` lists them."""


def modules(room: Path) -> set[str]:
    return {path.stem for path in room.glob("*.py")} - {"__init__", "__main__"}


def test_the_broker_has_no_module_outside_its_rooms() -> None:
    assert modules(ROOT / "broker") == set()


@pytest.mark.parametrize("room", [p.parent for p in ROOMS], ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_is_seen_at_a_glance(room: Path) -> None:
    assert room.name == "cli" or len(modules(room)) <= MODULES_MAX
    assert {name for name in modules(room) if room.name in name} == set()


@pytest.mark.parametrize("package", ["joins", "xscl"])
def test_a_package_has_what_its_face_names(package: str) -> None:
    face = importlib.import_module(package)
    assert all(hasattr(face, name) for name in face.__all__)
    assert not hasattr(face, "no_such_name")


def test_joins_has_rooms_and_few_modules_beside_them() -> None:
    assert modules(ROOT / "joins") == {"classes", "engines"}


NAMED_TWICE = {"Match", "MatchDocument", "Message", "Receipt"}
"""A program that talks to a broker has its own values, under the names that people know."""


def test_a_class_name_means_one_class() -> None:
    found: dict[str, list[Path]] = {}
    for path in (path for package in PACKAGES for path in (ROOT / package).rglob("*.py")):
        for node in statements(path):
            if isinstance(node, ast.ClassDef):
                found.setdefault(node.name, []).append(path)
    client = ROOT / "xscl" / "client"
    twice = {name: [*paths] for name, paths in found.items() if len(paths) > 1}
    assert twice.keys() == NAMED_TWICE, {name: twice[name] for name in twice.keys() - NAMED_TWICE}
    assert all(
        {path.is_relative_to(client) for path in twice[name]} == {True, False}
        and len(twice[name]) == 2
        for name in NAMED_TWICE
    )
