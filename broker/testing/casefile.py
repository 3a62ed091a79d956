"""Case files: documents in, matches expected.

    case the same link in two feeds
        document a on news at 2026-03-01T12:00
            <item><feed>one</feed><link>https://x.example/1</link></item>
        document b on news at +2 h
            <item><feed>two</feed><link>https://x.example/1</link></item>
        match a b
            first/link = https://x.example/1

A document's time is absolute, or reckoned from the document above it.  The matches of a case are
all that it has; `docs/testing.md` has the whole format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

import xscl
from broker.documents.document import DocumentError, DocumentLine, check_stream, parse_time
from broker.registry.parameters import parameters
from broker.testing.lines import CaseLine, CaseStatement, read_lines, statements
from xpath_eval.structure import XmlError, parse_xml
from xscl.diagnostics import Diagnostic, Severity, XsclError
from xscl.durations import DurationError, read_duration
from xscl.path import Span
from xscl.query import Query
from xscl.sequence import documents_of
from xscl.spelling import did_you_mean

__all__ = ["CASE_SUFFIX", "Case", "CaseFile", "ExpectedMatch", "read_case_file"]

CASE_SUFFIX = ".test"

_FIRST_TIME = "2026-01-01T00:00:00"
_SECOND_US = 1_000_000
_DAY_US = 86_400_000_000
_WORDS = ("query", "case", "document", "parameters", "lateness", "match", "no")
_DOCUMENT = re.compile(r"(?P<key>[^\s()]+) +on +(?P<stream>\S+)(?: +at +(?P<time>[^<]*[^<\s]))?")
_VARIABLE = re.compile(r"(?P<name>\S+) += *(?P<value>.*)")


@dataclass(frozen=True, slots=True)
class ExpectedMatch:
    """A match that a case expects, by its documents as they are written: `a b`, or `(a b) c`.

    A published document is written as the documents behind it, in parentheses.  `variables` are
    values that one of its witnesses must have, `output` the XML that it must give.
    """

    query: Query
    documents: str
    line: int
    variables: Mapping[str, str] = field(default_factory=dict)
    output: str | None = None
    parameters: Mapping[str, Any] | None = None


@dataclass(slots=True)
class Case:
    """One case.  `first_line` and `last_line` are those of what it expects."""

    name: str
    line: int
    lateness_us: int = _DAY_US
    documents: list[DocumentLine] = field(default_factory=list)
    assignments: dict[str, list[Mapping[str, Any]]] = field(default_factory=dict)
    expected: list[ExpectedMatch] = field(default_factory=list)
    first_line: int = 0
    last_line: int = 0


@dataclass(frozen=True, slots=True)
class CaseFile:
    """The cases of a file, and the queries that all of them run."""

    path: Path
    source: str
    queries: tuple[Query, ...]
    cases: tuple[Case, ...]


def read_case_file(path: Path) -> CaseFile:
    """Read a case file and its queries; raise `XsclError` with what is wrong in either.

    The queries are those of the file of the same name with the ending `.xscl`, unless `query`
    lines above the first case name others.  Raises `OSError` or `UnicodeDecodeError` where the
    file cannot be read.
    """
    source = path.read_text(encoding="utf-8")
    return _CaseReader(path, source).file()


class _CaseReader:
    """Reads one file from top to bottom; the first mistake ends it."""

    def __init__(self, path: Path, source: str) -> None:
        self._path = path
        self._source = source
        self._queries: dict[str, Query] = {}
        self._case: Case | None = None
        self._time_us = 0

    def file(self) -> CaseFile:
        """Return the whole file."""
        found = list(statements(read_lines(self._source), flat=("case",)))
        above = [each for each in found if each.word == "query"]
        self._load(above)
        cases = list(self._cases(each for each in found if each.word != "query"))
        if not cases:
            end = Span(len(self._source.rstrip()), len(self._source.rstrip()))
            self._wrong("XT002", end, "there is no case here", "begin one: `case WHAT IT SHOWS`")
        return CaseFile(self._path, self._source, tuple(self._queries.values()), tuple(cases))

    def _load(self, named: Sequence[CaseStatement]) -> None:
        paths = [self._path.parent / each.rest for each in named]
        for path, each in zip(paths, named, strict=True):
            if not path.is_file():
                self._wrong("XT003", each.line.span, f"there is no query file {path}")
        own = self._path.with_suffix(".xscl")
        if not named and not own.is_file():
            hint = f"write {own.name} beside it, or name the queries: `query FILE.xscl`"
            self._wrong("XT003", Span(0, 0), f"there is no {own} to be tested", hint)
        self._queries = {query.id: query for query in xscl.load(paths or [own])}

    def _cases(self, found: Iterator[CaseStatement]) -> Iterator[Case]:
        for statement in found:
            if statement.word == "case":
                if self._case is not None:
                    yield self._finished(self._case)
                self._case = Case(statement.rest, statement.line.number)
                self._time_us = parse_time(_FIRST_TIME) - _SECOND_US
                if not statement.rest:
                    self._wrong("XT002", statement.line.span, "a case has a name", "`case WHAT`")
            elif statement.word not in _WORDS:
                hint = did_you_mean(statement.word, _WORDS) or f"lines begin with {_listed(_WORDS)}"
                self._wrong("XT001", _first_word(statement), f"what is `{statement.word}`?", hint)
            elif self._case is None:
                hint = "begin one above: `case WHAT IT SHOWS`"
                self._wrong("XT002", statement.line.span, "this belongs to no case", hint)
            else:
                self._read(self._case, statement)
        if self._case is not None:
            yield self._finished(self._case)

    def _finished(self, case: Case) -> Case:
        if not case.first_line:
            span = next(li.span for li in read_lines(self._source) if li.number == case.line)
            hint = "say which: `match KEY KEY`, or `no match`"
            self._wrong("XT004", span, "the case does not say what it expects", hint)
        return case

    def _read(self, case: Case, statement: CaseStatement) -> None:
        match statement.word:
            case "document":
                self._document(case, statement)
            case "lateness":
                case.lateness_us = self._duration(statement.rest, statement.line.span)
            case "parameters":
                query, text = self._of_query(statement)
                values = self._assignment(query, text, statement.line)
                case.assignments.setdefault(query.id, []).append(values)
            case _:
                self._expectation(case, statement)

    def _document(self, case: Case, statement: CaseStatement) -> None:
        head, less, beginning = statement.rest.partition("<")
        said = _DOCUMENT.fullmatch(head.strip())
        if said is None:
            hint = "`document KEY on STREAM at TIME`, and its XML indented below"
            self._wrong("XT005", statement.line.span, "this is not how a document is given", hint)
        key, stream = said["key"], said["stream"]
        if any(document.key == key for document in case.documents):
            self._wrong("XT005", statement.line.span, f"`{key}` is the key of another document")
        try:
            check_stream(stream)
        except DocumentError as error:
            self._wrong("XT005", statement.line.span, str(error))
        publisher = next((q for q in self._queries.values() if q.publish == stream), None)
        if publisher is not None:
            hint = "give the documents that it is made of"
            text = f"a query publishes `{stream}`: it takes no documents from outside"
            self._wrong("XT005", statement.line.span, text, hint)
        self._time_us = self._time(said["time"], statement.line)
        xml = (less + beginning + "\n" + statement.below()).strip().encode()
        self._check_xml(xml, statement)
        case.documents.append(DocumentLine(stream=stream, xml=xml, time_us=self._time_us, key=key))

    def _check_xml(self, xml: bytes, statement: CaseStatement) -> None:
        try:
            parse_xml(xml)
        except XmlError as error:
            hint = None if xml else "indent its XML below the line, or write it at its end"
            place = statement.body[0] if statement.body else statement.line
            text = f"the document is not XML: {error}" if xml else "the document has no XML"
            self._wrong("XT006", place.span, text, hint)

    def _time(self, text: str | None, line: CaseLine) -> int:
        if text is None:
            return self._time_us + _SECOND_US
        if text[0] in "+-":
            length_us = self._duration(text[1:], line.span)
            return self._time_us + (length_us if text[0] == "+" else -length_us)
        from feeds.dates import usable

        try:
            time_us = parse_time(text)
        except ValueError:
            hint = "`2026-03-01T12:00`, or from the document above: `+2 h`, `-30 min`"
            return self._wrong("XT007", self._part(line, text), f"`{text}` is not a time", hint)
        if usable(time_us) is None:
            text = f"`{text}` is before 1980, which a broker takes for no time"
            return self._wrong("XT007", line.span, text)
        return time_us

    def _duration(self, text: str, span: Span) -> int:
        try:
            return read_duration(text)
        except DurationError as error:
            return self._wrong("XT007", span, error.message, error.hint or "as in `2 h`, `30 min`")

    def _expectation(self, case: Case, statement: CaseStatement) -> None:
        is_none = statement.word == "no"
        if is_none and statement.rest != "match":
            self._wrong("XT001", statement.line.span, "this is no line", "did you mean `no match`?")
        if case.first_line and (is_none or not case.expected):
            text = "a case has matches, or `no match`, and not both"
            self._wrong("XT004", statement.line.span, text)
        case.first_line = case.first_line or statement.line.number
        case.last_line = statement.last_line
        if not is_none:
            case.expected.append(self._match(case, statement))

    def _match(self, case: Case, statement: CaseStatement) -> ExpectedMatch:
        query, documents = self._of_query(statement)
        documents = _spelled(documents)
        names = re.findall(r"[^\s()]+", documents)
        known = [document.key or "" for document in case.documents]
        for name in names:
            if name not in known:
                hint = did_you_mean(name, known) or f"there are {_listed(known)}"
                span = self._part(statement.line, name)
                self._wrong("XT008", span, f"there is no document `{name}` above", hint)
        blocks, given = documents_of(query.root), _operands(documents)
        if given is None:
            self._wrong("XT008", statement.line.span, "the parentheses do not fit together")
        is_open = query.rows is not None or query.has_runs or query.has_chains
        least = 1 if query.rows is not None else blocks - query.lossy_units
        if given < least or (given > blocks and not is_open):
            hint = "name the document of each block, in their order"
            text = f"{query.id} joins {_count(blocks, 'document')}, and this names {given}"
            self._wrong("XT008", statement.line.span, text, hint)
        expected = ExpectedMatch(query, documents, statement.line.number)
        return self._with_details(expected, statement)

    def _with_details(self, expected: ExpectedMatch, statement: CaseStatement) -> ExpectedMatch:
        variables: dict[str, str] = {}
        output: str | None = None
        assigned: Mapping[str, Any] | None = None
        for detail in statements(statement.body):
            named = _VARIABLE.fullmatch(detail.line.text)
            if detail.word == "output":
                output = f"{detail.rest}\n{detail.below()}".strip()
                self._check_xml(output.encode(), detail)
            elif detail.word == "parameters":
                assigned = self._assignment(expected.query, detail.rest, detail.line)
            elif named is not None:
                self._check_variable(expected.query, named["name"], detail.line)
                variables[named["name"]] = named["value"].strip()
            else:
                hint = "`NAME = VALUE`, `output <xml/>` or `parameters NAME=VALUE`"
                self._wrong("XT001", detail.line.span, "this says nothing of a match", hint)
        return replace(expected, variables=variables, output=output, parameters=assigned)

    def _check_variable(self, query: Query, name: str, line: CaseLine) -> None:
        labels = [v.label for v in query.variables if not v.label.startswith("#")]
        if name not in labels:
            hint = did_you_mean(name, labels) or f"it compares {_listed(labels)}"
            self._wrong("XT009", self._part(line, name), f"{query.id} compares no `{name}`", hint)

    def _of_query(self, statement: CaseStatement) -> tuple[Query, str]:
        """Return the query that a line is about, and the line without its name."""
        named = re.fullmatch(r"([^\s:()=]+):\s+(.*)", statement.rest)
        if named is None and len(self._queries) == 1:
            return next(iter(self._queries.values())), statement.rest
        ids = _listed(list(self._queries))
        if named is None:
            hint = f"as in `{statement.word} {next(iter(self._queries))}: ...`"
            self._wrong("XT010", statement.line.span, f"of which query, of {ids}?", hint)
        query = self._queries.get(named[1])
        if query is None:
            span = self._part(statement.line, named[1])
            self._wrong("XT010", span, f"there is no query `{named[1]}` here", f"there are {ids}")
        return query, named[2]

    def _assignment(self, query: Query, text: str, line: CaseLine) -> Mapping[str, Any]:
        try:
            return xscl.assignment(query, parameters(text))
        except XsclError as error:
            found = error.diagnostics[0]
            return self._wrong("XT011", line.span, found.message, found.hint)
        except ValueError as error:
            return self._wrong("XT011", line.span, str(error), 'as in `who=Ann within="6 h"`')

    def _part(self, line: CaseLine, text: str) -> Span:
        found = re.search(rf"(?<![^\s(]){re.escape(text)}", line.text)
        start = line.start + (found.start() if found else 0)
        return Span(start, start + len(text))

    def _wrong(self, code: str, span: Span, text: str, hint: str | None = None) -> NoReturn:
        finding = Diagnostic(
            code, Severity.ERROR, span, text, hint, path=str(self._path), source=self._source
        )
        raise XsclError([finding])


def _spelled(documents: str) -> str:
    """Return documents with single spaces between them, and none inside parentheses' edges."""
    spaced = " ".join(documents.replace("(", " ( ").replace(")", " ) ").split())
    return spaced.replace("( ", "(").replace(" )", ")")


def _operands(documents: str) -> int | None:
    """Return how many documents are named, one in parentheses for one; None if they are unpaired.

    >>> _operands("(a b) c"), _operands("(a")
    (2, None)
    """
    depth = count = 0
    for each in re.findall(r"[()]|[^\s()]+", documents):
        if each == ")":
            depth -= 1
        else:
            count += depth == 0
            depth += each == "("
        if depth < 0:
            return None
    return count if depth == 0 else None


def _first_word(statement: CaseStatement) -> Span:
    start = statement.line.start
    return Span(start, start + len(statement.word))


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
