"""What verbs share on the terminal: failures with exit codes, rows in three formats, messages."""

from __future__ import annotations

import csv
import io
import json
import logging
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import click

from broker.operations.printable import one_line, printable

__all__ = [
    "EXIT_FAILED",
    "EXIT_NO_BROKER",
    "EXIT_PAUSED",
    "EXIT_SETTINGS",
    "Failure",
    "Seconds",
    "StreamName",
    "Time",
    "clean_warnings",
    "echo",
    "echo_bytes",
    "echo_data",
    "echo_json",
    "emit_rows",
    "format_option",
    "is_coloured",
    "limit_option",
    "message",
    "parameter_option",
    "read_parameters",
    "table_lines",
    "text_or_json",
    "wanted_parameters",
]

EXIT_FAILED = 1
EXIT_NO_BROKER = 3
EXIT_PAUSED = 4
EXIT_SETTINGS = 78

_NUMBER = re.compile(r"\d+(\.\d*)?|\.\d+")

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Failure(click.ClickException):
    """Ends the verb with a message on standard error, what to do about it, and an exit code."""

    def __init__(self, text: str, *, hint: str | None = None, exit_code: int = EXIT_FAILED) -> None:
        super().__init__(text)
        self.hint = hint
        self.code = exit_code

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # click has a class variable here
        """The exit code of the process."""
        return self.code

    def show(self, file: Any = None) -> None:
        """Write the message and the hint.  Diagnostics of queries say themselves what they are."""
        is_finding = self.message.startswith(("error[", "warning["))
        label = "" if is_finding else f"{click.style('error', fg='red', bold=True)}: "
        message(label + self.message)
        if self.hint:
            message(f"  {self.hint}")


class StreamName(click.ParamType[str]):
    """The name of a stream, as documents can be given to it."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name; what is none is an error of usage."""
        from broker.documents.document import DocumentError, check_stream

        try:
            check_stream(value)
        except DocumentError as error:
            self.fail(str(error), param, ctx)
        return value


class Time(click.ParamType[int]):
    """A time in ISO 8601, in microseconds; without an offset it is UTC."""

    name = "time"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the microseconds of a time."""
        from broker.documents.document import parse_time

        try:
            return parse_time(str(value))
        except ValueError:
            self.fail(f"{value!r} is not a time: 2026-03-01T12:00, as it stands in documents")


class Seconds(click.ParamType[float]):
    """A length of time as XSCL writes it, `10 min`, in seconds; a number alone is seconds."""

    name = "time"

    def __init__(self, least: float, most: float) -> None:
        self._least = least
        self._most = most

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the seconds; what is no length of time, or out of bounds, is an error of usage."""
        from xscl.durations import DurationError, read_duration

        text = str(value)
        try:
            seconds = float(text) if _NUMBER.fullmatch(text) else read_duration(text) / 1e6
        except DurationError as error:
            self.fail(f"{error}: a time is seconds, or is written as in `10 min`", param, ctx)
        if not self._least <= seconds <= self._most:
            self.fail(f"{text} is not from {self._least:,} to {self._most:,} seconds", param, ctx)
        return seconds


class _Line(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return one_line(super().format(record))


def clean_warnings() -> None:
    """Clean the warnings of a verb without a log, so that they do not steer the terminal."""
    if logging.lastResort is not None:
        logging.lastResort.setFormatter(_Line())


def message(text: str) -> None:
    """Write a line for the person at the terminal to standard error."""
    click.echo(printable(text, keep_colours=True), err=True, color=is_coloured(sys.stderr))


def echo(text: str = "", *, nl: bool = True) -> None:
    """Write text for a person to standard output, without what would steer a terminal."""
    click.echo(printable(text, keep_colours=True), nl=nl, color=is_coloured(sys.stdout))


def echo_data(text: str, *, nl: bool = True) -> None:
    """Write text for programs to standard output: as it is, unless that is a terminal."""
    if sys.stdout.isatty():
        text = printable(text)
    click.echo(text, nl=nl)


def echo_bytes(data: bytes) -> None:
    """Write a file in UTF-8 to standard output: as it is, unless that is a terminal."""
    if sys.stdout.isatty():
        echo_data(data.decode(), nl=False)
    else:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)


def echo_json(data: Any, *, indent: int | None = 2) -> None:
    """Write data as JSON to standard output."""
    echo_data(json.dumps(data, ensure_ascii=False, indent=indent))


def is_coloured(stream: Any) -> bool:
    """Return whether colour may go to `stream`: a terminal, and NO_COLOR is not set."""
    return not os.environ.get("NO_COLOR") and stream.isatty()


def format_option(command: _Command) -> _Command:
    """Add `--format table|json|csv` to a verb that prints rows."""
    option = click.option(
        "--format",
        "output",
        type=click.Choice(["table", "json", "csv"]),
        default="table",
        show_default=True,
        help="How to print the rows.",
    )
    return option(command)


def text_or_json(help_text: str = "How to print it.") -> Callable[[_Command], _Command]:
    """Add `--format text|json` to a verb that prints one thing."""
    return click.option(
        "--format",
        "output",
        type=click.Choice(["text", "json"]),
        default="text",
        show_default=True,
        help=help_text,
    )


def parameter_option(
    help_text: str = "The value of one of the query's parameters",
) -> Callable[[_Command], _Command]:
    """Add `-p NAME=VALUE`, once for each parameter: the one way to give them on a command line."""
    return click.option(
        "--parameter",
        "-p",
        "given",
        multiple=True,
        metavar="NAME=VALUE",
        help=f"{help_text}; a number where it reads as one, unless it has quotes of its own.",
    )


def read_parameters(given: Sequence[str]) -> dict[str, str | float]:
    """Return what `-p` options give; end the verb where one is not NAME=VALUE."""
    from broker.registry.parameters import parameter

    try:
        return dict(map(parameter, given))
    except ValueError as error:
        raise Failure(str(error), exit_code=2) from error


def wanted_parameters(names: Iterable[str]) -> str:
    """Return the `-p` options that give parameters of these names, with values left out."""
    return " ".join(f"-p {name}=..." for name in names)


def limit_option(command: _Command) -> _Command:
    """Add `--limit` to a verb that lists what is newest."""
    option = click.option(
        "--limit",
        "-n",
        type=click.IntRange(1),
        default=50,
        show_default=True,
        help="How many at most, the newest.",
    )
    return option(command)


def emit_rows(rows: Iterable[Mapping[str, Any]], columns: Sequence[str], output: str) -> None:
    """Print rows to standard output: `columns` of them as a table or CSV, everything as JSON."""
    if output == "json":
        echo_json([dict(row) for row in rows])
    elif output == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([_cell(row.get(column)) for column in columns] for row in rows)
        echo_data(text.getvalue(), nl=False)
    else:
        head, *rest = table_lines(rows, columns)
        echo(click.style(head, bold=True))
        for line in rest:
            echo(line)


def table_lines(rows: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
    """Return a table as lines: the names of its columns, then its rows."""
    lines = [list(columns), *([_cell(row.get(column)) for column in columns] for row in rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(columns))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (dict, list)):
        return json.dumps(value, ensure_ascii=False) if value else ""
    if isinstance(value, float):
        value = round(value, 4)
    return " ".join(str(value).split())
