"""What tests of several rooms share: documents in a line, and match cases as text.

A **match case** says which matches some queries have over some documents.  Input stands above
the line, the expected matches below; `#` starts a comment, whose first line names the case:

    # The window bound is closed: exactly one hour apart still joins, one second more does not.
    query q1
        S//book[author->x2] FOLLOWED BY {x2 = x4, 1 hour} S//blog[author->x4]

    document 1 S 12:00     <book><author>Ann</author></book>
    document 2 S 13:00     <blog><author>Ann</author></blog>
    document 3 S 13:00:01  <blog><author>Ann</author></blog>
    ----
    q1  1 2
        witness x2=1:Ann x4=1:Ann

Documents stand in arrival order.  After `document` come the number that it gets (`-` for one that
changes nothing), its stream, its time on 1 January 2026 (or `2026-01-02T12:00`, or `-` for none)
and, where wanted, `arrival=TIME` and `key=KEY`.  More input lines: `lateness 2 h`,
`register q1 after 3`, `parameters q1 {"who": "Ann"}`.

Every match is expected, by query and docids, sorted by largest docid, query, docids, roots, nodes.
Indented below it may stand what else must be true of it, one or more lines of a kind: `roots`,
`nodes`, `witness` (all tuples, in order), `similar` (score and shared words of each witness's
similarity joins), `omitted`, `streams`, `keys`, `interval`, `parameters`, `output`.

`table worker` stands for what is left of a table, with indented rows: `w7 status=safe`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import xscl
from broker.documents.document import DocumentLine, parse_time
from broker.matching.match import Match, MatchNode
from xscl.query import Query

__all__ = [
    "CASES",
    "Case",
    "Expected",
    "Runner",
    "cases",
    "check",
    "document",
    "entries",
    "parse_case",
    "read_document",
    "us",
]

CASES = Path(__file__).parents[1] / "cases"

DAY = "2026-01-01"

_UNITS_US = {"us": 1, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


def us(duration: str) -> int:
    """Return the microseconds of a duration such as `90 s`, `15 m`, `1 h`, `2 d`, `7 us`."""
    found = re.fullmatch(r"(\d+) *([a-z]+)", duration)
    assert found is not None, f"not a duration: {duration}"
    return int(found[1]) * _UNITS_US[found[2]]


def time_us(text: str) -> int:
    """Return a time of a case in microseconds: of DAY where no other day is given."""
    return parse_time(text if "T" in text else f"{DAY}T{text}")


def document(
    stream: str,
    minute: float | None,
    xml: str,
    *,
    arrival: float | None = None,
    key: str | None = None,
) -> DocumentLine:
    """Return a document line; times are minutes after the start of DAY."""
    return DocumentLine(
        stream=stream,
        xml=xml.encode(),
        time_us=None if minute is None else _minute_us(minute),
        arrival_us=None if arrival is None else _minute_us(arrival),
        key=key,
    )


def _minute_us(minute: float) -> int:
    return time_us("00:00") + round(minute * 60_000_000)


@dataclass(frozen=True, slots=True)
class Expected:
    """One expected match: its query and docids, and lines about it by kind."""

    query: str
    docids: tuple[int, ...]
    details: dict[str, list[str]] = field(default_factory=dict)


@dataclass(slots=True)
class Case:
    """Queries, documents in arrival order and settings, with the matches that they must give."""

    name: str = ""
    queries: list[Query] = field(default_factory=list)
    lines: list[DocumentLine] = field(default_factory=list)
    numbers: list[int | None] = field(default_factory=list)
    lateness_us: int = _UNITS_US["d"]
    registered: dict[str, int] = field(default_factory=dict)
    learning: tuple[int, int] = (30, 1_000)
    assignments: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    expected: list[Expected] = field(default_factory=list)
    rows: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)


Runner = Callable[[Case], Sequence[Match]]
"""Something that finds the matches of a case: the oracle, an engine, a whole broker."""


def cases(directory: Path = CASES) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of every case in the case files; `====` separates those of one file."""
    for path in sorted(directory.glob("*.case")):
        for text in re.split(r"^====.*\n", path.read_text(), flags=re.MULTILINE):
            title = next(line[1:].strip() for line in text.splitlines() if line.startswith("#"))
            yield f"{path.stem}: {title.rstrip('.')}", text


def check(case: Path | str, runner: Runner) -> None:
    """Assert that a runner finds exactly the expected matches of each case of a file or text."""
    text = case.read_text() if isinstance(case, Path) else case
    for each in re.split(r"^====.*\n", text, flags=re.MULTILINE):
        parsed = parse_case(each)
        found = sorted(runner(parsed), key=_order)
        assert _summary_of(found, parsed.expected) == _summary(parsed.expected)


def parse_case(text: str) -> Case:
    """Read one case."""
    case = Case(name=next((x[1:].strip() for x in text.splitlines() if x.startswith("#")), ""))
    above, line, below = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).partition("\n----\n")
    assert line, f"no line ---- in the case: {case.name}"
    for head, body in entries(above):
        _read_input(case, head, body)
    for head, body in entries(below):
        if head.startswith("table "):
            for key, *cells in map(str.split, body):
                case.rows[head.split()[1], key] = dict(cell.split("=", 1) for cell in cells)
            continue
        query, *docids = head.split()
        details: dict[str, list[str]] = {}
        for kind, _, rest in (detail.partition(" ") for detail in body):
            details.setdefault(kind, []).append(rest.strip())
        case.expected.append(Expected(query, tuple(map(int, docids)), details))
    return case


def entries(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield each line that is not indented, with the indented ones below it, stripped."""
    for entry in re.findall(r"^\S.*\n?(?:(?:[ \t]+.*)?(?:\n|\Z))*", text + "\n", re.MULTILINE):
        head, *body = [line.strip() for line in entry.splitlines() if line.strip()]
        yield head, body


def _read_input(case: Case, head: str, body: list[str]) -> None:
    word, _, rest = head.partition(" ")
    match word:
        case "query":
            # The oracle finds the matches of statements too that no engine runs yet.
            queries, found = xscl.check("\n".join(body), id=rest.strip())
            assert not any(each.is_error for each in found), "\n".join(map(str, found))
            case.queries.extend(queries)
        case "document":
            number, line = read_document("\n".join([rest.strip(), *body]))
            case.numbers.append(number)
            case.lines.append(line)
        case "tick":
            number, time = rest.split()
            case.numbers.append(int(number))
            case.lines.append(DocumentLine("CLOCK", b"", time_us(time)))
        case "lateness":
            case.lateness_us = us(rest.strip())
        case "learning":
            least, most = map(int, rest.split())
            case.learning = (least, most)
        case "register":
            name, _, point = rest.split()
            case.registered[name] = int(point)
        case "parameters":
            name, _, values = rest.strip().partition(" ")
            query = next(query for query in case.queries if query.id == name)
            assignment = xscl.assignment(query, json.loads(values))
            case.assignments.setdefault(name, []).append(assignment)
        case _:
            raise AssertionError(f"what is {head!r}?")


def read_document(text: str) -> tuple[int | None, DocumentLine]:
    """Read what stands behind `document`: the number that it gets, and its line."""
    number, stream, time, rest = text.split(maxsplit=3)
    named: dict[str, str] = {}
    while found := re.match(r"(arrival|key)=(\S+)\s+", rest):
        named[found[1]] = found[2]
        rest = rest[found.end() :]
    line = DocumentLine(
        stream=stream,
        xml=rest.encode(),
        time_us=None if time == "-" else time_us(time),
        arrival_us=time_us(named["arrival"]) if "arrival" in named else None,
        key=named.get("key"),
    )
    return None if number == "-" else int(number), line


def _order(match: Match) -> tuple[Any, ...]:
    docids = tuple(document.docid for document in match.documents)
    return match.position, match.query, docids, match.roots, _nodes(match.nodes)


def _summary_of(found: Sequence[Match], expected: Sequence[Expected]) -> str:
    """Write down the matches as the case does: of the match expected there, the same kinds."""
    kinds = [each.details.keys() for each in expected] + [()] * len(found)
    return _summary(
        Expected(
            match.query,
            tuple(document.docid for document in match.documents),
            {kind: _DETAILS[kind](match) for kind in wanted},
        )
        for match, wanted in zip(found, kinds, strict=False)
    )


def _summary(matches: Iterable[Expected]) -> str:
    lines = []
    for match in matches:
        lines.append(f"{match.query}  {' '.join(map(str, match.docids))}")
        for kind, details in match.details.items():
            lines += [f"    {kind} {detail}".rstrip() for detail in details]
    return "\n".join(lines)


def _nodes(nodes: dict[str, MatchNode]) -> str:
    return " ".join(f"{name}={node.node}" for name, node in nodes.items())


def _witness(witness: dict[str, MatchNode]) -> str:
    return " ".join(f"{name}={node.node}:{node.value}" for name, node in witness.items())


_DETAILS: dict[str, Callable[[Match], list[str]]] = {
    "roots": lambda match: [" ".join(map(str, match.roots))],
    "nodes": lambda match: [_nodes(match.nodes)],
    "witness": lambda match: [_witness(witness) for witness in match.witnesses],
    "similar": lambda match: [
        " | ".join(f"{score} {','.join(shared)}" for score, shared in each)
        for each in match.similar
    ],
    "omitted": lambda match: [str(match.witnesses_omitted)],
    "streams": lambda match: [" ".join(document.stream for document in match.documents)],
    "keys": lambda match: [" ".join(document.key for document in match.documents)],
    "interval": lambda match: [f"{_clock(match.start_us)} {_clock(match.end_us)}"],
    "parameters": lambda match: [json.dumps(match.parameters, sort_keys=True)],
    "output": lambda match: [match.output],
    "decided": lambda match: [str(match.decided)],
    "confidence": lambda match: [str(match.confidence)],
    "missing": lambda match: [" ".join(str(each.block) for each in match.missing)],
}


def _clock(at_us: int) -> str:
    """Return a time as cases write it."""
    from_midnight_us = at_us - time_us("00:00")
    minutes, rest_us = divmod(from_midnight_us, 60_000_000)
    seconds = f":{rest_us // 1_000_000:02}" if rest_us else ""
    return f"{minutes // 60:02}:{minutes % 60:02}{seconds}"
