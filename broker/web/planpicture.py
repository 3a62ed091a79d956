"""The plan of queries as boxes in columns and lines between them, each with its place.

From left to right: streams, the passes over their documents, m-ops behind the ones whose tuples
they take, and queries, in one box where the same m-ops work for them.  Only the largest of each are
drawn, so that a picture is no larger than a page, however many queries there are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import MappingProxyType
from typing import Any

from broker.api.asking.plans import MOp, QueryPlan

__all__ = ["PlanBox", "PlanLine", "PlanPicture", "StreamFlow", "picture_of"]

_STREAMS_MAX = 10
_OPS_MAX = 16
_GROUPS_MAX = 16

_WIDE, _HIGH = 148, 44
_ACROSS, _DOWN = 64, 14
_MARGIN = 8
_LETTERS_MAX = 20
_TITLE_LETTERS_MAX = 17


@dataclass(frozen=True, slots=True)
class StreamFlow:
    """What comes of a stream: documents that are kept, and documents a second."""

    documents: int
    per_second: float


@dataclass(frozen=True, slots=True)
class PlanBox:
    """A stream, an m-op or queries: two lines of text, which may be cut, and the `whole` of it."""

    kind: str
    title: str
    below: str
    whole: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class PlanLine:
    """Where documents, tuples or matches go; `count` is how many, "" where nobody counts."""

    path: str
    count: str = ""
    x: int = 0
    y: int = 0


@dataclass(frozen=True, slots=True)
class PlanPicture:
    """What is drawn, and how much is left out for want of room."""

    width: int
    height: int
    boxes: tuple[PlanBox, ...]
    lines: tuple[PlanLine, ...]
    streams_left: int
    ops_left: int
    queries_left: int
    wide: int = _WIDE
    high: int = _HIGH


@dataclass(frozen=True, slots=True)
class _Group:
    """Queries for which the same of what is drawn works."""

    ops: frozenset[int]
    names: tuple[str, ...]
    matches: int


def picture_of(
    plan: QueryPlan,
    streams: Mapping[str, StreamFlow],
    matches: Mapping[str, int],
    only: str | None = None,
) -> PlanPicture:
    """Return the picture of a plan, with the queries that it works for, or `only` one of them."""
    none = StreamFlow(0, 0.0)
    flows = {stream: streams.get(stream, none) for op in plan.ops for stream in op.reads}
    busiest = sorted(flows, key=lambda name: (-flows[name].documents, name))
    shown = busiest[:_STREAMS_MAX]
    passes = [op for op in plan.ops if op.kind == "patterns" and op.reads[0] in shown]
    largest = sorted(
        (op for op in plan.ops if op.kind != "patterns" and not set(op.reads).isdisjoint(shown)),
        key=lambda op: (-op.operators, op.number),
    )
    drawn = largest[:_OPS_MAX]
    groups = _groups(drawn, matches, only)
    ways = _Drawing()
    ways.column("stream", [(name, name, f"{flows[name].documents:,} kept") for name in shown])
    ways.column("pass", [(op.number, "patterns", _counted(op, only)) for op in passes])
    for layer in _layers(drawn):
        beside = {op.number: op.below[0] for op in layer if op.below}
        ways.column("op", [(op.number, _called(op), _counted(op, only)) for op in layer], beside)
    taken = {below for op in drawn for below in op.below}
    ends_of = {each.ops: sorted(each.ops - taken) or sorted(each.ops) for each in groups}
    beside_ops = {ops: ends[0] for ops, ends in ends_of.items()}
    named = [(each.ops, *_named(each)) for each in groups[:_GROUPS_MAX]]
    ways.column("query", named, beside_ops)
    for op in passes:
        ways.line(op.reads[0], op.number, f"{flows[op.reads[0]].per_second:,.1f} /s")
    for below, number in _taken(passes, drawn):
        ways.line(below, number)
    for group in groups[:_GROUPS_MAX]:
        for at, end in enumerate(ends_of[group.ops]):
            ways.line(end, group.ops, "" if at else f"{group.matches:,}")
    left = sum(len(each.names) for each in groups[_GROUPS_MAX:])
    return ways.picture(len(busiest) - len(shown), len(largest) - len(drawn), left)


def _taken(passes: Sequence[MOp], drawn: Sequence[MOp]) -> Iterator[tuple[int, int]]:
    """Yield each m-op with one that takes its tuples; a pass only where none between them does."""
    pass_of = {op.reads[0]: op.number for op in passes}
    by_number = {op.number: op for op in drawn}
    for op in drawn:
        handed = {s for each in op.below if each in by_number for s in by_number[each].reads}
        for stream in op.reads:
            if stream in pass_of and stream not in handed:
                yield pass_of[stream], op.number
        for below in op.below:
            yield below, op.number


def _groups(drawn: Sequence[MOp], matches: Mapping[str, int], only: str | None) -> Sequence[_Group]:
    ops_of: dict[str, set[int]] = defaultdict(set)
    for op in drawn:
        for query in op.queries if only is None else (only,):
            ops_of[query].add(op.number)
    alike: dict[frozenset[int], list[str]] = defaultdict(list)
    for query, ops in ops_of.items():
        alike[frozenset(ops)].append(query)
    found = [
        _Group(ops, tuple(sorted(names)), sum(matches.get(name, 0) for name in names))
        for ops, names in alike.items()
    ]
    return sorted(found, key=lambda each: (-len(each.names), each.names))


def _layers(drawn: Sequence[MOp]) -> list[list[MOp]]:
    """Return m-ops in columns, none of them left of what it takes tuples of."""
    by_number = {op.number: op for op in drawn}
    depths: dict[int, int] = {}

    def depth(op: MOp) -> int:
        if op.number not in depths:
            known = (by_number[each] for each in op.below if each in by_number)
            depths[op.number] = 1 + max(map(depth, known), default=-1)
        return depths[op.number]

    layers: dict[int, list[MOp]] = defaultdict(list)
    for op in drawn:
        layers[depth(op)].append(op)
    return [layers[each] for each in sorted(layers)]


def _called(op: MOp) -> str:
    rules = " ".join(dict.fromkeys(fired.rule.symbol for fired in op.fired))
    return f"{op.kind} {rules}".strip()


def _counted(op: MOp, only: str | None) -> str:
    if only is not None:
        others = len(op.queries) - 1
        return f"shared with {others:,}" if others else "its own"
    unit = "pattern" if op.kind == "patterns" else "operator"
    return f"{op.operators:,} {unit}{'' if op.operators == 1 else 's'}"


def _named(group: _Group) -> tuple[str, str]:
    if len(group.names) == 1:
        return group.names[0], ""
    return f"{len(group.names):,} queries", ", ".join(group.names[:3])


def _short(text: str, letters: int = _LETTERS_MAX) -> str:
    return text if len(text) <= letters else text[: letters - 1] + "…"


class _Drawing:
    """Boxes by what they stand for, in columns."""

    def __init__(self) -> None:
        self._boxes: dict[object, PlanBox] = {}
        self._lines: list[PlanLine] = []
        self._columns = 0
        self._rows = 0
        self._row_of: dict[object, int] = {}

    def column(
        self,
        kind: str,
        texts: Sequence[tuple[object, str, str]],
        beside: Mapping[Any, object] = MappingProxyType({}),
    ) -> None:
        """Draw boxes right of those before: beside a box where one is named, else in free rows.

        An m-op that is beside none stands below all, out of the way of lines to columns behind it.
        """
        if not texts:
            return
        is_below = kind == "op" and bool(beside)
        rows: dict[object, int] = {}
        for name, _, _ in texts:
            row = self._row_of.get(beside.get(name))
            if row is not None and row not in rows.values():
                rows[name] = row
        taken = set(rows.values())
        free = (row for row in count(self._rows if is_below else 0) if row not in taken)
        for name, title, below in texts:
            row = rows[name] if name in rows else next(free)
            x = _MARGIN + self._columns * (_WIDE + _ACROSS)
            y = _MARGIN + row * (_HIGH + _DOWN)
            whole = " ".join(filter(None, (title, below)))
            self._boxes[name] = PlanBox(
                kind, _short(title, _TITLE_LETTERS_MAX), _short(below), whole, x, y
            )
            self._row_of[name] = row
            self._rows = max(self._rows, row + 1)
        self._columns += 1

    def line(self, start: object, end: object, count: str = "") -> None:
        """Draw a line from a box to one right of it, where both are drawn."""
        if start not in self._boxes or end not in self._boxes:
            return
        left, right = self._boxes[start], self._boxes[end]
        x1, y1, x2, y2 = left.x + _WIDE, left.y + _HIGH // 2, right.x, right.y + _HIGH // 2
        middle = (x1 + x2) // 2
        path = f"M{x1} {y1}C{middle} {y1} {middle} {y2} {x2} {y2}"
        self._lines.append(PlanLine(path, count, x2 - 6, y2 - 6))

    def picture(self, streams_left: int, ops_left: int, queries_left: int) -> PlanPicture:
        """Return all that was drawn."""
        return PlanPicture(
            2 * _MARGIN + self._columns * (_WIDE + _ACROSS) - _ACROSS,
            2 * _MARGIN + self._rows * (_HIGH + _DOWN) - _DOWN,
            tuple(self._boxes.values()),
            tuple(self._lines),
            streams_left,
            ops_left,
            queries_left,
        )
