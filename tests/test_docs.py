from __future__ import annotations

import dataclasses
import re
import types
import typing
from itertools import chain
from pathlib import Path

import pytest

from broker.api import feeds
from broker.api.http import DELIVERY_MODULES, MODULES
from broker.cli import main
from broker.cli.group import VERBS
from broker.cli.terminal import EXIT_FAILED, EXIT_NO_BROKER, EXIT_PAUSED, EXIT_SETTINGS
from broker.settings.config import Settings

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md"))]


def setting_names(kind: type = Settings, prefix: str = "") -> set[str]:
    names = set()
    for name, hint in typing.get_type_hints(kind).items():
        is_array = typing.get_origin(hint) is tuple
        inner = typing.get_args(hint)[0] if is_array or isinstance(hint, types.UnionType) else hint
        if dataclasses.is_dataclass(inner):
            names |= setting_names(inner, f"{prefix}{name}[]." if is_array else f"{prefix}{name}.")
        else:
            names.add(prefix + name)
    return names


def test_every_setting_is_documented_and_no_other() -> None:
    table = re.findall(r"^\| `([^`]+)`", (DOCS / "settings.md").read_text(), re.MULTILINE)
    assert set(table) == setting_names()


def test_every_verb_is_documented_and_no_other() -> None:
    text = (DOCS / "commands.md").read_text()
    table = {
        name
        for row in re.findall(r"^\| (`xscl .*?) \|", text, re.MULTILINE)
        for name in re.findall(r"`xscl ([a-z-]+)", row)
    }
    assert table == {verb.name for verb in chain.from_iterable(VERBS.values())}


def test_every_exit_code_is_documented() -> None:
    codes = {0, EXIT_FAILED, 2, EXIT_NO_BROKER, EXIT_PAUSED, EXIT_SETTINGS}
    table = re.findall(r"^\| (\d+) \|", (DOCS / "commands.md").read_text(), re.MULTILINE)
    told = re.findall(r"^ *(\d+) +\w", main.help or "", re.MULTILINE)
    assert set(map(int, table)) == set(map(int, told)) == codes


def test_the_readme_says_what_its_commands_take() -> None:
    text = " ".join((ROOT / "README.md").read_text().split())
    commands = text[text.index("make test") :].partition("## Your own broker")[0]
    for needed in ("Python 3.11 or newer", "on Windows: in WSL", "Chromium", "minutes"):
        assert needed in commands


def test_the_readme_shows_queries_as_their_files_have_them() -> None:
    text = (ROOT / "README.md").read_text()
    shown = re.findall(r"\[[\w-]+\.xscl\]\((.+?)\)\):\n\n```\n(.+?)```", text, re.DOTALL)
    assert len(shown) == 2
    for path, query in shown:
        assert (ROOT / path).read_text().endswith(f":)\n{query}"), path


def test_every_resource_of_the_api_is_documented() -> None:
    documented = re.findall(r"^\| `([A-Z]+ /[^?`]*)", (DOCS / "api.md").read_text(), re.MULTILINE)
    routes = chain.from_iterable(module.ROUTES for module in (*MODULES, feeds, *DELIVERY_MODULES))
    served = {f"{route.method} {re.sub(r':[^/]*}', '}', route.path)}" for route in routes}
    assert served == set(documented)


def test_the_tests_that_show_a_promise_are_there() -> None:
    text = (DOCS / "guarantees.md").read_text()
    named = re.findall(r"`((?:[a-z_]+/)*test_\w+\.py)`", text)
    assert len(named) > 20
    present = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    assert {name.rpartition("/")[2] for name in named} <= present


def test_every_page_is_found_from_the_index() -> None:
    index = (DOCS / "index.md").read_text()
    for page in sorted(DOCS.glob("*.md")):
        assert page.name == "index.md" or f"({page.name})" in index, f"{page.name} is not listed"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
