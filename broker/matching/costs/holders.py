"""Which queries have which of the remembered instances that they share with others."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakMethod

import numpy as np

from broker.matching.boxes.columns import Flags, Ints
from broker.matching.boxes.doublekeys import as_keys, next_above
from broker.matching.boxes.exclusions import known_in_pairs
from broker.matching.boxes.numbers import ends_at
from broker.matching.boxes.operands import Operands
from broker.matching.boxes.points import Rows
from broker.matching.costs.documentvalues import DocumentValues
from broker.matching.fanout import FanOut
from broker.matching.usegroups import GroupColumns, TestedPositions
from joins import Positions
from templates.box import Place, Solution, Test
from templates.clause import Clause

__all__ = ["StreamHolders"]

Has = Callable[[int], Flags]
"""Says which of some instances a query has, by its number."""


class StreamHolders:
    """Tells by the values that instances carry whose they are; see `joins.Holders`.

    A query has a tuple of a common stream if it is in the box of one of its uses: the tuple was
    handed on for it.  It has a document if each of its conditions with a constant that is written
    out holds of some node there.  All such nodes are there for whoever has the document
    (`xscl.prefilters`), so this does not depend on who else has it.
    """

    def __init__(self, fan_out: FanOut, rows: Rows) -> None:
        self._fan_out = fan_out
        # The join has these holders: it goes with all that it remembers when nobody has the join.
        self._rows = WeakMethod(rows)

    def of_pairs(self, query_class: int, left: Ints, right: Ints, positions: Positions) -> Has:
        """Return what says of which of some pairs of instances a query has both."""
        clause = next(use.clause for use in self._fan_out.uses_of(query_class))
        asked = [
            self._of_stream(source.below, instances)
            for source, instances in zip(clause.sources, (left, right), strict=True)
            if source.below is not None and source.below.is_common
        ]
        if clause.written:
            asked.append(self._of_documents(query_class, (left, right), positions))

        def has(holder: int) -> Flags:
            held = np.ones(len(left), np.bool_)
            for each in asked:
                held &= each(holder)
            return held

        return has

    def _of_documents(
        self, query_class: int, sides: tuple[Ints, Ints], positions: Positions
    ) -> Has:
        clauses: dict[int, dict[tuple[Test, ...], None]] = {}
        tests: dict[Place, dict[Test, None]] = {}
        row = None
        for use in self._fan_out.uses_of(query_class):
            row = use.clause.query_class.row
            clauses.setdefault(use.holder, {})[use.clause.written] = None
            for test in use.clause.written:
                assert isinstance(test.place, Place)
                tests.setdefault(test.place, {})[test] = None
        rows_of_join = self._rows()
        assert rows_of_join is not None, "the join asks"
        assert row is not None, "the class is in use"
        values = {
            place: DocumentValues(
                rows_of_join, row.variables[place.meta], sides[place.side], positions, own
            )
            for place, own in tests.items()
        }

        def has(holder: int) -> Flags:
            found = np.zeros(len(sides[0]), np.bool_)
            for own in clauses.get(holder, ()):
                held = np.ones(len(sides[0]), np.bool_)
                for test in own:
                    assert isinstance(test.place, Place)
                    held &= values[test.place].fulfil(test)
                found |= held
            return found

        return has

    def _of_stream(self, clause: Clause, instances: Ints) -> Has:
        distinct, inverse = np.unique(instances, return_inverse=True)
        rows_of_join = self._rows()
        assert rows_of_join is not None, "the join asks"
        operands = Operands.of(rows_of_join(distinct.tolist()))
        at = TestedPositions.of(clause)
        spans = np.array(operands.texts(operands.starts + at.span)).astype(np.int64)
        columns_of_bounds = [spans, -operands.column("docid_min")]
        for k, bound in zip(at.numbers, at.bounds, strict=True):
            if isinstance(k, Solution):
                numbers = ends_at(operands, at.carried, k)[not k.is_least]
            else:
                numbers = operands.doubles(operands.starts + k)
            keys = as_keys(-numbers if bound.is_from_below else numbers)
            strict = np.full(len(keys), bound.is_strict)
            columns_of_bounds.append(next_above(keys, strict))
        for k, kind in at.excluded:
            hashes = operands.sole_hashes(operands.starts + k, np.full(len(distinct), kind))
            columns_of_bounds += [*known_in_pairs(*hashes).T]
        tuples = np.stack(columns_of_bounds, axis=1)
        read = (*at.strings, *at.texts, *at.unwanted)
        asked = [operands.texts(operands.starts + k) for k in read]
        values = list(zip(*asked, strict=True)) if asked else [()] * len(distinct)
        rows_of: dict[tuple[str | None, ...], list[int]] = {}
        for row, own in enumerate(values):
            rows_of.setdefault(own, []).append(row)
        held: dict[int, list[tuple[Ints, GroupColumns, int]]] = {}
        for own, rows in rows_of.items():
            strings, texts = own[: len(at.strings)], own[len(at.strings) :]
            for group in self._fan_out.groups_of(clause.stream, strings, texts):
                some, columns = np.array(rows), group.columns
                for use, holder in enumerate(columns.holders.tolist()):
                    held.setdefault(holder, []).append((some, columns, use))

        def has(holder: int) -> Flags:
            found = np.zeros(len(distinct), np.bool_)
            for some, columns, use in held.get(holder, ()):
                found[some] |= columns.has(use, tuples[some])
            return found[inverse]

        return has
