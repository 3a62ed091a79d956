"""The keys of SAME: a variable for each block and key, whose values neighbours have in common."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from templates.elements import RepeatedUnit
from xscl.counting import is_counted
from xscl.path import Literal, Parameter, Path
from xscl.query import (
    Block,
    Elements,
    From,
    Key,
    Query,
    Residual,
    ValueJoin,
    Variable,
    VariableValue,
)
from xscl.sequence import nodes_below, units_of

__all__ = ["SameKeys", "present"]


class SameKeys:
    """The keys of a query with repeated units.

    That a key has the value of a parameter is asked behind runs: all elements have the same.  Where
    runs are counted it is asked of nothing else: what is counted under each is a number of its own.
    """

    def __init__(self, query: Query, units: tuple[RepeatedUnit, ...]) -> None:
        self._query = query
        self._units = units
        self._unit_of = {block: unit for unit in units for block in unit.blocks}
        nodes = nodes_below(query.root)
        keys = [key for node in nodes if isinstance(node, From) for key in node.keys]
        self._numbers = {key: number for number, key in enumerate(keys)}
        self._are_asked_behind = bool(query.parameters) and is_counted(query)

    def literals(self, keys: Iterable[Key], *blocks: int) -> Iterator[Residual]:
        """Yield that keys have the values in blocks which are given with them."""
        for key in keys:
            if key.literal is not None and not self._is_asked_behind(key):
                for block in blocks:
                    yield Residual(VariableValue(key.variable(block)), "=", key.literal)

    def literals_of_elements(self, keys: Iterable[Key], unit: RepeatedUnit) -> list[Residual]:
        """Return which values keys have in elements of runs, where they are written out."""
        written = (key for key in keys if not isinstance(key.literal, Parameter))
        of_candidates = self.literals(written, *unit.blocks)
        return [replace(e, left=Elements(None, "candidate", e.left)) for e in of_candidates]

    def given(self) -> dict[str, Parameter]:
        """Return the variables of keys, also of those that runs carry, that have a given value."""
        found: dict[str, Parameter] = {}
        for key, number in self._numbers.items():
            if isinstance(key.literal, Parameter):
                names = [name for _, name in key.variables]
                names += [unit.key(number) for unit in self._units]
                found |= dict.fromkeys(names, key.literal)
        return found

    def asked_behind(self) -> Iterator[tuple[int, Parameter]]:
        """Yield the places of keys that are asked of what is counted, each with what it must be."""
        for key, number in self._numbers.items():
            if self._is_asked_behind(key) and isinstance(key.literal, Parameter):
                yield number, key.literal

    def _is_asked_behind(self, key: Key) -> bool:
        return self._are_asked_behind and isinstance(key.literal, Parameter)

    def variable(self, key: Key, block: int) -> str:
        """Return the variable of a key in a block; of a run it is the value that it carries."""
        unit = self._unit_of.get(block)
        return key.variable(block) if unit is None else unit.key(self._numbers[key])

    def first(self, key: Key, chosen: Collection[int]) -> str:
        """Return the variable of a key in the first unit of a query, given the blocks chosen."""
        unit = next(units_of(self._query.root))
        return self.variable(key, next((block for block in unit if block in chosen), unit[0]))

    def joins(self, keys: Iterable[Key], left: int, right: int) -> Iterator[ValueJoin]:
        """Yield the conjuncts of SAME that make two blocks have the same keys."""
        for key in keys:
            names = self.variable(key, left), self.variable(key, right)
            yield ValueJoin(*map(VariableValue, names))

    def blocks(self) -> tuple[Block, ...]:
        """Return the blocks with the paths of their keys."""
        paths: dict[int, list[tuple[str, Path]]] = {}
        for node in nodes_below(self._query.root):
            for key in node.keys if isinstance(node, From) else ():
                for block, name in key.variables:
                    paths.setdefault(block, []).append((name, key.path))
        return tuple(
            replace(block, keys=tuple(paths[i])) if i in paths else block
            for i, block in enumerate(self._query.blocks)
        )

    def carried(self) -> Iterator[Variable]:
        """Yield what tuples carry of runs, as variables."""
        for unit in self._units:
            names = (unit.run, *(unit.key(number) for number in self._numbers.values()))
            yield from (Variable(name, unit.first, name) for name in names)


def present(keys: Iterable[Key], block: int) -> tuple[Residual, ...]:
    """Return that a block has keys."""
    return tuple(Residual(VariableValue(key.variable(block)), "!=", Literal("")) for key in keys)
