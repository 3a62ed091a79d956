from __future__ import annotations

import subprocess
import sys
import tomllib
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


def test_there_is_no_room_for_leftovers() -> None:
    names = {path.stem for package in PACKAGES for path in (ROOT / package).rglob("*.py")}
    assert not names & {"utils", "util", "common", "helpers", "misc"}
