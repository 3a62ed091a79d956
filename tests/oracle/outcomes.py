"""What statements make of their matches: WINDOW, LIMIT and DISJOINT of section 18, by nested loops.

Everything is asked anew for each row and each match: of all matches that are decided by then.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from itertools import product
from typing import Any

from lxml import etree

from broker.documents.document import Document
from broker.matching.match import Match, MatchDocument
from oracle.conditions import Facts, all_of, values_of
from oracle.found import Found
from oracle.graphs import graphs
from oracle.operators import Rules, position
from oracle.rows import Rows
from oracle.values import number, string
from xscl.comparison import (
    Call,
    Cell,
    Conditional,
    Disjunct,
    Row,
    VariableValue,
    operand_terms,
)
from xscl.counting import is_counted
from xscl.functions import Atom
from xscl.meter import Meter
from xscl.nodes import NumberedTree
from xscl.output import build_row
from xscl.path import Parameter
from xscl.query import INFINITE_US, From, Operand, Query, SelectKind, Window
from xscl.table import Action, DeleteRow, SetCell

__all__ = ["Acting", "Decided", "Judged", "behind", "given"]

LISTED = 100
"""Documents that a row lists, and values that `collect` gives."""


@dataclass(frozen=True)
class Decided:
    """A decided match: its tuples as facts, its documents and the numbers of its visible nodes.

    `same` are the values of each key of SAME.
    """

    found: Found
    facts: tuple[Facts, ...]
    documents: tuple[Document, ...]
    visible: tuple[int, ...]
    same: tuple[tuple[str, ...], ...]

    @property
    def docid(self) -> int:
        """Where it is decided."""
        return self.found.match.position

    @property
    def end_us(self) -> int:
        """When it ends."""
        return self.found.match.end_us

    @property
    def order(self) -> tuple[Any, ...]:
        """Its place in a row."""
        match = self.found.match
        positions = tuple(map(position, self.documents))
        blocks = [(each.block, each.branch) for each in match.documents]
        return match.end_us, match.start_us, positions, self.visible, [*zip(*blocks, strict=True)]

    @property
    def turn(self) -> tuple[Any, ...]:
        """Its place in the order of decisions."""
        return self.docid, self.found.depth, *self.order

    def values(self, operand: Operand) -> list[Atom]:
        """Return the values of an operand: of each choice of what it reads, once."""
        choices: dict[tuple[str, ...], list[Atom]] = {}
        for facts in self.facts:
            found = values_of(operand, facts)
            if found is not None:
                read = tuple(_read(each, facts) for each in operand_terms(operand))
                choices[read] = found
        return [value for read in sorted(choices) for value in choices[read]]


def _read(operand: Operand, facts: Facts) -> str:
    values = values_of(operand, facts)
    if isinstance(operand, VariableValue) and operand.variable not in facts.elements:
        return str((values or [""])[0])
    return json.dumps(values, ensure_ascii=False)


@dataclass(frozen=True)
class Acting:
    """A match, or a row, and what it does: its query's actions, of tuples with these facts.

    `newest` is its largest docid.
    """

    found: Found
    newest: int
    query: Query
    facts: Sequence[Facts]

    @classmethod
    def match(cls, query: Query, one: Decided) -> Acting:
        """Return a match, as it acts."""
        return cls(one.found, max(each.docid for each in one.documents), query, one.facts)

    @property
    def rank(self) -> tuple[int, str, str]:
        """Its place in its transaction."""
        return self.newest, self.query.id, self.found.match.id


@dataclass
class Judged:
    """A statement that uses tables, with rows or limits, under one assignment.

    `held` are its matches in earlier transactions, `kept` those, or the rows, that were given.
    """

    query: Query
    rules: Rules
    held: list[Decided] = field(default_factory=list)
    kept: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, query: Query, rules: Rules, point: int, before: Judged | None) -> Judged:
        """Return one that goes on from what was `before` it, as far as it is behind a point."""
        if before is None:
            return cls(query, rules)
        held = [o for o in before.held if min(each.docid for each in o.documents) > point]
        return cls(query, rules, held, behind(before.kept, point))

    def judge(self, docid: int, end_us: int, held: Sequence[Decided], rows: Rows) -> list[Acting]:
        """Return what is given in a transaction, of the matches there; it reads some rows."""
        query, rules = self.query, self.rules
        self.held += held
        if query.rows is None:
            in_turn = sorted(held, key=lambda each: each.turn)
            kept = _limited(query, in_turn, rules, partial(_limit_key, query), self.kept)
            return [Acting.match(query, each) for each in kept]
        own = sorted(
            _rows(query, self.held, rules, rows, only=(docid, end_us)), key=lambda row: row.turn
        )
        kept = _limited(query, own, rules, partial(_limit_key, query), self.kept)
        return [each.acting for each in kept]


def given(
    query: Query,
    matches: Sequence[Decided],
    rules: Rules,
    is_at: Callable[[int], bool],
    kept: list[Any],
) -> list[Found]:
    """Return what a statement without tables gives of its decided matches, where it is in force.

    `kept` is what was kept before, and becomes what is kept by now.
    """
    if query.kind is SelectKind.COMPRESSED:
        return list(graphs(query, matches, rules))
    every = matches if query.rows is None else _rows(query, matches, rules)
    in_turn = sorted((each for each in every if is_at(each.docid)), key=lambda each: each.turn)
    if query.limit is not None or query.kind is SelectKind.DISJOINT:
        in_turn = _limited(query, in_turn, rules, partial(_limit_key, query), kept)
    return [each.found for each in in_turn]


def behind(kept: Iterable[Any], point: int) -> list[Any]:
    """Return what was kept behind a registration point."""
    return [each for each in kept if each.docid > point]


# -- LIMIT, DISJOINT -----------------------------------------------------------------------------


def _limit_key(query: Query, one: Decided | _Row) -> Any:
    if isinstance(one, _Row):
        return one.limit_key
    keys = query.limit.keys if query.limit is not None else ()
    return [sorted({str(value) for value in one.values(key)}) for key in keys]


def _limited(
    query: Query,
    in_turn: Sequence[Any],
    rules: Rules,
    key_of: Callable[[Any], Any],
    kept: list[Any],
) -> list[Any]:
    """Return what is kept of what comes in the order of decisions, behind what was kept before."""
    before = len(kept)
    for one in in_turn:
        if query.kind is SelectKind.DISJOINT and any(
            each.same == one.same
            and _are_together(each, one, _within_us(query, rules), rules)
            and each.found.match.start_us <= one.end_us
            and one.found.match.start_us <= each.end_us
            for each in kept
        ):
            continue
        if query.limit is not None:
            length_us = _length_us(query.limit.length, rules)
            near = [
                each
                for each in kept
                if key_of(each) == key_of(one)
                and abs(each.end_us - one.end_us) < length_us
                and _are_together(each, one, length_us, rules)
            ]
            count = query.limit.count
            most = rules.parameters[count.name] if isinstance(count, Parameter) else count
            if len(near) >= float(most):
                continue
        kept.append(one)
    return kept[before:]


def _are_together(earlier: Any, later: Any, reach_us: int, rules: Rules) -> bool:
    """Section 1.1 of what stands at two positions."""
    oldest_us = later.found.watermark_us - reach_us - rules.lateness_us
    return reach_us >= INFINITE_US or earlier.docid == later.docid or earlier.end_us >= oldest_us


def _within_us(query: Query, rules: Rules) -> int:
    root = query.root
    if not isinstance(root, From) or root.within is None:
        return INFINITE_US
    return _length_us(root.within, rules)


def _length_us(length: Window | Parameter, rules: Rules) -> int:
    if isinstance(length, Window):
        return length.length_us
    return int(rules.parameters[length.name])


# -- WINDOW --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Row:
    found: Found
    keys: tuple[str, ...]
    limit_key: Any
    acting: Acting

    @property
    def docid(self) -> int:
        """Where it is decided."""
        return self.found.match.position

    @property
    def end_us(self) -> int:
        """When it ends."""
        return self.found.match.end_us

    @property
    def turn(self) -> tuple[Any, ...]:
        """Its place in the order of decisions."""
        return self.docid, self.end_us, self.keys


def _rows(
    query: Query,
    matches: Sequence[Decided],
    rules: Rules,
    tables: Rows | None = None,
    only: tuple[int, int] | None = None,
) -> Iterator[_Row]:
    """Yield the rows of matches; or those `only` that stand at one position with one end."""
    assert query.rows is not None
    length_us = _length_us(query.rows.length, rules)
    of_keys: dict[tuple[str, ...], list[Decided]] = {}
    for match in matches:
        values = [{string(v) for v in match.values(key)} for key in query.rows.keys]
        for keys in product(*values):
            of_keys.setdefault(keys, []).append(match)
    for keys, own in of_keys.items():
        for end_us in {match.end_us for match in own}:
            ending = [match for match in own if match.end_us == end_us]
            docid = min(match.docid for match in ending)
            if only is not None and (docid, end_us) != only:
                continue
            first = [match for match in ending if match.docid == docid]
            watermark_us = max(match.found.watermark_us for match in first)
            oldest_us = watermark_us - length_us - rules.lateness_us
            if end_us < oldest_us:
                continue
            some = [
                match
                for match in own
                if match.docid <= docid
                and end_us - length_us <= match.end_us <= end_us
                and (match.docid == docid or match.end_us >= oldest_us)
            ]
            row = _row(query, keys, end_us, docid, watermark_us, some, rules, tables)
            if row is not None:
                yield row


def _row(
    query: Query,
    keys: tuple[str, ...],
    end_us: int,
    docid: int,
    watermark_us: int,
    some: Sequence[Decided],
    rules: Rules,
    tables: Rows | None,
) -> _Row | None:
    rows = query.rows
    assert rows is not None
    some = sorted(some, key=lambda match: match.order)
    aggregates = [aggregated(call, some) for call in rows.aggregates]
    values = [[key] for key in keys] + aggregates
    known: dict[Operand, list[Atom]] = dict(
        zip((*rows.keys, *rows.aggregates), values, strict=True)
    )
    variables = {operand: VariableValue(f"value {i}") for i, operand in enumerate(known)}
    documents = list({position(d): d for match in some for d in match.documents}.values())
    facts = Facts(
        {},
        {each.variable: documents[0] for each in variables.values()},
        end_us,
        end_us,
        rules.parameters,
        folds={variables[operand].variable: tuple(found) for operand, found in known.items()},
        rows=tables,
    )
    if rows.having is not None and not any(
        all_of(_put_all(each, variables), facts) for each in rows.having
    ):
        return None
    if is_counted(query):
        documents.sort(key=lambda document: (document.end_us, position(document)))
    shown: list[Any] = [*keys, *(_shown(each) for each in aggregates)]
    trees = [NumberedTree(etree.fromstring(d.xml)) for d in documents[:LISTED]]
    selected = [*keys, *(_selected(each) for each in aggregates)]
    output, error = build_row(
        query.select, selected, end_us, rules.parameters, lambda: trees, Meter()
    )
    match = Match(
        id=_row_id(query, rules.parameters, keys, end_us),
        query=query.id,
        start_us=end_us,
        end_us=end_us,
        documents=tuple(
            MatchDocument(d.docid, d.stream, d.key, d.end_us) for d in documents[:LISTED]
        ),
        documents_omitted=max(0, len(documents) - LISTED),
        roots=(),
        nodes={},
        witnesses=(),
        output=output,
        output_error=error,
        parameters=dict(rules.parameters),
        decided=docid,
        values=dict(zip(rows.names, shown, strict=True)),
    )
    depth = 1 + max(each.found.depth for each in some)
    latest_us = max(watermark_us, *(each.found.watermark_us for each in some))
    limit_keys = () if query.limit is None else query.limit.keys
    limit_key = [known[key] for key in limit_keys]
    found = Found(match, depth, end_us, latest_us)
    actions = tuple(_put_in(each, variables) for each in query.actions)
    newest = max(each.docid for each in documents)
    acting = Acting(found, newest, replace(query, actions=actions), [facts])
    return _Row(found, keys, limit_key, acting)


def _row_id(query: Query, parameters: Mapping[str, Any], keys: Sequence[str], end_us: int) -> str:
    named = [query.id, query.version, dict(parameters), "row", list(keys), end_us]
    text = json.dumps(named, sort_keys=True, separators=(",", ":"))
    return blake2b(text.encode(), digest_size=16).hexdigest()


_Values = Mapping[Operand, VariableValue]
"""What stands for each key and each aggregate of a row."""


def _put(operand: Operand, values: _Values) -> Any:
    """Return an operand in which the values of a row stand for its keys and aggregates."""
    if operand in values:
        return values[operand]
    match operand:
        case Call(function, arguments):
            return Call(function, tuple(_put(each, values) for each in arguments))
        case Row(table, key):
            return Row(table, _put(key, values))
        case Cell(row, column):
            return Cell(_put(row, values), column)
        case Conditional(condition, then, otherwise):
            return Conditional(
                tuple(_put_all(each, values) for each in condition),
                _put(then, values),
                _put(otherwise, values),
            )
    return operand


def _put_all(disjunct: Disjunct, values: _Values) -> Disjunct:
    return replace(
        disjunct,
        value_joins=tuple(
            replace(each, left=_put(each.left, values), right=_put(each.right, values))
            for each in disjunct.value_joins
        ),
        residuals=tuple(
            replace(each, left=_put(each.left, values), right=_put(each.right, values))
            for each in disjunct.residuals
        ),
        tests=tuple(_put(each, values) for each in disjunct.tests),
    )


def _put_in(action: Action, values: _Values) -> Action:
    if isinstance(action, DeleteRow):
        return DeleteRow(_put(action.row, values))
    return SetCell(_put(action.cell, values), _put(action.value, values))


def aggregated(call: Call, some: Sequence[Decided]) -> list[Atom]:
    """Return an aggregate of matches, which are in order."""
    if not call.arguments:
        return [float(len(some))]
    if call.function in ("argmax", "argmin"):
        return _argument(call, some)
    values = [value for match in some for value in match.values(call.arguments[0])]
    numbers = [_number(value) for value in values]
    texts = list(dict.fromkeys(map(string, values)))
    match call.function:
        case "count":
            return [float(len(values))]
        case "count distinct":
            return [float(len(texts))]
        case "first":
            return values[:1]
        case "last":
            return values[-1:]
        case "collect":
            return values[:LISTED]
        case "collect distinct":
            return list(texts[:LISTED])
        case "sum":
            return [_sum(numbers)]
    if not numbers:
        return []
    if call.function == "avg":
        return [_sum(numbers) / len(numbers)]
    if any(map(math.isnan, numbers)):
        return [math.nan]
    return [min(numbers) if call.function == "min" else max(numbers)]


def _argument(call: Call, some: Sequence[Decided]) -> list[Atom]:
    sign = 1 if call.function == "argmin" else -1
    found: list[tuple[float, int, list[Atom]]] = []
    for place, match in enumerate(some):
        values, keys = (match.values(each) for each in call.arguments)
        numbers = [sign * _number(key) for key in keys]
        if values and numbers and not any(map(math.isnan, numbers)):
            found.append((min(numbers), place, values))
    return min(found)[2] if found else []


def _sum(numbers: Iterable[float]) -> float:
    known = list(numbers)
    if all(map(math.isfinite, known)):
        return float(sum(map(Fraction, known), Fraction(0)))
    return sum(known)


def _number(value: Atom) -> float:
    found = number(value)
    return math.nan if found is None else found


def _shown(values: Sequence[Atom]) -> Any:
    """Return an aggregate as a line shows it."""
    shown = [v if isinstance(v, str) else _whole(v, str) for v in values]
    return shown[0] if len(shown) == 1 else shown


def _selected(values: Sequence[Atom]) -> Any:
    """Return an aggregate as SELECT has it."""
    from decimal import Decimal

    def decimal(value: float) -> Any:
        # As numbers are written: `values.string`.
        return Decimal(repr(value)) if 1e-6 <= abs(value) < 1e15 else value

    numbers = [v if isinstance(v, str) else _whole(v, float, decimal) for v in values]
    return numbers[0] if len(numbers) == 1 else numbers


def _whole(
    value: float, strange: Callable[[float], Any], broken: Callable[[float], Any] = float
) -> Any:
    if not math.isfinite(value):
        return strange(value)
    return int(value) if value == int(value) else broken(value)
