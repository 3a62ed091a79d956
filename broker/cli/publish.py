"""`xscl publish`: give documents to a stream of a running broker."""

from __future__ import annotations

import gzip
import io
import itertools
import zlib
from collections.abc import Iterable, Iterator
from typing import IO, Any, cast

import click

from broker.cli.connection import BrokerConnection, connect
from broker.cli.terminal import (
    EXIT_FAILED,
    Failure,
    StreamName,
    echo,
    echo_json,
    message,
    text_or_json,
)
from broker.documents.late import spell_late, spell_settled

__all__ = ["publish"]

_LINES_AT_ONCE = 500
_BYTES_AT_ONCE = 4 << 20
"""What a broker takes in one request is a setting, 16 MB by default."""

_GZIP = b"\x1f\x8b"


@click.command()
@click.argument("stream", type=StreamName())
@click.argument("files", nargs=-1, required=True, type=click.File("rb"))
@click.option("--key", help="The key of the document, where one XML document is given.")
@click.option("--time", help="Its event time (ISO 8601), where one XML document is given.")
@text_or_json("How to print what became of them: number, outcome and key, or all of it.")
@click.pass_context
def publish(
    context: click.Context,
    stream: str,
    files: tuple[IO[bytes], ...],
    key: str | None,
    time: str | None,
    output: str,
) -> None:
    """Give XML documents, or files of document lines, to STREAM.

    A file whose first character is `{` holds document lines: one JSON object in each line, with
    `xml` and, if wanted, `time` and `key`.  Anything else is one XML document.  `-` is standard
    input.  What is compressed with gzip is read as what it holds.  When the verb ends with 0, the
    broker has every document on its disk.

    \b
    Examples:
      xscl publish news item.xml --key item-17
      xscl publish S examples/documents/books-and-blogs.jsonl
    """
    connection = connect(context)
    taken = known = refused = settled = 0
    results: list[dict[str, Any]] = []
    late: dict[str, Any] = {}
    for file in files:
        for result in _results(connection, stream, file, key, time, late):
            if output == "json":
                results.append(result)
            if result["outcome"] == "refused":
                refused += 1
                name = getattr(file, "name", "<stdin>")
                message(f"{name}:{result['line']}: refused: {result['reason']}")
            else:
                taken += 1
                known += result["outcome"] == "duplicate"
                settled += result.get("settled", False)
            if output == "text" and result["outcome"] != "refused":
                echo(f"{result['docid']}\t{result['outcome']}\t{result['key'] or ''}")
    if output == "json":
        echo_json(results)
    message(f"{taken} taken{f' ({known} known already)' if known else ''}, {refused} refused")
    if settled:
        message(spell_settled(settled))
    if late:
        message(spell_late(late))
        message("hint: `xscl replay` joins recorded documents by their own times alone")
    if refused:
        context.exit(EXIT_FAILED)


def _results(
    connection: BrokerConnection,
    stream: str,
    file: IO[bytes],
    key: str | None,
    time: str | None,
    late: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    """Yield the receipts of a file's documents; add up in `late` which are too late."""
    name = getattr(file, "name", "<stdin>")
    try:
        yield from _given(connection, stream, _unpacked(file), name, key, time, late)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise Failure(f"{name}: it is compressed, and broken: {error}") from error


def _unpacked(file: IO[bytes]) -> IO[bytes]:
    """Return a file, or what it holds where it is compressed with gzip."""
    read = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast(Any, file))
    is_packed = read.peek(2).startswith(_GZIP)
    return cast(IO[bytes], gzip.GzipFile(fileobj=read)) if is_packed else read


def _given(
    connection: BrokerConnection,
    stream: str,
    file: IO[bytes],
    name: str,
    key: str | None,
    time: str | None,
    late: dict[str, Any],
) -> Iterator[dict[str, Any]]:
    first = file.readline()
    path = ("streams", stream, "documents")
    if not first.lstrip(b"\xef\xbb\xbf").lstrip().startswith(b"{"):
        body = first + file.read()
        kind = "application/xml"
        query = {"key": key, "time": time}
        try:
            answer = connection.call("POST", *path, query=query, body=body, content_type=kind)
        except Failure as failure:
            text = f"{name}: {failure.message}" if failure.code == EXIT_FAILED else failure.message
            raise Failure(text, hint=failure.hint, exit_code=failure.code) from failure
        _add_late(late, answer)
        yield from ({**result, "line": 1} for result in answer["documents"])
        return
    lines = itertools.chain([first], file)
    start = 1
    for chunk in _chunks(lines):
        kind = "application/x-ndjson"
        answer = connection.call("POST", *path, body=b"".join(chunk), content_type=kind)
        _add_late(late, answer)
        yield from ({**r, "line": start + r["line"] - 1} for r in answer["documents"])
        start += len(chunk)


def _chunks(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Yield lines in order, in lists that go into one request each; none is empty."""
    chunk: list[bytes] = []
    size = 0
    for line in lines:
        if chunk and (len(chunk) == _LINES_AT_ONCE or size + len(line) > _BYTES_AT_ONCE):
            yield chunk
            chunk, size = [], 0
        chunk.append(line)
        size += len(line)
    yield chunk


def _add_late(late: dict[str, Any], answer: dict[str, Any]) -> None:
    found = answer.get("late")
    if found:
        late.update({**found, "documents": late.get("documents", 0) + found["documents"]})
