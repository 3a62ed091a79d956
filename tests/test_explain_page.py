"""docs/explain.md shows what the commands print.

`$ cat FILE` in a console block says what a file holds, `$ xscl ...` what a command prints.
`XSCL_UPDATE_GOLDEN=1` in the environment writes what is printed into the page.
"""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest
from support.goldens import run

from broker.whynot import reason

PAGE = Path(__file__).parent.parent / "docs" / "explain.md"
BLOCK = re.compile(r"(?<=```console\n)\$ (.*)\n((?:(?!```).*\n)*)")
BLOCKS = [(found[1], found[2]) for found in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))]
COMMANDS = [command for command, _ in BLOCKS if command.startswith("xscl ")]


def printed(command: str, directory: Path) -> str:
    for shown, content in BLOCKS:
        if shown.startswith("cat "):
            path = directory / shown.removeprefix("cat ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
    return run(shlex.split(command)[1:], directory)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_page_shows_what_a_command_prints(command: str, tmp_path: Path) -> None:
    output = printed(command, tmp_path)
    if os.environ.get("XSCL_UPDATE_GOLDEN") == "1":
        page = PAGE.read_text(encoding="utf-8")
        start = page.index(f"```console\n$ {command}\n") + len(f"```console\n$ {command}\n")
        PAGE.write_text(page[:start] + output + page[page.index("```", start) :], encoding="utf-8")
        return
    assert output == dict(BLOCKS)[command]


def test_the_page_names_every_kind_of_reason() -> None:
    kinds = set(re.findall(r"`([a-z ]+)`", reason.Reason.__doc__ or ""))
    text = PAGE.read_text(encoding="utf-8").partition("## Why not")[2]
    missing = {kind for kind in kinds - {"hint", "facts", "progress"} if f"`{kind}`" not in text}
    assert not missing
