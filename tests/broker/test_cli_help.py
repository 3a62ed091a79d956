from __future__ import annotations

import resource
import subprocess
import sys
from itertools import chain
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from broker.cli import main
from broker.cli.group import VERBS, Verb

ALL_VERBS = list(chain.from_iterable(VERBS.values()))


def command(verb: Verb) -> click.Command:
    found = main.get_command(click.Context(main), verb.name)
    assert found is not None
    return found


def commands_below(name: str, found: click.Command) -> list[tuple[str, click.Command]]:
    """A verb and, where it is a group, the verbs below it."""
    below = [(name, found)]
    if isinstance(found, click.Group):
        for child, inner in found.commands.items():
            below += commands_below(f"{name} {child}", inner)
    return below


def processor_time_of_children() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


@pytest.mark.parametrize("verb", ALL_VERBS, ids=lambda verb: verb.name)
def test_every_verb_has_help_with_an_example(verb: Verb) -> None:
    for name, found in commands_below(verb.name, command(verb)):
        assert found.help, f"xscl {name} has no help"
        example = next((line for line in found.help.splitlines() if "xscl " in line), None)
        assert "Example" in found.help, f"the help of xscl {name} has no example"
        assert example is not None, f"the help of xscl {name} shows no xscl command"


@pytest.mark.parametrize("verb", ALL_VERBS, ids=lambda verb: verb.name)
def test_every_option_says_what_it_is_for(verb: Verb) -> None:
    for name, found in commands_below(verb.name, command(verb)):
        for option in found.params:
            if isinstance(option, click.Option) and not option.hidden:
                assert option.help, f"xscl {name} {option.opts[0]} has no help"


def test_help_lists_every_verb_in_a_fifth_of_a_second() -> None:
    times = []
    for _ in range(3):
        start = processor_time_of_children()
        done = subprocess.run(
            [sys.executable, "-m", "broker.cli", "--help"],
            capture_output=True,
            text=True,
            check=True,
        )
        times.append(processor_time_of_children() - start)
        assert all(f"  {verb.name} " in done.stdout for verb in ALL_VERBS)
    # Processor time, because the machine that runs this test does other things too.
    assert min(times) < 0.2


def test_listing_verbs_imports_none_of_them() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from broker.cli import main;"
        "CliRunner().invoke(main, ['--help']);"
        "print([m for m in sys.modules if m.startswith(('xscl', 'feeds', 'aiohttp', 'lxml'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("code", "absent"),
    [
        ("import broker.cli.connection", ("aiohttp", "lxml", "pyarrow", "xscl.query")),
        ("import broker.testing.casefile", ("aiohttp", "feeds")),
        ("import broker.demo.screen", ("aiohttp", "aiosmtpd")),
        (
            "from broker.cli.doctor import examine; from broker.settings.config import Settings;"
            "list(examine(Settings(), is_offline=True))",
            ("aiohttp", "feeds"),
        ),
    ],
)
def test_what_a_verb_does_without_is_not_imported(
    tmp_path: Path, code: str, absent: tuple[str, ...]
) -> None:
    code += f"; import sys; print([m for m in {absent!r} if m in sys.modules])"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_an_unknown_verb_is_a_wrong_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "broker.cli", "dance"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "No such command 'dance'" in done.stderr


def test_a_verb_that_is_misspelt_is_answered_with_the_nearest() -> None:
    result = CliRunner().invoke(main, ["regsiter", "q.xscl"])
    assert result.exit_code == 2
    assert "No such command 'regsiter'; did you mean `register`?" in result.stderr
