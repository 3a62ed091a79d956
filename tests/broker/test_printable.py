"""Nothing that others have written steers the terminal of who looks at it."""

from __future__ import annotations

import json
import logging
import re
import sys
import unicodedata
from pathlib import Path

import pytest
from click.testing import CliRunner

from broker.cli import main, terminal
from broker.cli.terminal import echo, echo_bytes, echo_data, message
from broker.operations.printable import one_line, printable

STEERING = "\x1b]0;pwned\x07\x1b[2J\x9b2J\r\x08\x7f\u202egnol\u2066\u200f\u2028\x1b[8mhidden"


def steers(text: str) -> list[str]:
    """Return the characters of a text that a terminal would heed, and none may come from others."""
    return [
        each
        for each in text
        if each not in "\n\t"
        and (
            unicodedata.category(each) in ("Cc", "Cs", "Zl", "Zp")
            or unicodedata.bidirectional(each)
            in ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
            or each in "\u200e\u200f\u061c"
        )
    ]


def test_every_character_that_steers_is_shown_as_json_escapes_it() -> None:
    for each in filter(steers, map(chr, range(0x110000))):
        assert json.loads(f'"{printable(each)}"') == each
        assert steers(one_line(f"a{each}b")) == []


def test_other_characters_stay() -> None:
    text = "žluťoučký 日本語 עברית العربية 👩‍💻 a\tb\nc"
    assert printable(text) == text


def test_colours_stay_where_a_verb_may_have_given_them() -> None:
    text = "\x1b[31m\x1b[1merror\x1b[0m"
    assert printable(text, keep_colours=True) == text
    assert steers(printable("\x1b[8m\x1b[30m\x1b[2J", keep_colours=True)) == []


def test_text_is_cleaned_wherever_it_goes(capsys: pytest.CaptureFixture[str]) -> None:
    echo(f"a title: {STEERING}")
    message(f"refused: {STEERING}")
    shown = capsys.readouterr()
    assert steers(shown.out) == steers(shown.err) == []
    assert "\\u001b]0;pwned\\u0007" in shown.out


@pytest.mark.parametrize("is_terminal", [False, True])
def test_data_is_cleaned_on_a_terminal_only(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    echo_data(json.dumps(STEERING, ensure_ascii=False))
    shown = capsys.readouterr().out
    assert json.loads(shown) == STEERING
    assert (steers(shown) == []) == is_terminal


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_file_is_cleaned_on_a_terminal_only(
    capsysbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    echo_bytes(STEERING.encode())
    shown = capsysbinary.readouterr().out.decode()
    assert (shown == STEERING) != is_terminal
    assert (steers(shown) == []) == is_terminal


def test_rows_and_what_fails_are_cleaned() -> None:
    result = CliRunner().invoke(main, ["--broker", f"http://{STEERING}/", "list"])
    assert result.exit_code != 0
    assert steers(result.output) == []


def test_no_verb_writes_past_the_one_place() -> None:
    verbs = [
        path for path in Path(terminal.__file__).parent.glob("*.py") if path.stem != "terminal"
    ]
    assert len(verbs) > 20
    for path in verbs:
        past = r"click\.s?echo\(|(?<![\w.])print\(|stdout\.(buffer\.)?write\("
        assert not re.search(past, path.read_text("utf-8")), path.name


def test_a_warning_of_a_library_is_cleaned(capfd: pytest.CaptureFixture[str]) -> None:
    terminal.clean_warnings()
    logger = logging.getLogger("someone else")
    before, logger.propagate = logger.propagate, False
    try:
        logger.warning("%s", STEERING)
    finally:
        logger.propagate = before
    shown = capfd.readouterr().err
    assert "pwned" in shown
    assert steers(shown) == []
