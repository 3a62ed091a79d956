"""Tuples are read in tables that are neither longer nor larger than asked for, and no sooner."""

from __future__ import annotations

from collections.abc import Iterator

from joins.memory.tupletable import ClassTuple, TupleTable, in_tables


def test_tables_are_put_together_up_to_a_number_of_rows_and_of_bytes() -> None:
    made: list[int] = []

    def tables() -> Iterator[TupleTable]:
        for number in range(8):
            made.append(number)
            yield TupleTable.of_tuples([ClassTuple(1, number, None, 0, (0,))], nbytes=5)

    for size, nbytes, sizes in ((3, 100, [3, 3, 2]), (100, 10, [2, 2, 2, 2]), (100, 8, [2] * 4)):
        made.clear()
        seen = [(len(table), len(made)) for table in in_tables(tables(), size, nbytes)]
        assert [length for length, _ in seen] == sizes
        assert seen[0] == (sizes[0], sizes[0]), "none is made before it is read"
