"""Conjunctive queries as SELECTs: equal terms become equal columns, many tables become steps.

The time that a database takes to plan a join grows with the cube of its tables: 2 ms for two value
joins with their edges, ten seconds for 64.  So a join of many tables is written as several steps of
few.  Each step joins its tables to the rows of the one before, and hands on the columns that later
steps need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from joins.sql.limits import STEP_TABLES

__all__ = ["Select", "Steps"]


@dataclass
class Select:
    """The tables and conditions of one SELECT, and the column that each term stands for."""

    tables: dict[str, str] = field(default_factory=dict)
    where: list[str] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)

    def add(self, table: str, alias: str, columns: Iterable[tuple[str, str]]) -> None:
        """Add a table whose columns are (term, name)."""
        self.tables[alias] = table
        for term, name in columns:
            column = f"{alias}.{name}"
            if term in self.columns:
                self.where.append(f"{column} = {self.columns[term]}")
            else:
                self.columns[term] = column

    def render(self, columns: Iterable[str]) -> str:
        """Return the SELECT of some columns."""
        select = ",\n    ".join(columns)
        where = "\nWHERE " + "\n    AND ".join(self.where) if self.where else ""
        tables = ",\n    ".join(f"{table} AS {alias}" for alias, table in self.tables.items())
        return f"SELECT\n    {select}\nFROM {tables}{where}"


class Steps:
    """A join step by step; `select` is the step in hand.

    The rows of a step are called `t` in the next one, as are the template rows `t` of the first.
    Their columns `kept`, which are no terms, are handed on to the end.
    """

    def __init__(self, kept: Collection[str] = (), tables_max: int = STEP_TABLES) -> None:
        self.select = Select()
        self._tables_max = tables_max
        self._kept = tuple(kept)
        self._done: list[str] = []

    @property
    def is_full(self) -> bool:
        """Whether a further table goes to a step of its own."""
        return len(self.select.tables) >= self._tables_max

    def end(self, needed: Collection[str]) -> None:
        """End the step in hand; hand on those of its terms that are `needed`."""
        terms = [term for term in self.select.columns if term in needed]
        columns = [f"{self.select.columns[term]} AS {term}" for term in terms]
        found = self.select.render([*columns, *(f"t.{name}" for name in self._kept)])
        name = f"joined{len(self._done) + 1}" if self._done else "joined"
        self._done.append(f"{name} AS MATERIALIZED (\n{found}\n)")
        self.select = Select()
        self.select.add(name, "t", ((term, term) for term in terms))

    def render(self, columns: Iterable[str]) -> str:
        """Return the statement that ends with the step in hand."""
        before = "WITH " + ",\n".join(self._done) + "\n" if self._done else ""
        return before + self.select.render(columns)
