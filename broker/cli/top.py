"""`xscl top`: what a running broker does, now."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import click

from broker.cli.connection import BrokerConnection, connect
from broker.cli.terminal import (
    EXIT_NO_BROKER,
    Failure,
    Seconds,
    echo,
    echo_json,
    emit_rows,
    format_option,
    table_lines,
)
from broker.documents.late import spell_late, spell_settled
from broker.operations.printable import printable

__all__ = ["TopReading", "render", "top"]

_COLUMNS = ["id", "state", "matches", "matches_per_second", "subscriptions", "reason"]
_ROWS_WITHOUT_TERMINAL = 20
_FEEDS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class TopReading:
    """What a broker says at one moment; `at_s` is that of a monotonic clock."""

    at_s: float
    statistics: Mapping[str, Any]
    queries: list[dict[str, Any]]
    feeds: list[dict[str, Any]]

    def figure(self, name: str) -> float | None:
        """Return one of the figures of `/metrics`, None where there is none of that name."""
        found = self.statistics["figures"].get(name)
        return None if found is None else float(found)

    def since(self, before: TopReading | None) -> list[dict[str, Any]]:
        """Return the queries with their matches a second since then, those with most first."""
        earlier = {row["id"]: row["matches"] for row in before.queries} if before else {}
        seconds = self.at_s - before.at_s if before else 0.0
        rows = [
            {**row, "matches_per_second": _rate(row["matches"], earlier.get(row["id"]), seconds)}
            for row in self.queries
        ]
        return sorted(rows, key=_most_first)


def _most_first(row: Mapping[str, Any]) -> tuple[float, int, str]:
    return -(row["matches_per_second"] or 0.0), -row["matches"], row["id"]


def _rate(now: float, before: float | None, seconds: float) -> float | None:
    """Return a number a second; None where it is not known, as after a restart."""
    if before is None or seconds <= 0 or now < before:
        return None
    return round((now - before) / seconds, 2)


@click.command()
@click.option("--once", is_flag=True, help="Print it once, instead of showing it until Ctrl-C.")
@click.option(
    "--interval",
    type=Seconds(0.2, 3600),
    default="2 s",
    show_default=True,
    help="How long between two looks.",
)
@format_option
@click.pass_context
def top(context: click.Context, once: bool, interval: float, output: str) -> None:
    """Show what a running broker does: its load, its queries, and what is not well.

    Documents and matches a second, documents that wait, the queries by their matches, paused
    ones with the reason, feeds that fail, deliveries that are due.  On a terminal it is shown
    anew every two seconds, until Ctrl-C.  Rates of single queries need two looks; --once has
    none.  As CSV there are the queries alone.

    \b
    Examples:
      xscl top
      xscl top --once --format json
    """
    connection = connect(context)
    if once or output != "table" or not sys.stdout.isatty():
        _print(read(connection), output, connection.url)
        return
    _follow(connection, interval)


def read(connection: BrokerConnection) -> TopReading:
    """Ask a broker how it is."""
    return TopReading(
        time.monotonic(),
        connection.get("statistics"),
        connection.get("queries")["queries"],
        connection.get("feeds")["feeds"],
    )


def _print(reading: TopReading, output: str, url: str) -> None:
    if output == "json":
        failing = list(_failing(reading))
        data = {**reading.statistics, "by_query": reading.since(None), "failing_feeds": failing}
        echo_json(data)
    elif output == "csv":
        emit_rows(reading.since(None), _COLUMNS, "csv")
    else:
        for line in render(reading, None, url, _ROWS_WITHOUT_TERMINAL):
            echo(line)


def _follow(connection: BrokerConnection, interval: float) -> None:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    console = Console()
    before: TopReading | None = None
    with Live(console=console, screen=True, auto_refresh=False) as live:
        try:
            while True:
                before, lines = _look(connection, before, max(3, console.size.height - 12))
                shown = printable("\n".join(lines))
                live.update(Text(shown, no_wrap=True, overflow="ellipsis"), refresh=True)
                time.sleep(interval)
        except KeyboardInterrupt:
            return


def _look(
    connection: BrokerConnection, before: TopReading | None, rows: int
) -> tuple[TopReading | None, list[str]]:
    """Return how a broker is, and what is shown of it; one that is away may come back."""
    try:
        reading = read(connection)
    except Failure as failure:
        if failure.code != EXIT_NO_BROKER:
            raise
        return None, [f"{failure.message}; trying again"]
    return reading, list(render(reading, before, connection.url, rows))


def render(reading: TopReading, before: TopReading | None, url: str, rows: int) -> Iterator[str]:
    """Yield the lines of the view: the whole broker, at most `rows` queries, feeds that fail."""
    statistics = reading.statistics
    state = "ready" if statistics["is_ready"] else f"not ready: {statistics['reason']}"
    yield f"{url}  {state}, up {_length(reading.figure('uptime_seconds') or 0)}"
    for name, said in _summary(reading, before):
        yield f"{name:<11} {said}"
    yield ""
    queries = reading.since(before)
    columns = [each for each in _COLUMNS if any(row.get(each) is not None for row in queries)]
    yield from table_lines(queries[:rows], columns or _COLUMNS[:3])
    if len(queries) > rows:
        yield f"and {len(queries) - rows:,} more"
    failing = list(_failing(reading))
    if failing:
        yield ""
        yield "feeds that fail"
    for row in failing[:_FEEDS_SHOWN]:
        yield f"  {row['url']}  {row['error']}"
    if len(failing) > _FEEDS_SHOWN:
        yield f"  and {len(failing) - _FEEDS_SHOWN} more: `xscl feeds list --failing`"


def _summary(reading: TopReading, before: TopReading | None) -> Iterator[tuple[str, str]]:
    statistics = reading.statistics
    yield (
        "documents",
        ", ".join(
            [
                f"{statistics['documents']:,} kept",
                f"{_pace(reading, before, 'documents_evaluated_total')} evaluated a second",
                f"{statistics['documents_per_second']:.2f} arrived a second (5 min)",
                f"{reading.figure('documents_waiting') or 0:,.0f} waiting",
                f"{reading.figure('dead_letters_total') or 0:,.0f} dead letters",
            ]
        ),
    )
    if statistics.get("late"):
        yield "late", spell_late(statistics["late"], "documents")
    if statistics.get("settled"):
        count = statistics["settled"]
        yield "settled", spell_settled(count, "document" if count == 1 else "documents")
    pace = _pace(reading, before, "matches_total")
    yield "matches", f"{statistics['matches']:,} kept, {pace} a second"
    states = statistics["queries"]
    named = ", ".join(f"{count:,} {state}" for state, count in states.items()) or "none"
    count = statistics["subscriptions"]
    yield "queries", f"{named}; {count:,} subscription{'' if count == 1 else 's'}"
    deliveries = statistics.get("deliveries") or {}
    sent = ", ".join(f"{n:,} {state}" for state, n in deliveries.items()) or "none yet"
    is_holding = bool(reading.figure("deliveries_held"))
    yield "deliveries", sent + ("; this is a copy and sends nothing" if is_holding else "")
    feeds = [
        f"{sum(row['status'] == status for row in reading.feeds):,} {status}"
        for status in dict.fromkeys(row["status"] for row in reading.feeds)
    ]
    yield "feeds", ", ".join(feeds) or "none"
    joined = [name for name in statistics["figures"] if name.startswith("join_")]
    if joined:
        yield "state", ", ".join(_figure(name, reading) for name in joined)


def _figure(name: str, reading: TopReading) -> str:
    said = name.removeprefix("join_").removesuffix("_total").replace("_", " ")
    value = reading.figure(name) or 0
    if name.endswith("_bytes"):
        return f"{value / 1e6:,.1f} MB {said.removesuffix(' bytes')}"
    return f"{value:,.0f} {said}"


def _pace(reading: TopReading, before: TopReading | None, name: str) -> str:
    now = reading.figure(name)
    if before is None or now is None:
        return "-"
    rate = _rate(now, before.figure(name), reading.at_s - before.at_s)
    return "-" if rate is None else f"{rate:,.1f}"


def _failing(reading: TopReading) -> Iterator[dict[str, Any]]:
    for row in reading.feeds:
        if row["status"] in ("failing", "gone"):
            yield {name: row.get(name) for name in ("url", "stream", "status", "error")}


def _length(seconds: float) -> str:
    """Return a length of time in its two largest units.

    >>> _length(93_600), _length(59)
    ('1 d 2 h', '59 s')
    """
    minutes, s = divmod(int(seconds), 60)
    hours, m = divmod(minutes, 60)
    days, h = divmod(hours, 24)
    parts = [f"{n} {unit}" for n, unit in ((days, "d"), (h, "h"), (m, "min"), (s, "s")) if n]
    return " ".join(parts[:2]) or "0 s"
