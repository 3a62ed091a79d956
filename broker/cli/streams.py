"""`xscl streams` and `xscl dead-letters`: what arrives, and what of it could not be read."""

from __future__ import annotations

import click

from broker.cli.connection import connect
from broker.cli.terminal import emit_rows, format_option, limit_option, message

__all__ = ["dead_letters", "streams"]

_STREAM_COLUMNS = [
    "name",
    "documents",
    "documents_per_second",
    "newest",
    "time",
    "late",
    "settled",
    "readers",
    "publisher",
]
_LETTER_COLUMNS = ["docid", "stream", "key", "time", "reason"]


@click.command()
@format_option
@click.pass_context
def streams(context: click.Context, output: str) -> None:
    """List the streams: what is kept of each, how fast it comes, how many queries read it.

    A stream that a query names and that has no document is listed too.  `late` counts the
    documents, since the broker's start, that are older than anything that can still be joined,
    `settled` how many came when a query with NEXT, UNLESS or NOT may have answered without them.

    \b
    Examples:
      xscl streams
      xscl streams --format csv
    """
    rows = connect(context).get("streams")["streams"]
    emit_rows(rows, _STREAM_COLUMNS, output)
    if not rows and output == "table":
        message("no streams yet; `xscl publish STREAM FILE` and `xscl feeds add` fill one")


@click.group("dead-letters", invoke_without_command=True)
@limit_option
@format_option
@click.pass_context
def dead_letters(context: click.Context, limit: int, output: str) -> None:
    """List documents that could not be evaluated, newest first, with the reason; try them again.

    As JSON with their XML.  Deliveries that were given up are in `xscl deliveries dead-letters`.

    \b
    Examples:
      xscl dead-letters
      xscl dead-letters -n 1 --format json
      xscl dead-letters retry 1027
    """
    if context.invoked_subcommand is not None:
        return
    rows = list(connect(context).rows("dead-letters", turned_by="before", limit=limit))
    emit_rows(rows, _LETTER_COLUMNS, output)
    if not rows and output == "table":
        message("no dead letters")


@dead_letters.command()
@click.argument("docids", metavar="DOCID...", nargs=-1, required=True, type=click.IntRange(1))
@click.pass_context
def retry(context: click.Context, docids: tuple[int, ...]) -> None:
    """Accept documents that could not be evaluated once more, each as a new document.

    It has the same XML and the same event time.  Trying one again twice makes one document.

    \b
    Example:
      xscl dead-letters retry 1027
    """
    connection = connect(context)
    for docid in docids:
        answer = connection.call("POST", "dead-letters", str(docid), "retry")
        already = " already" if answer["outcome"] == "duplicate" else ""
        message(f"document {docid} is{already} accepted again as {answer['docid']}")
