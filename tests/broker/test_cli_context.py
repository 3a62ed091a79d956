"""Named brokers, and which broker a verb talks to."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
from support.verbs import xscl

from broker.cli.contexts import contexts_file

SECRET = "xscl_prod_secret"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "xscl.toml").write_text("[http]\nport = 1\n")
    (tmp_path / "token").write_text(SECRET + "\n")
    return tmp_path


def add(name: str, port: int, *options: str) -> None:
    result = xscl("context", "add", name, "--url", f"http://127.0.0.1:{port}", *options)
    assert result.exit_code == 0, result.output


def asked(*arguments: str, **environment: str) -> str:
    """The broker that `list` asks; none of them answers."""
    result = xscl(*arguments, "list", **environment)
    assert result.exit_code == 3, result.output
    return result.stderr.split(" (")[0].removeprefix("error: no broker answers at ")


def test_options_stand_before_the_environment_the_context_and_the_settings() -> None:
    add("two", 2)
    add("three", 3)
    assert asked() == "http://127.0.0.1:1"
    xscl("context", "use", "two")
    assert asked() == "http://127.0.0.1:2"
    assert asked(XSCL_CONFIG="xscl.toml") == "http://127.0.0.1:1"
    assert asked(XSCL_CONTEXT="three") == "http://127.0.0.1:3"
    assert asked(XSCL_CONTEXT="three", XSCL_BROKER="http://127.0.0.1:4") == "http://127.0.0.1:4"
    assert asked("--context", "two", XSCL_BROKER="http://127.0.0.1:4") == "http://127.0.0.1:2"
    assert asked("--broker", "http://127.0.0.1:5", XSCL_CONTEXT="two") == "http://127.0.0.1:5"
    assert asked("--config", "xscl.toml", XSCL_CONTEXT="two") == "http://127.0.0.1:1"
    xscl("context", "use")
    assert asked() == "http://127.0.0.1:1"


def test_which_broker_and_why_is_told() -> None:
    add("prod", 2, "--token-file", "token")
    shown = xscl("--context", "prod", "context", "show").stdout
    assert "broker  http://127.0.0.1:2" in shown
    assert "because the context prod (--context)" in shown
    assert "xscl.toml" in xscl("context", "show").stdout


def test_one_command_line_names_one_broker() -> None:
    add("two", 2)
    result = xscl("--context", "two", "--broker", "http://127.0.0.1:3", "list")
    assert (result.exit_code, result.stderr) == (2, "error: --broker or --context, not both\n")


def test_the_file_is_its_owners_and_no_token_is_kept_or_shown(home: Path) -> None:
    add("prod", 2, "--token-file", "token")
    add("staging", 3, "--token-env", "STAGING")
    assert stat.S_IMODE(contexts_file().stat().st_mode) == 0o600
    printed = contexts_file().read_text()
    for verb in (["list"], ["list", "--format", "json"], ["show", "prod"], ["show"]):
        printed += xscl("context", *verb, STAGING=SECRET, XSCL_CONTEXT="staging").output
    assert str(home / "token") in printed
    assert "$STAGING" in printed
    assert SECRET not in printed


def test_a_token_that_is_not_there_is_named_by_its_place(home: Path) -> None:
    add("prod", 2, "--token-file", "nowhere")
    add("staging", 3, "--token-env", "STAGING")
    result = xscl("--context", "prod", "list")
    assert result.exit_code == 78
    assert str(home / "nowhere") in result.stderr
    result = xscl("--context", "staging", "list")
    assert result.exit_code == 78
    assert "STAGING is not set" in result.stderr
    assert asked("--context", "staging", "--token", "other") == "http://127.0.0.1:3"


def test_an_unknown_context_is_answered_with_the_nearest() -> None:
    add("production", 2)
    result = xscl("--context", "prodution", "list")
    assert result.exit_code == 78
    assert "did you mean `production`?" in result.stderr


def test_a_context_that_is_removed_is_not_in_use_any_more() -> None:
    add("two", 2)
    xscl("context", "use", "two")
    assert xscl("context", "remove", "two").exit_code == 0
    assert asked() == "http://127.0.0.1:1"
    assert json.loads(xscl("context", "list", "--format", "json").stdout) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["add", "a b", "--url", "http://x"],
        ["add", "x", "--url", "localhost:8420"],
        ["add", "x", "--url", "http://x", "--token-env", "A", "--token-file", "b"],
    ],
)
def test_what_is_no_context_is_a_wrong_command_line(arguments: list[str]) -> None:
    assert xscl("context", *arguments).exit_code == 2
    assert not contexts_file().exists()


def test_a_name_is_given_once() -> None:
    add("two", 2)
    result = xscl("context", "add", "two", "--url", "http://127.0.0.1:3")
    assert result.exit_code == 1
    assert "xscl context remove two" in result.stderr
    assert asked("--context", "two") == "http://127.0.0.1:2"


def test_a_broken_file_of_contexts_is_named() -> None:
    contexts_file().parent.mkdir(parents=True)
    contexts_file().write_text("{")
    result = xscl("list")
    assert result.exit_code == 78
    assert str(contexts_file()) in result.stderr


def test_feeds_of_a_broker_elsewhere_are_not_taken_for_those_here(home: Path) -> None:
    add("prod", 2)
    result = xscl("--context", "prod", "feeds", "list")
    assert result.exit_code == 3
    assert "no broker answers at http://127.0.0.1:2" in result.stderr
    assert "the context prod (--context) names this address" in result.stderr
    assert xscl("feeds", "list").exit_code == 0
