"""Reads query files and directories of them, and checks what holds over the whole set."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import chain
from pathlib import Path

from xscl.dependencies import NodeKind, dependencies, groups
from xscl.diagnostics import Diagnostic, Severity, XsclError
from xscl.path import Span
from xscl.query import Query
from xscl.reader import read
from xscl.support import refused
from xscl.table import Table
from xscl.tables import check_graces, check_tables

__all__ = [
    "check_added",
    "check_files",
    "check_set",
    "check_table_cycles",
    "load",
    "query_files",
]

SUFFIX = ".xscl"


def load(paths: Iterable[Path | str]) -> list[Query]:
    """Return the queries of files, and of the `*.xscl` files in directories, sorted by path.

    Raise `XsclError` with the diagnostics of all files if one of them has an error or says what is
    not run yet, two queries have one id, or PUBLISH names form a cycle.
    """
    queries, found = check_files(paths)
    diagnostics = [refused(each) for each in found]
    if any(diagnostic.is_error for diagnostic in diagnostics):
        raise XsclError(diagnostics)
    return queries


def check_files(
    paths: Iterable[Path | str], texts: Mapping[str, str] | None = None
) -> tuple[list[Query], list[Diagnostic]]:
    """Return the queries without errors and all diagnostics.  Raise nothing for bad files.

    `texts` are checked with the files, under their names.
    """
    queries: list[Query] = []
    diagnostics: list[Diagnostic] = []
    located: list[tuple[Query, str, str]] = []
    tables: list[tuple[Table, str | None, str]] = []
    given = ((str(path), _read(path, diagnostics)) for path in query_files(paths))
    for name, text in chain(given, (texts or {}).items()):
        if text is None:
            continue
        reading = read(text, path=name)
        diagnostics += reading.diagnostics
        queries += reading.queries
        located += [(query, name, text) for query in reading.queries]
        tables += [(table, name, text) for table in reading.tables]
    diagnostics += check_set(located)
    diagnostics += check_tables(located, tables, is_all=True)
    if not any(each.is_error for each in diagnostics):
        diagnostics += check_graces(located)
    return queries, diagnostics


def query_files(paths: Iterable[Path | str]) -> Iterator[Path]:
    """Yield the files to read, each once; a directory stands for the query files below it."""
    seen: set[Path] = set()
    for given in map(Path, paths):
        files = sorted(given.rglob(f"*{SUFFIX}")) if given.is_dir() else [given]
        for path in files:
            if path not in seen and (path.is_file() or path == given):
                seen.add(path)
                yield path


def _read(path: Path, diagnostics: list[Diagnostic]) -> str | None:
    try:
        return path.read_bytes().decode()
    except OSError as error:
        message = f"cannot read this file: {error.strerror or error}"
    except UnicodeDecodeError as error:
        message = f"this file is not UTF-8: byte {error.start} cannot be read"
    diagnostics.append(Diagnostic("XS701", Severity.ERROR, Span(0, 0), message, path=str(path)))
    return None


def check_set(located: Sequence[tuple[Query, str, str]]) -> list[Diagnostic]:
    """Return what is wrong with queries together; each is given with its file and its text."""
    return [
        *_shared_ids(located),
        *_shared_names(located),
        *_cycles(located),
        *check_table_cycles(located),
    ]


def check_added(query: Query, publishers: MutableMapping[str, Query]) -> list[Diagnostic]:
    """Return what is wrong with a query beside others, given by the names that they publish.

    The others go together, so that only what the query adds is looked at.
    """
    if query.publish is None:
        return []
    owner = publishers.get(query.publish)
    located = [(each, each.id, each.text) for each in (owner, query) if each is not None]
    diagnostics = list(_shared_names(located))
    cycle = _path_back(query.publish, ChainMap({query.publish: query}, publishers))
    if cycle:
        diagnostics.append(_cycle(query, query.id, query.text, cycle))
    return diagnostics


def _finding(
    code: str, query: Query, path: str, source: str, message: str, hint: str
) -> Diagnostic:
    start = min((block.span.start for block in query.blocks if block.span), default=0)
    if query.publish and code != "XS702":
        start = max(start, source.find(query.publish, source.upper().find("PUBLISH", start)))
        span = Span(start, start + len(query.publish))
    else:
        span = next(block.span for block in query.blocks if block.span)
    return Diagnostic(code, Severity.ERROR, span, message, hint, None, path, source)


def _shared_ids(located: Sequence[tuple[Query, str, str]]) -> Iterator[Diagnostic]:
    first: dict[str, tuple[str, Query]] = {}
    for query, path, source in located:
        other, owner = first.setdefault(query.id, (path, query))
        both_publish = owner.publish is not None and query.publish is not None
        both_publish = both_publish or (owner.table is not None and query.table is not None)
        if owner is not query and not both_publish:  # two names of streams or tables have a code
            yield _finding(
                "XS702",
                query,
                path,
                source,
                f"the id `{query.id}` belongs to a query in {other} already",
                "rename one of the files, or give the queries PUBLISH names",
            )


def _shared_names(located: Sequence[tuple[Query, str, str]]) -> Iterator[Diagnostic]:
    first: dict[str, tuple[str, Query]] = {}
    for query, path, source in located:
        if query.publish is None:
            continue
        other, owner = first.setdefault(query.publish, (path, query))
        if owner is not query:
            yield _finding(
                "XS703",
                query,
                path,
                source,
                f"`{query.publish}` is published by another query already, in {other}",
                "a PUBLISH name belongs to one query: choose another name",
            )


def _cycles(located: Sequence[tuple[Query, str, str]]) -> Iterator[Diagnostic]:
    """Find publishers that read, directly or through others, what they publish."""
    publishers = {query.publish: query for query, _, _ in located if query.publish}
    reported: set[str] = set()
    for query, path, source in located:
        if query.publish is None or query.publish in reported:
            continue
        cycle = _path_back(query.publish, publishers)
        if cycle:
            reported |= set(cycle)
            yield _cycle(query, path, source, cycle)


def _cycle(query: Query, path: str, source: str, cycle: Sequence[str]) -> Diagnostic:
    return _finding(
        "XS704",
        query,
        path,
        source,
        "queries publish in a cycle: " + " reads ".join((*cycle, cycle[0])),
        "no query may read, even through others, what it publishes",
    )


def check_table_cycles(located: Sequence[tuple[Query, str, str]]) -> Iterator[Diagnostic]:
    """Find guarded publishers whose tables are written because of what they publish."""
    if not any(query.guards and query.publish for query, _, _ in located):
        return
    streams = {
        node.name: nodes
        for nodes in groups(dependencies(query for query, _, _ in located))
        if any(node.part is NodeKind.TABLE for node in nodes)
        for node in nodes
        if node.part is NodeKind.STREAM
    }
    for query, path, source in located:
        if query.publish in streams:
            tables = sorted(n.name for n in streams[query.publish] if n.part is NodeKind.TABLE)
            named = " and ".join(f"`{name}`" for name in tables)
            yield _finding(
                "XS706",
                query,
                path,
                source,
                f"`{query.publish}` depends on {named}, which is written because of what it has",
                "have the queries that write the table read what this query reads; or leave out"
                " this WHERE, set a table ON MATCH, and ask it in the queries that read the stream",
            )


def _path_back(name: str, publishers: Mapping[str, Query]) -> list[str]:
    """Return the names on a way from a name back to itself; empty where there is none."""
    stack: list[tuple[str, list[str]]] = [(name, [name])]
    seen: set[str] = set()
    while stack:
        current, way = stack.pop()
        for block in publishers[current].blocks:
            stream = block.stream
            if stream == name:
                return way
            if stream in publishers and stream not in seen:
                seen.add(stream)
                stack.append((stream, [*way, stream]))
    return []
