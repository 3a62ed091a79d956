"""`xscl witnesses`: what queries find in one document."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from broker.cli.terminal import Failure, echo, echo_json, text_or_json

if TYPE_CHECKING:
    from broker.documents.document import Document
    from xscl.query import Query

__all__ = ["witnesses"]


@click.command()
@click.argument("queries", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--document",
    required=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="One XML document, or a file whose first line is a document line.",
)
@click.option("--stream", help="The stream of an XML document, where the queries read several.")
@text_or_json()
def witnesses(queries: tuple[Path, ...], document: Path, stream: str | None, output: str) -> None:
    """Show what QUERIES (files, or directories of them) find in one document.

    Prints the relations R_binW, R_docW and R_docTSW: which nodes bind which pairs of variables,
    the nodes' string values where some query compares them, and the document's time.

    \b
    Example:
      xscl witnesses examples/queries/book-and-blog.xscl --document book.xml
    """
    import xscl
    from broker.documents.document import DocumentError
    from broker.explain.relations import relations_of, render_relations

    try:
        loaded = xscl.load(queries)
    except xscl.XsclError as error:
        raise Failure(str(error)) from error
    one, has_time = _document(document, loaded, stream)
    try:
        found = relations_of(loaded, one, has_time=has_time)
    except DocumentError as error:
        raise Failure(f"{document} cannot be read: {error}") from error
    if output == "json":
        echo_json(found.as_data())
    else:
        echo(render_relations(found), nl=False)


def _document(path: Path, queries: Sequence[Query], stream: str | None) -> tuple[Document, bool]:
    """Return the document of a file, and whether it has a time of its own."""
    from broker.cli.whynot import from_files
    from broker.documents.recorded import RecordedError, number_lines, read_document_lines

    with path.open("rb") as file:
        begins = file.read(2)
    if begins[:1] != b"{" and begins != b"\x1f\x8b":
        return from_files(None, [str(path)], (), stream or _only_stream(queries))[0], False
    try:
        lines = read_document_lines([path])
        return next(iter(number_lines([next(iter(lines))]))), True
    except RecordedError as error:
        raise Failure(str(error)) from error
    except StopIteration as error:
        raise Failure(f"{path} has no document line") from error


def _only_stream(queries: Sequence[Query]) -> str:
    streams = sorted({block.stream for query in queries for block in query.blocks} - {"*"})
    if len(streams) > 1:
        raise Failure(
            f"the queries read several streams: {', '.join(streams)}",
            hint="say with --stream which one the document is on",
            exit_code=2,
        )
    return streams[0] if streams else "S"
