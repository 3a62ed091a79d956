"""The axis of time of a match: its documents, what its windows would have allowed, and its grace.

A window opens at the end of what stands left of its operator (section 4 of the semantics), so in a
chain of single documents each has a band of its own.  WITHIN has one from the first document on.
Of other shapes no band is drawn, for they would have to be drawn where no document is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from broker.delivery.letter import duration
from broker.documents.document import parse_time
from xscl.parser import parse_file
from xscl.query import INFINITE_US
from xscl.report import Report
from xscl.statement import FromSyntax, PartSyntax, UnitSyntax
from xscl.syntax import DurationSyntax

__all__ = ["Band", "axis_of"]

_WIDTH = 1_000
_BANDS_MAX = 8


@dataclass(frozen=True, slots=True)
class Band:
    """A time on the axis, in its thousandths, and what it is; `kind` is `window` or `grace`."""

    kind: str
    start: int
    width: int
    text: str


def axis_of(text: str | None, line: Mapping[str, Any], lateness_us: int) -> dict[str, Any]:
    """Return where documents lie on the axis of time, and the bands, in thousandths of its length.

    `text` is the query's, as it is registered now; None where it is not.
    """
    times = [parse_time(each["time"]) for each in line["documents"]]
    first, last = min(times), max(times)
    statements = [] if text is None else parse_file(text, Report(text, None))[0]
    found: list[tuple[str, int, int, str]] = []
    source = statements[0].source if len(statements) == 1 else None
    if source is not None:
        given = line.get("parameters", {})
        found = list(_windows(source, times, given))[:_BANDS_MAX]
        if "decided" in line:
            grace_us = _length(statements[0].grace, given)
            grace_us = lateness_us if grace_us is None else min(grace_us, lateness_us)
            found.append(
                ("grace", parse_time(line["end"]), grace_us, f"a grace of {_said(grace_us)}")
            )
    # A grace may be far longer than all that is looked at: it goes over the edge.
    ends = {"window": last, "grace": last}
    for kind, start, length, _ in found:
        ends[kind] = max(ends[kind], start + length)
    whole = max(ends["window"] - first, 1)
    whole = max(whole, min(ends["grace"] - first, round(whole * 1.25)))

    def at(time_us: int) -> int:
        return round((time_us - first) / whole * _WIDTH)

    return {
        "points": [
            {"at": at(time_us), "text": f"{each['stream']} {each['key']}, {each['time']}"}
            for time_us, each in zip(times, line["documents"], strict=True)
        ],
        "bands": [
            Band(kind, at(start), min(_WIDTH, at(start + length)) - at(start), said)
            for kind, start, length, said in found
        ],
        "apart": _said(last - first) if last > first else "",
    }


def _windows(
    source: FromSyntax, times: list[int], given: Mapping[str, Any]
) -> Iterator[tuple[str, int, int, str]]:
    within = _length(source.within, given)
    if within is not None:
        yield "window", min(times), within, f"WITHIN {_said(within)}"
    chain = [part for part in source.parts if isinstance(part, PartSyntax)]
    if len(chain) != len(times) or not all(isinstance(each.operand, UnitSyntax) for each in chain):
        return
    place = 0
    for part in source.parts:
        length = _length(part.braces.window, given) if part.braces is not None else None
        opened = max(times[:place], default=0)
        if isinstance(part, PartSyntax):
            opened = min(opened, times[place])  # of JOIN either may be the first
            place += 1
        if length is not None and opened:
            yield "window", opened, length, f"{part.keyword} {_said(length)}"


def _length(syntax: DurationSyntax | None, given: Mapping[str, Any]) -> int | None:
    if syntax is None:
        return None
    length = syntax.length_us if syntax.parameter is None else given.get(syntax.parameter)
    return length if isinstance(length, int) and length < INFINITE_US else None


def _said(length_us: int) -> str:
    return duration(timedelta(microseconds=length_us))
