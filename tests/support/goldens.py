"""Golden files: what a command prints, kept as text beside what it was given.

A golden file has `#` comments, the command's arguments, files that it reads, a line, and what it
prints:

    # The first comment line names it.
    $ xscl explain queries --query Q1
    file queries/Q1.xscl
        S//book->x1

    ----
    Q1
      S//book->x1

`XSCL_UPDATE_GOLDEN=1` in the environment writes what is printed into the file; review the
difference before you keep it.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

from click.testing import CliRunner

from broker.cli import main

__all__ = ["GOLDEN", "check_golden", "golden_files", "golden_ids", "run"]

GOLDEN = Path(__file__).parents[1] / "golden"

_LINE = "\n----\n"


def golden_files(room: str) -> list[Path]:
    """Return the golden files of a room, sorted."""
    found = sorted((GOLDEN / room).glob("*.txt"))
    assert found, f"no golden files in {GOLDEN / room}"
    return found


def golden_ids(path: Path) -> str:
    """Return what a golden file is called in a test's name."""
    return path.stem


def check_golden(path: Path, directory: Path) -> None:
    """Run the command of a golden file in a directory, and compare what it prints."""
    given, _, expected = path.read_text(encoding="utf-8").partition(_LINE)
    (command,) = re.findall(r"^\$ xscl (.*)$", given, re.MULTILINE)
    write_files(given, directory)
    printed = run(shlex.split(command), directory)
    if os.environ.get("XSCL_UPDATE_GOLDEN") == "1":
        path.write_text(f"{given.rstrip()}\n{_LINE}{printed}", encoding="utf-8")
        return
    assert printed == expected, "if this is meant: XSCL_UPDATE_GOLDEN=1 make test, and review"


def write_files(given: str, directory: Path) -> None:
    """Write the files that a golden file describes below a directory."""
    for name, body in re.findall(r"^file (\S+)\n((?:(?:[ \t].*)?\n)*)", given + "\n", re.MULTILINE):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(re.sub(r"^ {4}", "", body, flags=re.MULTILINE).strip() + "\n")


def run(arguments: list[str], directory: Path) -> str:
    """Return all that `xscl` prints in a directory, and its exit code where that is not 0."""
    before = Path.cwd()
    os.chdir(directory)
    try:
        result = CliRunner().invoke(main, arguments)
    finally:
        os.chdir(before)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output if result.exit_code == 0 else f"{result.output}exit {result.exit_code}\n"
