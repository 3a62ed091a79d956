"""What ON MATCH does, compiled, and what it locks."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

from broker.tables.locks import Lock
from broker.tables.store import Cell, Place, TableVersions
from xscl.comparison import (
    INSTANTS,
    Call,
    Elements,
    Operand,
    PathFrom,
    Row,
    operand_terms,
    operands_below,
    operands_in,
    term,
)
from xscl.evaluation import (
    Reading,
    StepReading,
    UnboundError,
    Values,
    compile_operand,
    key_reader,
)
from xscl.runvalues import RunAtHand
from xscl.table import Action, SetCell

__all__ = ["Actions", "Beside", "LockReader", "values_of"]


class Beside:
    """A tuple, or a row of WINDOW, beside the tables as they are at its place (`TableReading`).

    `setting` is the row that is being set, with its key.
    """

    __slots__ = (
        "_place",
        "_setting",
        "_tables",
        "_tuple",
        "end_us",
        "parameters",
        "start_us",
        "value",
    )

    def __init__(
        self,
        tuple_: Reading,
        tables: TableVersions,
        place: Place,
        *,
        setting: tuple[Row, str] | None = None,
    ) -> None:
        self.start_us, self.end_us = tuple_.start_us, tuple_.end_us
        self.parameters = tuple_.parameters
        self.value = tuple_.value
        self._tuple = tuple_
        self._tables = tables
        self._place = place
        self._setting = setting

    @property
    def run(self) -> RunAtHand:
        """The keys and aggregates of a row of WINDOW; a tuple has none."""
        return cast(StepReading, self._tuple).run

    def cell(self, table: str, key: str, column: str) -> Cell:
        """Return a cell."""
        return self._tables.cell(table, key, column, self._place)

    def has_row(self, table: str, key: str) -> bool:
        """Return whether a row is there."""
        return self._tables.has_row(table, key, self._place)

    def bound_key(self, row: Row) -> str | None:
        """Return the key of the row that is being set."""
        return self._setting[1] if self._setting is not None and self._setting[0] == row else None


@dataclass(frozen=True, slots=True)
class _CompiledAction:
    """One action; it removes a row where it has no column."""

    row: Row
    column: str
    keys: Callable[[Reading], list[str]]
    value: Callable[[Reading], Values] | None


class Actions:
    """The actions of a statement; `reads` and `writes` are the locks that they take.

    They happen for each different choice of the values of the terms that they mention.
    """

    def __init__(self, actions: Sequence[Action]) -> None:
        operands: list[Operand] = []
        self._compiled: list[_CompiledAction] = []
        for action in actions:
            if isinstance(action, SetCell):
                row, column = action.cell.row, action.cell.column
                operands += [row.key, action.value]
                value = compile_operand(action.value)
                self._compiled.append(_CompiledAction(row, column, key_reader(row), value))
            else:
                operands.append(action.row.key)
                row = action.row
                self._compiled.append(_CompiledAction(row, "", key_reader(row), None))
        mentioned = dict.fromkeys(each for operand in operands for each in _mentioned(operand))
        self._mentioned = [_values(each) for each in mentioned]
        self.reads = LockReader(dict.fromkeys(row for each in operands for row in _rows_in(each)))
        self.writes = LockReader(dict.fromkeys(each.row for each in self._compiled))

    def choices(self, tuples: Sequence[Reading]) -> Sequence[Reading]:
        """Return a tuple for each different choice of values, in the order of the values."""
        if len(tuples) == 1:
            return tuples
        found: dict[tuple[tuple[str, ...], ...], Reading] = {}
        for each in tuples:
            found.setdefault(tuple([values(each) for values in self._mentioned]), each)
        return [found[key] for key in sorted(found)]

    def act(self, choices: Sequence[Reading], tables: TableVersions, place: Place) -> None:
        """Do the actions for some choices, one action after the other."""
        for action in self._compiled:
            for choice in choices:
                now = Beside(choice, tables, place)
                for key in _known(action.keys, now):
                    if action.value is None:
                        tables.delete(action.row.table, key, place)
                    else:
                        setting = (action.row, key)
                        at_row = Beside(choice, tables, place, setting=setting)
                        values = _known(action.value, at_row)
                        if not values:
                            continue
                        value = values[0] if isinstance(values[0], str) else float(values[0])
                        if value == value:
                            tables.set(action.row.table, key, action.column, value, place)


def _mentioned(operand: Operand) -> Iterator[Operand]:
    """Yield what an operand mentions: terms, and of elements what each of them has."""
    if isinstance(operand, Elements):
        if operand.function == "fold":
            yield operand
        elif operand.operand is not None:
            for one in operand_terms(operand.operand):
                is_time = isinstance(one, Call) and one.function in INSTANTS
                yield Elements(operand.run, "last" if is_time else "all", one)
    elif any(isinstance(each, Elements) for each in operands_below(operand)):
        for each in operands_in(operand):
            yield from _mentioned(each)
    else:
        yield from operand_terms(operand)


def _values(mentioned: Operand) -> Callable[[Reading], tuple[str, ...]]:
    """Return what gives the values of what is mentioned, as they are compared and ordered."""
    if isinstance(mentioned, Elements):
        read = compile_operand(mentioned)
        return lambda reading: tuple(map(str, _known(read, reading)))
    return lambda reading: values_of(mentioned, reading)


_T = TypeVar("_T")


def _known(read: Callable[[Reading], Sequence[_T]], reading: Reading) -> Sequence[_T]:
    """Return the values of an operand; of an aggregate of nothing, say, there are none."""
    try:
        return read(reading)
    except UnboundError:
        return ()


def values_of(read: Operand, one: Reading) -> tuple[str, ...]:
    """Return the values of a term in a tuple: an optional path may have none, or several."""
    value = one.value(term(read))
    return tuple(json.loads(value)) if isinstance(read, PathFrom) else (value,)


class LockReader:
    """What rows come to as locks in a tuple: whole tables where a key depends on another row."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._whole: list[Lock] = []
        self._keyed: list[tuple[str, Callable[[Reading], list[str]]]] = []
        for row in rows:
            if any(True for _ in _rows_in(row.key)):
                self._whole.append(Lock(row.table, None))
            else:
                self._keyed.append((row.table, key_reader(row)))

    def locks(self, tuple_: Reading) -> list[Lock]:
        """Return the locks of the rows in a tuple."""
        keyed = [Lock(table, key) for table, keys in self._keyed for key in _known(keys, tuple_)]
        return [*self._whole, *keyed]


def _rows_in(operand: Operand) -> Iterable[Row]:
    return (each for each in operands_below(operand) if isinstance(each, Row))
