"""What a query asks of tables and does to them, in words, and who else uses these tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from broker.explain.spelling import spell_comparison, spell_operand
from broker.explain.trees import wrap
from xscl.comparison import Call, Operand, Residual, Row, operands_below
from xscl.dependencies import NodeKind, dependencies, groups
from xscl.query import Query
from xscl.sequence import From
from xscl.table import DeleteRow, SetCell

__all__ = ["table_lines"]


def table_lines(query: Query, queries: Sequence[Query]) -> Iterator[str]:
    """Yield what a query has to do with tables, among the queries that it is registered with."""
    if query.table is not None:
        yield from _created(query, queries)
    elif query.tables:
        yield from _asked(query)
        yield from _done(query)
        for name in sorted(query.table_names):
            yield from _users(query, name, queries)
        yield from _together(query, queries)


def _created(query: Query, queries: Sequence[Query]) -> Iterator[str]:
    assert query.table is not None
    key, *columns = query.table.columns
    yield f"the table {query.table.name}, a row for each {key.name}"
    for column in columns:
        default = spell_operand(column.default) if column.default is not None else "nothing"
        yield f"{column.name} is {default} where no row says otherwise"
    yield f"documents of the stream TABLE.{query.table.name} load it"
    yield from _users(query, query.table.name, queries)


def _asked(query: Query) -> Iterator[str]:
    labels = {variable.name: variable.label for variable in query.variables}
    where = query.root.where or () if isinstance(query.root, From) else ()
    having = () if query.rows is None else query.rows.having or ()
    for who, asked in (("", where), ("HAVING ", having)):
        for number, disjunct in enumerate(asked):
            conditions: list[Residual | Call] = [*disjunct.residuals, *disjunct.tests]
            for each in filter(_has_row, conditions):
                word = "or asks" if number else "asks"
                yield f"{who}{word} {_spelled(each, labels)}, as the transactions before left it"


def _has_row(asked: Residual | Call) -> bool:
    operands: tuple[Operand, ...] = (asked,) if isinstance(asked, Call) else ()
    if isinstance(asked, Residual):
        operands = (asked.left, asked.right)
    return any(isinstance(each, Row) for o in operands for each in operands_below(o))


def _spelled(asked: Residual | Call, labels: dict[str, str]) -> str:
    if isinstance(asked, Residual):
        return spell_comparison(asked, labels)
    return spell_operand(asked, labels)


def _done(query: Query) -> Iterator[str]:
    labels = {variable.name: variable.label for variable in query.variables}
    what = "match" if query.rows is None else "row"
    for action in query.actions:
        match action:
            case SetCell(cell, value):
                cell_text = spell_operand(cell, labels)
                yield f"each {what} sets {cell_text} to {spell_operand(value, labels)}"
            case DeleteRow(row):
                yield f"each {what} removes {spell_operand(row, labels)}"


def _users(query: Query, table: str, queries: Sequence[Query]) -> Iterator[str]:
    others = [each for each in queries if each.id != query.id and each.table is None]
    for word, is_written in (("read", False), ("written", True)):
        users = [
            each.id
            for each in others
            if any(use.table == table and use.is_written == is_written for use in each.tables)
        ]
        if users:
            yield f"{table} is {word} by {wrap(users)}{'' if query.table else ' too'}"


def _together(query: Query, queries: Sequence[Query]) -> Iterator[str]:
    own = [each for each in queries if each.table is None and (each.tables or each.publish)]
    for nodes in groups(dependencies(own)):
        names = {node.name for node in nodes if node.part is not NodeKind.TABLE}
        if query.id in names and len(names) > 1:
            others = sorted(names - {query.id})
            yield f"its transactions run one after the other with those of {wrap(others)}"
