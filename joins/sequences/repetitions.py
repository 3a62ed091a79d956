"""The repetitions among the classes of a join: their runs become instances, and tuples of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pyarrow as pa

from joins.budget.limits import RunLimits
from joins.budget.pairs import Overrun
from joins.classes import UseKind
from joins.engines import Processor
from joins.memory.durations import UNBOUNDED
from joins.memory.tupletable import TupleTable
from joins.sequences.awake import Awake
from joins.sequences.batch import DecidingBatch
from joins.sequences.counting.found import EndsInOrder, FoundGraph
from joins.sequences.lockstep.columnchains import ColumnChainEvaluation
from joins.sequences.lockstep.compilation import LOOPS
from joins.sequences.lockstep.runtable import RunTable
from joins.sequences.repeated.elements import UnitElements
from joins.sequences.repeated.runs import RunEvaluation
from joins.sequences.repeated.shared import SharedSides
from joins.sequences.rowreaders import RowReaders
from joins.sequences.runconditions import Key
from joins.sequences.runends import CountedEnds, is_plain_end
from joins.sequences.runevaluations import (
    AnyDecision,
    AnyEvaluation,
    AnyRuns,
    CountedEvaluation,
    RowEvaluation,
    evaluation_of,
    is_of_table,
    rows_of,
)
from joins.sequences.runrows import (
    ChainRows,
    Documents,
    FoundRows,
    GraphRows,
    in_order,
    standing_before,
)
from templates.chaincode import ChainProgram
from templates.chaindecision import ChainDecision, DecidedChains
from templates.runchains import in_columns

__all__ = ["Repetitions"]


class Repetitions:
    """Classes of runs by number, over a join that keeps what they are made of."""

    def __init__(self, inner: Processor, lateness_us: int, limits: RunLimits) -> None:
        self._inner = inner
        self._limits = limits
        self._lateness_us = lateness_us
        # A class has a member for each vector of data that it is decided for.
        self._members: dict[tuple[int, Key], int] = {}
        self._class_of: dict[int, int] = {}
        self._numbers = count(1)
        self._classes: dict[int, AnyRuns] = {}
        self._rows: dict[int, FoundRows[Any]] = {}
        self._of_strata: dict[int, dict[int, None]] = {}
        self._kinds: dict[int, Counter[UseKind]] = {}
        self._evaluations: dict[AnyDecision, AnyEvaluation] = {}
        # A decision is large: to look one up costs more than what it does in a batch.
        self._of_class: dict[int, AnyEvaluation] = {}
        self._tables: list[RunTable] = []
        self._leaving: list[AnyDecision] = []
        self._sides = SharedSides(limits)
        # The classes of each stratum: of tables, by statement, and the others.
        self._of_tables: dict[int, dict[RunTable, dict[int, list[int]]]] = {}
        self._beside: dict[int, dict[RowEvaluation, list[int]]] = {}
        self._awake: Awake[RowEvaluation | RunTable] = Awake()
        self._readers = RowReaders(self._awake, self._sides, lateness_us, limits)
        self._over: set[RowEvaluation | RunTable] = set()
        self._are_asked = False
        self._last_identity = 0
        self._documents: dict[int, Documents] = {}

    def __len__(self) -> int:
        return len(self._evaluations)

    @property
    def waiting(self) -> int:
        """How many elements wait until they are settled."""
        own = sum(
            each.waiting for each in self._awake.waiting if not isinstance(each, RunEvaluation)
        )
        return self._sides.waiting + own

    # -- classes -------------------------------------------------------------------------------

    def add(
        self,
        query_class: int,
        stratum: int,
        runs: AnyRuns,
        kind: UseKind,
        times: int = 1,
        said: Key = (),
    ) -> None:
        """Add so many uses of a class, for a vector of what it is given."""
        number = self._members.get((query_class, said))
        if number is None:
            number = self._members[query_class, said] = next(self._numbers)
            own = runs.under(said) if said else runs
            self._kinds[number] = Counter()
            self._of_strata.setdefault(stratum, {})[number] = None
            self._classes[number], self._class_of[number] = own, query_class
            self._rows[number] = rows_of(query_class, own, self._documents)
        self._kinds[number][kind] += times

    def remove(self, query_class: int, kind: UseKind, times: int = 1, said: Key = ()) -> None:
        """Undo so many of what `add` did; of a class that is not there it changes nothing."""
        number = self._members.get((query_class, said))
        if number is None:
            return
        kinds = self._kinds[number]
        kinds[kind] -= times
        if not kinds[kind]:
            del kinds[kind]
        if not kinds:
            del self._members[query_class, said], self._class_of[number], self._kinds[number]
            decision = self._classes.pop(number).decision
            self._of_class.pop(number, None)
            del self._rows[number]
            if decision in self._evaluations and self._evaluations[decision].limit:
                # What is over its budget begins anew where it is used again.
                self._leave(decision)
            else:
                self._leaving.append(decision)
            for numbers in self._of_strata.values():
                numbers.pop(number, None)

    def _leave(self, decision: AnyDecision) -> None:
        """Forget an evaluation; others of its table go on without it."""
        gone = self._evaluations.pop(decision, None)
        self._of_class = {n: each for n, each in self._of_class.items() if each is not gone}
        if isinstance(gone, ColumnChainEvaluation):
            gone.leave()
        elif gone is not None:
            self._awake.leave(gone)
            self._over.discard(gone)
            self._readers.leave(gone)
            if isinstance(gone, RunEvaluation):
                gone.leave()

    def _shape_of(self, runs: AnyRuns) -> int:
        """Return the shape of runs as instances: a root, and a node for each term."""
        [number] = self._inner.tuple_shapes([runs.stream], [runs.variables])
        return number

    def follow(self) -> None:
        """Begin with repetitions that came into use, and leave those out of use.

        What was out of use between batches alone goes on: who reads what others publish is added
        anew when these go.
        """
        leaving, self._leaving = self._leaving, []
        for decision in leaving:
            if all(each.decision != decision for each in self._classes.values()):
                self._leave(decision)
        for number, runs in self._classes.items():
            if number not in self._of_class:
                self._of_class[number] = self._begin(runs)
        in_use = [e.table for e in self._evaluations.values() if is_of_table(e)]
        before, self._tables = self._tables, list(dict.fromkeys(in_use))
        for table in before:
            if table not in self._tables:
                self._awake.leave(table)
                self._over.discard(table)
        one_by_one: list[RowEvaluation] = []
        for evaluation in self._evaluations.values():
            if not isinstance(evaluation, ColumnChainEvaluation):
                one_by_one.append(evaluation)
        self._keep()
        self._readers.follow(one_by_one, self._tables)
        self._beside, self._of_tables, self._are_asked = {}, {}, True
        strata: dict[UnitElements, int] = {}
        for stratum, numbers in self._of_strata.items():
            for number in numbers:
                own = self._of_class[number]
                if isinstance(own, ColumnChainEvaluation):
                    of_table = self._of_tables.setdefault(stratum, {}).setdefault(own.table, {})
                    of_table.setdefault(own.number, []).append(number)
                    continue
                self._beside.setdefault(stratum, {}).setdefault(own, []).append(number)
                if isinstance(own, RunEvaluation) and not isinstance(own, CountedEvaluation):
                    strata[own.elements] = min(stratum, strata.get(own.elements, stratum))
        self._sides.follow(strata)

    def _keep(self) -> None:
        """Have runs that say for how long they are remembered be so for the longest one."""
        kept: dict[RunEvaluation, int] = {}
        for number, own in self._of_class.items():
            if isinstance(own, RunEvaluation) and own.decision.is_kept_as_said:
                longest_us = max(kind.window_us for kind in self._kinds[number])
                kept[own] = max(longest_us, kept.get(own, 0))
        for own, longest_us in kept.items():
            own.retention_us = min(longest_us, UNBOUNDED)

    def _begin(self, runs: AnyRuns) -> AnyEvaluation:
        """Return what finds runs, which reads what stands before them from now on."""
        evaluation = self._evaluations.get(runs.decision)
        if evaluation is None:
            evaluation = self._evaluations[runs.decision] = self._evaluation(runs.decision)
        if isinstance(runs, DecidedChains):
            assert not isinstance(evaluation, RunEvaluation)
            for step, each in enumerate(runs.steps):
                if each.stream is not None:
                    evaluation.read(step, each.stream)
        elif runs.left is not None and isinstance(evaluation, ColumnChainEvaluation):
            evaluation.read(0, runs.left)
        elif runs.left is not None:
            assert isinstance(evaluation, RunEvaluation)
            evaluation.read(runs.left)
        return evaluation

    def _evaluation(self, decision: AnyDecision) -> AnyEvaluation:
        """Return an evaluation that begins: in columns, where it can be and loops are compiled."""
        if self._limits.in_columns:
            stepped = in_columns(decision)
            if stepped is not None and LOOPS.are_ready():
                return ColumnChainEvaluation(*stepped, self._table(*stepped))
        return evaluation_of(decision, self._lateness_us, self._limits, self._sides)

    def _table(self, decision: ChainDecision, program: ChainProgram) -> RunTable:
        """Return a table for a chain: one that reads the same elements, before these have come."""
        for table in self._tables:
            if not table.has_begun and table.reads_as(decision, program):
                return table
        self._tables.append(RunTable(decision, program, self._lateness_us, self._limits))
        return self._tables[-1]

    # -- a batch -------------------------------------------------------------------------------

    def begin_batch(self) -> None:
        """Forget how to find out what counted runs of the last batch are made of."""
        self._documents.clear()
        self._awake.begin_batch()
        self._readers.begin_batch()
        self._sides.begin_batch()

    def documents_of(self, number: int) -> Documents | None:
        """Return what finds the documents of counted runs of the batch; None if they are known."""
        return self._documents.get(number)

    def absorb(self, instances: pa.Table, first: int) -> None:
        """Take instances, numbered from `first` on, as elements and as what stands before."""
        if self._evaluations:
            self._readers.absorb(instances, first)

    def tables(self, stratum: int, batch: DecidingBatch) -> Iterator[TupleTable]:
        """Yield the tuples of classes that are found in a stratum; their runs become instances."""
        for number in self._finding(stratum, batch):
            yield from self._portions(number, batch)

    def _finding(self, stratum: int, batch: DecidingBatch) -> list[int]:
        """Return the classes that may find something: of thousands most do not."""
        for reader in self._sides.take_new(stratum, batch.clock):
            assert isinstance(reader, RunEvaluation)
            self._awake.wake(reader)
        beside, of_tables = self._beside.get(stratum, {}), self._of_tables.get(stratum, {})
        found: list[int] = []
        for each in list(self._awake.at(batch.clock.newest_us)):
            if not isinstance(each, RunTable):
                found += beside.get(each, ())
            elif each in of_tables:
                for statement in each.finding(batch.clock):
                    found += of_tables[each].get(statement, ())
                self._note_decided(each)
        return sorted(found)

    def _note_decided(self, one: RowEvaluation | RunTable) -> None:
        """Have what has decided sleep until something comes for it, or is settled."""
        self._awake.has_decided(one)
        if one.is_over:
            self._over.add(one)

    def _ask(self, takes: Callable[[int], object]) -> None:
        """Have tables note what ends need of elements, where `takes` names a class of theirs."""
        for of_tables in self._of_tables.values():
            for table, of_statements in of_tables.items():
                numbers = (number for own in of_statements.values() for number in own)
                table.is_charged |= any(
                    self._counts_heads(n) and takes(self._class_of[n]) for n in numbers
                )

    def _counts_heads(self, number: int) -> bool:
        rows = self._rows[number]
        return isinstance(rows, ChainRows) and rows.makes_one_tuple

    def ends(
        self, stratum: int, batch: DecidingBatch, takes: Callable[[int], object]
    ) -> Iterator[tuple[int, CountedEnds]]:
        """Yield the ends of runs that are no more than a number, of classes that `takes` names.

        They are no tuples of `tables` then.
        """
        if self._are_asked:
            self._are_asked = False
            self._ask(takes)
        for number in self._finding(stratum, batch):
            rows, evaluation = self._rows[number], self._of_class[number]
            query_class = self._class_of[number]
            if isinstance(evaluation, ColumnChainEvaluation):
                if self._counts_heads(number) and takes(query_class):
                    yield from self._ends_of_heads(number, evaluation, batch)
            elif isinstance(rows, GraphRows) and takes(query_class):
                plain: list[FoundGraph] = []
                others = batch.others[number] = []
                found = self._found(number, batch)
                if isinstance(found, EndsInOrder):
                    if len(found):
                        yield query_class, CountedEnds.in_order(found, rows)
                    continue
                for one in found:
                    (plain if is_plain_end(one) else others).append(one)
                if plain:
                    yield query_class, CountedEnds.of(plain, rows)

    def _ends_of_heads(
        self, number: int, evaluation: ColumnChainEvaluation, batch: DecidingBatch
    ) -> Iterator[tuple[int, CountedEnds]]:
        # A statement that shows runs may have gone, and none has come.
        evaluation.table.is_charged = True
        found, others = evaluation.decide_ends(batch.clock)
        batch.others[number] = in_order(list(others), evaluation.limit)
        ends = CountedEnds.of_heads(found, evaluation.limit)
        if len(ends):
            yield self._class_of[number], ends

    def _found(self, number: int, batch: DecidingBatch) -> list[Any] | EndsInOrder[Any]:
        """Return the runs of a class in the batch, in the order of the documents where they stand.

        Classes share what has been found.
        """
        evaluation = self._of_class[number]
        known = batch.found.get(evaluation)
        if known is not None:
            return known
        found: list[Any]
        if isinstance(evaluation, CountedEvaluation):
            ends = evaluation.decide_ends(batch.clock)
            if ends is not None:
                batch.found[evaluation] = ends
                self._note_decided(evaluation)
                return ends
            found = list(evaluation.decide_graphs(batch.clock))
        else:
            found = list(evaluation.decide(batch.clock))
        if not isinstance(evaluation, ColumnChainEvaluation):
            self._note_decided(evaluation)
        batch.found[evaluation] = found = in_order(found, evaluation.limit)
        return found

    def _portions(self, number: int, batch: DecidingBatch) -> Iterator[TupleTable]:
        """Yield the tuples of a class, some at a time: it may be limited between two portions."""
        found: list[Any] | EndsInOrder[Any] | None = batch.others.get(number)
        if found is None:
            found = self._found(number, batch)
        if isinstance(found, EndsInOrder):
            # Runs are told by the objects that stand for them.
            found = batch.found[self._of_class[number]] = found.graphs()
        if not found:
            return
        # It is another one where nothing had the shape for a while, and it was forgotten.
        shape = self._shape_of(self._classes[number])
        rows, most = self._rows[number], self._limits.spelled_bytes
        remaining = iter(found)
        while True:
            some = standing_before(remaining, batch.limits[self._class_of[number]])
            first = self._inner.next_instance
            table, tuples = rows.table(some, first, shape, batch.identity, most)
            if not len(tuples):
                break
            self._inner.absorb(table)
            yield tuples

    def next_identity(self) -> int:
        """Return a number that no choice of nodes of elements has had."""
        self._last_identity = self._last_identity % ((1 << 31) - 1) + 1
        return self._last_identity

    def overruns(self) -> list[Overrun]:
        """Return the uses of classes whose runs are too many from a document on."""
        if not self._over:
            return []
        return [
            Overrun(
                self._class_of[number],
                kind,
                limit,
                0,
                (),
                of_runs=self._limits,
                of_steps=isinstance(evaluation, CountedEvaluation),
            )
            for number, evaluation in self._of_class.items()
            if (limit := evaluation.limit) is not None
            for kind in self._kinds[number]
        ]

    def evict(self, horizon_us: int) -> None:
        """Forget what no run can take any more, of what has grown in the batch."""
        for each in self._awake.decided:
            each.evict(horizon_us)
        self._sides.evict(horizon_us)
        self._readers.rest(horizon_us)
