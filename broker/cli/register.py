"""`xscl register`: have a running broker match queries, or say what that would be like."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from broker.cli.connection import BrokerConnection, connect
from broker.cli.progress import progress_bar
from broker.cli.terminal import (
    Failure,
    echo,
    echo_json,
    message,
    parameter_option,
    read_parameters,
    text_or_json,
    wanted_parameters,
)

if TYPE_CHECKING:
    from xscl.query import Query

__all__ = ["register"]

ESTIMATED_MAX = 10
"""Queries of one command whose cost is said first: each takes half a second."""

_TEXT = "text/plain; charset=utf-8"


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option("--id", "query_id", help="The query's id, where the file holds one query.")
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what they would cost, and what they would have matched; register nothing.",
)
@click.option(
    "--since",
    metavar="DOCID|TIME|all",
    help="See retained documents after that one, or that arrived from that time on, too.",
)
@click.option(
    "--documents",
    type=click.IntRange(1, 1_000_000),
    default=100_000,
    show_default=True,
    help="With --dry-run: look at the newest so many documents that are kept.",
)
@click.option(
    "--seconds",
    type=click.IntRange(1, 300),
    default=30,
    show_default=True,
    help="With --dry-run: look at them for so long at most.",
)
@parameter_option("With --dry-run: the value of a parameter")
@text_or_json("How to print what was registered, or what --dry-run finds.")
@click.pass_context
def register(
    context: click.Context,
    paths: tuple[Path, ...],
    query_id: str | None,
    dry_run: bool,
    since: str | None,
    documents: int,
    seconds: int,
    given: tuple[str, ...],
    output: str,
) -> None:
    """Register the queries in files and directories (*.xscl), or new texts of them.

    A query sees the documents that arrive after it was registered, or the ones that the broker
    retains from --since on.  What it will cost and match, by the newest documents, is said first.

    With --dry-run nothing is registered: the broker says from its newest documents what each
    query would cost, with which queries it would share its joins, and what it would have matched
    among the documents that it retains, and how many of them it looked at.

    \b
    Examples:
      xscl register examples/queries/
      xscl register same-story.xscl --id stories
      xscl register same-story.xscl --dry-run
      xscl register by-author.xscl --dry-run -p who=Ann
      xscl register same-story.xscl --since all
    """
    connection = connect(context)
    queries = _load(paths, query_id)
    if dry_run:
        bounds = {"documents": documents, "seconds": seconds, "parameters": _values(given)}
        found = [
            _dry_run(connection, each, query_id or each.id, bounds, output) for each in queries
        ]
        if output == "json":
            echo_json(found)
        return
    registered = []
    sources = _sources(paths, queries)
    for query in queries:
        path, body = ("queries", query_id or query.id), sources[query.id].encode()
        if len(queries) <= ESTIMATED_MAX:
            _say_cost(connection.call("POST", *path, "estimate", body=body, content_type=_TEXT))
        made = connection.call("PUT", *path, query={"since": since}, body=body, content_type=_TEXT)
        _say_registered(made, looks_back=since is not None)
        registered.append(made)
    if output == "json":
        echo_json(registered)


def _say_registered(made: dict[str, Any], *, looks_back: bool = False) -> None:
    if made["state"] == "paused":
        reason = f": {made['reason']}" if made["reason"] else ""
        message(f"{made['id']} stays paused from document {made['effective'] + 1} on{reason}")
        message(f"hint: `xscl resume {made['id']}` makes it go on, or another text of it")
        return
    said = "registered" if made.get("outcome") != "unchanged" else "unchanged:"
    message(
        f"{said} {made['id']} (version {made['version']}, sees documents after {made['point']})"
    )
    if looks_back and made.get("outcome") == "registered" and made.get("subscriptions"):
        message(
            "its subscriptions get what it finds in the documents that came after they were made,"
            " also what an earlier text has found there: a new text makes new matches"
        )


def _load(paths: Sequence[Path], query_id: str | None) -> list[Query]:
    from xscl import XsclError, load

    try:
        queries = load(paths)
    except XsclError as error:
        raise Failure(str(error)) from error
    if not queries:
        raise Failure(
            f"there is no query in {', '.join(map(str, paths))}",
            hint="query files end in .xscl",
        )
    if query_id is not None and len(queries) != 1:
        raise Failure(
            f"--id names one query, but there are {len(queries)}",
            hint="leave --id out",
            exit_code=2,
        )
    return queries


def _sources(paths: Sequence[Path], queries: Sequence[Query]) -> dict[str, str]:
    """Return the text of each query as its author wrote it, by id; canonical where it is shared."""
    from xscl.files import query_files
    from xscl.lexer import tokenise
    from xscl.reader import check
    from xscl.report import Report

    sources = {query.id: query.text for query in queries}
    by_text: dict[str, list[str]] = {}
    for query in queries:
        by_text.setdefault(query.text, []).append(query.id)
    for path in query_files(paths):
        text = path.read_bytes().decode()
        tokens, _ = tokenise(text, Report(text))
        ends = [token.start for token in tokens if token.kind == ";"]
        starts = [0, *(end + 1 for end in ends)]
        for start, end in zip(starts, [*ends, len(text)], strict=True):
            own = text[start:end].strip() + "\n"
            found, _ = check(own, path=str(path))
            if len(found) == 1:
                sources.update(dict.fromkeys(by_text.get(found[0].text, ()), own))
    return sources


def _values(given: Sequence[str]) -> str | None:
    return json.dumps(read_parameters(given)) if given else None


def _say_cost(estimate: dict[str, Any]) -> None:
    """Say what a query will match a day, if there are documents, and what is alarming about it."""
    lines = estimate["rendered"].splitlines()
    expected = lines[:1] if estimate["sample"]["documents"] else []
    for line in [*expected, *(each for each in lines if each.startswith("  warning"))]:
        message(line)


def _dry_run(
    connection: BrokerConnection, query: Query, query_id: str, bounds: dict[str, Any], output: str
) -> dict[str, Any]:
    path, body = ("queries", query_id), query.text.encode()
    estimate = connection.call("POST", *path, "estimate", body=body, content_type=_TEXT)
    if output == "text":
        echo(estimate["rendered"], nl=False)
    if query.parameters and bounds["parameters"] is None:
        wanted = wanted_parameters(dict(query.parameters))
        message(f"{query_id} has parameters: give {wanted} to see what it would have matched")
        return {"estimate": estimate, "history": None}
    found = _history(connection, path, body, bounds)
    if output == "text":
        echo(found["rendered"], nl=False)
    return {"estimate": estimate, "history": found["found"]}


def _history(
    connection: BrokerConnection, path: tuple[str, str], body: bytes, bounds: dict[str, Any]
) -> dict[str, Any]:
    """Return what a query would have matched; shows how far the broker is."""
    answer = connection.lines(
        "POST", *path, "rehearsal", query=bounds, body=body, content_type=_TEXT
    )
    last: dict[str, Any] = {}
    with progress_bar(f"{path[1]}: documents looked at") as show:
        for last in answer:
            if "of" in last:
                show(last["documents"], last["of"])
    if "found" not in last:
        text = last.get("error", "the broker ended its answer in the middle")
        raise Failure(text, hint="the broker's log says more")
    return last
