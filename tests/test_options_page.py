"""docs/options.md has every verb with its options and exit codes, as the verbs' own help says it.

`XSCL_UPDATE_GOLDEN=1` writes the page; review the difference before you keep it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from broker.cli import main
from broker.cli.group import VERBS

PAGE = Path(__file__).parent.parent / "docs" / "options.md"

_HEAD = """\
# Verbs and their options

What `xscl VERB --help` says, on one page. What the verbs are for is in [commands](commands.md),
with the exit codes. Options of `xscl` itself stand before the verb.
"""


def page() -> str:
    context = click.Context(main, info_name="xscl")
    parts = [_HEAD, *_section("xscl", main, context)]
    for verbs in VERBS.values():
        for verb in verbs:
            command = main.get_command(context, verb.name)
            assert command is not None
            parts += _commands(f"xscl {verb.name}", command)
    return "\n".join(parts)


def _commands(name: str, command: click.Command) -> Iterator[str]:
    yield from _section(name, command, click.Context(command, info_name=name))
    if isinstance(command, click.Group):
        for child, inner in command.commands.items():
            yield from _commands(f"{name} {child}", inner)


def _section(name: str, command: click.Command, context: click.Context) -> Iterator[str]:
    yield f"## {name}\n"
    yield f"{(command.help or '').split(chr(10) * 2)[0].replace(chr(10), ' ')}\n"
    pieces = " ".join(command.collect_usage_pieces(context))
    yield f"`{name} {pieces}`\n"
    records = [
        record
        for option in command.params
        if isinstance(option, click.Option) and (record := option.get_help_record(context))
    ]
    if records:
        yield "| option | meaning |\n|---|---|"
        yield from (f"| `{_cell(option)}` | {_cell(meaning)} |" for option, meaning in records)
        yield ""


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")


def test_the_page_has_every_verb_and_every_option() -> None:
    made = page()
    if os.environ.get("XSCL_UPDATE_GOLDEN") == "1":
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "XSCL_UPDATE_GOLDEN=1 writes it"
