"""What a broker says while it runs: fields for programs, and no secret for anybody."""

from __future__ import annotations

import json
import logging
import sys

import pytest

from broker.operations.log import JsonLines, TextLines, write_log
from broker.settings.config import LogSettings

TOKEN = "xscl_0123456789ab_" + "S" * 43


def record(message: str, *arguments: object, **fields: object) -> logging.LogRecord:
    made = logging.LogRecord("broker.x", logging.WARNING, "x.py", 1, message, arguments, None)
    made.__dict__.update(fields)
    return made


def test_a_json_line_has_the_fields_of_its_record() -> None:
    line = json.loads(JsonLines().format(record("document %d", 7, docid=7, stage="evaluation")))
    assert line.pop("time").endswith("Z")
    assert line == {
        "level": "warning",
        "logger": "broker.x",
        "message": "document 7",
        "stage": "evaluation",
        "docid": 7,
    }


def test_an_error_stays_on_one_json_line() -> None:
    made = record("it failed")
    try:
        raise ValueError("two\nlines")
    except ValueError:
        made.exc_info = sys.exc_info()
    text = JsonLines().format(made)
    assert "\n" not in text
    assert "ValueError: two\nlines" in json.loads(text)["error"]
    assert "\n  ValueError: two\n  lines" in TextLines().format(made)


FORGED = "\x1b]0;pwned\x07\n2026-01-01 fake log line\r\x9b2J\u202egnol"


@pytest.mark.parametrize("lines", [TextLines(), JsonLines()])
@pytest.mark.parametrize("name", ["message", "query", "error"])
def test_what_others_say_is_on_one_line_and_steers_nothing(
    lines: logging.Formatter, name: str
) -> None:
    made = record("the endpoint said %s", FORGED if name == "message" else "no")
    if name == "query":
        made.query = FORGED
    if name == "error":
        try:
            raise ValueError(FORGED)
        except ValueError:
            made.exc_info = sys.exc_info()
    text = lines.format(made)
    assert not any(line.startswith("2026-01-01 fake") for line in text.splitlines())
    assert all(each.isprintable() or each in "\n\t" for each in text)
    assert "\\u001b]0;pwned\\u0007" in text
    if isinstance(lines, JsonLines):
        assert FORGED in json.loads(text)[name]
    elif name != "error":
        assert len(text.splitlines()) == 1


def test_a_text_line_ends_with_its_fields() -> None:
    text = TextLines().format(record("paused", query="q", segment=3))
    assert text.split("Z ", 1)[1] == "warning broker.x: paused query=q segment=3"


@pytest.mark.parametrize(
    ("secret", "said"),
    [
        (TOKEN, f"token {TOKEN} was used"),
        ("whsec_aGVsbG8=", "key whsec_aGVsbG8= was used"),
        ("hunter2", "https://ann:hunter2@example.org/feed failed"),
        ("abcdef0123456789", "Authorization: Bearer abcdef0123456789"),
        ("hunter2", "https://example.org/feed?token=hunter2&page=2 failed"),
    ],
)
@pytest.mark.parametrize("lines", [TextLines(), JsonLines()])
def test_no_secret_is_in_a_line(lines: logging.Formatter, secret: str, said: str) -> None:
    line = lines.format(record("%s", said, url=said))
    assert secret not in line
    assert "***" in line


def test_the_level_is_for_our_own_lines_only(
    capsys: pytest.CaptureFixture[str],
) -> None:
    handlers, level = logging.root.handlers[:], logging.root.level
    try:
        write_log(LogSettings(format="json", level="info"))
        for name in ("broker.x", "feeds.x", "py4j.x"):
            logging.getLogger(name).info("hello")
            logging.getLogger(name).debug("hello")
    finally:
        logging.root.handlers[:] = handlers
        logging.root.setLevel(level)
        for name in ("broker", "feeds", "joins", "templates", "xpath_eval", "xscl"):
            logging.getLogger(name).setLevel(logging.NOTSET)
    loggers = [json.loads(line)["logger"] for line in capsys.readouterr().err.splitlines()]
    assert loggers == ["broker.x", "feeds.x"]
