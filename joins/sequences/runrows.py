"""Runs as instances of a join: rows that others read, each with its run as a value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from itertools import product, takewhile
from typing import Any, Generic, Protocol, TypeVar

import pyarrow as pa

from joins.memory.durations import UNBOUNDED
from joins.memory.instance import INSTANCE_SCHEMA
from joins.memory.slots import Ints
from joins.memory.tupletable import ClassTuple, TuplePosition, TupleTable
from joins.sequences.chained.chainparts import DecidedChain
from joins.sequences.chained.chainsteps import StepEvaluation
from joins.sequences.counting.found import EndsInOrder, FoundGraph
from joins.sequences.lockstep.found import ColumnChain
from joins.sequences.runconditions import RunConditions
from joins.sequences.runparts import DecidedRun, Extent, Part, PartRow
from templates.chaindecision import DecidedChains
from templates.rundecision import (
    DecidedRuns,
    Run,
    RunAtHand,
    RunElement,
    RunReading,
    TermNode,
    Values,
    compile_disjuncts,
)

__all__ = [
    "ChainRows",
    "Documents",
    "FoundRows",
    "GraphRows",
    "RunRows",
    "in_order",
    "standing_before",
]

_ROW = pa.schema(list(INSTANCE_SCHEMA)[1:])
_VALUES = _ROW.get_field_index("vals")

_Identity = Callable[[tuple[Any, ...]], int]

Documents = Callable[[], Sequence[int]]
"""Finds out of which documents counted runs are: their instances."""


class FoundRun(Protocol):
    """A run that has been found, or a run over a chain."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its instances in order."""

    @property
    def docid(self) -> int | None:
        """Where it stands, if it was decided."""


def _stands_at(one: FoundRun) -> int:
    """Return the document at which a run stands."""
    return one.docid or max([part.docid for part in one.parts])


def in_order(found: list[Any], limit: int | None) -> list[Any]:
    """Return runs by the documents where they stand, before a document if one is given."""
    found.sort(key=_stands_at)
    if limit is not None:
        # The statements are over their budget from there on: nothing is made of these.
        del found[bisect_left(found, limit, key=_stands_at) :]
    return found


F = TypeVar("F", bound=FoundRun)


def standing_before(found: Iterator[F], docid: int) -> Iterator[F]:
    """Return runs that come in the order of where they stand, up to the first that stands there."""
    return found if docid >= UNBOUNDED else takewhile(lambda one: _stands_at(one) < docid, found)


class FoundRows(ABC, Generic[F]):
    """Makes the rows of one class of what has been found.

    `identity` gives equal numbers to the choices of nodes of a run that are equal, in a batch.
    """

    def __init__(self, number: int, decided: DecidedRuns | DecidedChains) -> None:
        self._number = number
        self._stream, self._terms = decided.stream, decided.terms
        self._grace_us = decided.decision.grace_us
        given = zip(decided.given, decided.said, strict=True)
        self._given = {name: TermNode(0, value) for name, value in given}

    def table(
        self, found: Iterable[F], first: int, shape: int, identity: _Identity, most: int
    ) -> tuple[pa.Table, TupleTable]:
        """Return rows of `INSTANCE_SCHEMA` that get numbers from `first` on, and their tuples.

        `shape` is the shape of the instances.  No more is taken of what was found than has `most`
        bytes of values.
        """
        rows: list[tuple[Any, ...]] = []
        tuples: list[ClassTuple] = []
        nbytes = 0
        for one in found:
            extent = self._extent(one)
            position = self._position(one, extent)
            for terms in self.terms(one, identity):
                number = first + len(rows)
                rows.append(row := self._row(extent, terms, shape))
                nbytes += sum([len(value) for value in row[_VALUES] if value])
                tuples.append(ClassTuple(self._number, number, None, 0, (0,), position))
            if nbytes >= most:
                break
        columns = zip(*rows, strict=True) if rows else [() for _ in _ROW]
        arrays = [pa.array(own, each.type) for own, each in zip(columns, _ROW, strict=True)]
        table = pa.Table.from_arrays(arrays, schema=_ROW)
        return table, TupleTable.of_tuples(tuples, nbytes)

    @abstractmethod
    def terms(self, one: F, identity: _Identity) -> Iterator[Mapping[str, TermNode]]:
        """Yield what the terms of each row of a tuple are bound to."""

    def _extent(self, one: F) -> Extent:
        return one.extent if isinstance(one, ColumnChain) else Extent.of(one.parts)

    def _position(self, one: F, extent: Extent) -> TuplePosition | None:
        if one.docid is None:
            return None
        watermark_us = max(extent.end_us + self._grace_us, extent.watermark_us)
        return TuplePosition(one.docid, 1 + extent.depth, watermark_us, extent.end_us)

    def _row(self, extent: Extent, terms: Mapping[str, TermNode], shape: int) -> tuple[Any, ...]:
        """Return an instance, by the columns of `_ROW`."""
        newest, given = extent.newest, self._given
        bound = [given[name] if name in given else terms[name] for name in self._terms]
        return (
            self._stream,
            "",
            newest.docid,
            newest.depth,
            newest.match_id,
            extent.docid_min,
            extent.docid_max,
            extent.start_us,
            extent.end_us,
            newest.watermark_us,
            shape,
            extent.leaves,
            [0, *[each.node for each in bound]],
            [None, *[each.value for each in bound]],
        )


AnyRun = DecidedRun | ColumnChain


class RunRows(FoundRows[AnyRun]):
    """Makes the rows of one class of runs."""

    def __init__(self, number: int, runs: DecidedRuns) -> None:
        super().__init__(number, runs)
        self._runs = runs
        self._first = compile_disjuncts((runs.first,))
        self._keys = {each.block: each.keys for each in runs.decision.elements}
        self._folding = [
            RunConditions(begin, runs.decision) if begin.folds else None
            for begin in runs.decision.begins
        ]

    def terms(self, one: AnyRun, identity: _Identity) -> Iterator[Mapping[str, TermNode]]:
        """Yield what stands before with which the run begins, each with the run."""
        if isinstance(one, ColumnChain):
            own = column_terms(one, 1, self._runs.run, self._runs.keys, self._keys, identity)
            first = one.first_of(1)
            lefts = self._lefts(one.first_of(0), first, 0)
        else:
            head = one.head
            own = run_terms(
                self._runs.run, self._runs.keys, self._keys, head.elements, head.folds, identity
            )
            first = head.elements[0]
            lefts = self._lefts(head.left, first, head.begin)
        said = zip(self._runs.data, first.data, strict=True)
        own |= {name: TermNode(0, value) for name, value in said}
        for row in lefts:
            yield {**row.terms, **own}

    def _lefts(self, left: Part | None, first: Part, begin: int) -> Iterator[PartRow]:
        """Yield the rows of what stands before with which a run begins."""
        if self._runs.left is None or left is None:
            yield PartRow({})
            return
        folding = self._folding[begin]
        folds = {} if folding is None else folding.first_folds(left, first)
        run = RunAtHand((), first.element, folds)
        for row in left.rows.get(self._runs.left.name, ()):
            if self._first(RunReading(row.terms, left.start_us, first.end_us, run)):
                yield row


class GraphRows(FoundRows[FoundGraph]):
    """Makes the rows of one class of counted runs: one of all that end at one time.

    Where the documents of some are found out later, `documents` has who does it, by their number.
    """

    def __init__(
        self,
        number: int,
        runs: DecidedRuns | DecidedChains,
        documents: MutableMapping[int, Documents],
    ) -> None:
        super().__init__(number, runs)
        (self._run,) = runs.carried
        self._tested = runs.tested_terms[: len(runs.tested_terms) - len(runs.given)]
        self._documents = documents

    def terms(self, one: FoundGraph, identity: _Identity) -> Iterator[Mapping[str, TermNode]]:
        """Yield the runs as a value, whose node is a number of their own."""
        number = identity((id(one),))
        if one.documents is not None:
            self._documents[number] = one.documents
        tested = {term: TermNode(0, v) for term, v in zip(self._tested, one.data, strict=True)}
        yield {self._run: TermNode(number, one.runs.spell()), **tested}

    def _extent(self, one: FoundGraph) -> Extent:
        if len(one.parts) > 1:
            own = Extent.of(one.parts)
            return own._replace(leaves=one.leaves, start_us=one.start_us, end_us=one.end_us)
        part = one.parts[0]
        return Extent(
            part,
            part.docid_min,
            part.docid_max,
            one.start_us,
            one.end_us,
            part.watermark_us,
            part.depth,
            one.leaves,
        )

    def place(self, one: FoundGraph) -> tuple[int, ...]:
        """Return where runs stand: docid, newest document, depth, watermark, start and end."""
        extent = self._extent(one)
        docid, depth, watermark_us, end_us = self._position(one, extent)
        return docid, extent.docid_max, depth, watermark_us, one.start_us, end_us

    def places(self, ends: EndsInOrder[Any]) -> Ints:
        """Return where runs stand, as `place` says it of each."""
        return ends.places(self._grace_us)

    def _position(self, one: FoundGraph, extent: Extent) -> TuplePosition:
        end_us = one.parts[-1].end_us
        watermark_us = max(end_us + self._grace_us, extent.watermark_us)
        return TuplePosition(one.docid, 1 + extent.depth, watermark_us, end_us)


AnyChain = DecidedChain | ColumnChain


class ChainRows(FoundRows[AnyChain]):
    """Makes the rows of one class of runs over chains."""

    def __init__(self, number: int, chains: DecidedChains) -> None:
        super().__init__(number, chains)
        self._steps, self._data = chains.steps, chains.data
        self._begins = [compile_disjuncts((step.begin,)) for step in chains.steps]
        self._takes_all = chains.takes_all
        count = 0 if self._takes_all else len(chains.steps)
        self._evaluated = [StepEvaluation(chains.decision, n, 0) for n in range(count)]
        self.makes_one_tuple = chains.makes_one_tuple
        self._keys = [
            {each.block: each.keys for each in link.elements} for link in chains.decision.links
        ]

    def terms(self, one: AnyChain, identity: _Identity) -> Iterator[Mapping[str, TermNode]]:
        """Yield the rows of the plain units that fit, each with the runs."""
        said = zip(self._data, self._first_of(one, 0).data if self._data else (), strict=False)
        own = {name: TermNode(0, value) for name, value in said}
        choices: list[list[PartRow]] = []
        for number, step in enumerate(self._steps):
            if step.stream is None:
                own |= self._run_terms(one, number, identity)
            else:
                first = self._first_of(one, number)
                choices.append(first.rows.get(step.stream.name, []))
        for rows in product(*choices):
            terms = dict(own)
            for row in rows:
                terms |= row.terms
            if self._takes_all or self._begin(one, terms):
                yield terms

    def _first_of(self, one: AnyChain, number: int) -> Part:
        return one.first_of(number) if isinstance(one, ColumnChain) else one.steps[number][0]

    def _run_terms(self, one: AnyChain, number: int, identity: _Identity) -> dict[str, TermNode]:
        """Return what a tuple carries of the run of a step."""
        step, keys = self._steps[number], self._keys[number]
        if not isinstance(one, ColumnChain):
            folds = one.runs[step.run].folds
            return run_terms(step.run, step.keys, keys, one.steps[number], folds, identity)
        return column_terms(one, number, step.run, step.keys, keys, identity)

    def _begin(self, one: AnyChain, terms: Mapping[str, TermNode]) -> bool:
        """Return whether each step begins as the class asks of its rows."""
        start_us = end_us = one.steps[0][0].start_us
        for begins, step, parts in zip(self._begins, self._evaluated, one.steps, strict=True):
            folds = step.first_folds(start_us, end_us, one.runs, parts[0].element)
            run = RunAtHand((), parts[0].element, folds)
            if not begins(RunReading(terms, start_us, parts[0].end_us, run, one.runs)):
                return False
            end_us = parts[-1].end_us
        return True


def run_terms(
    run: str,
    key_names: Sequence[str],
    keys: Mapping[int, Sequence[str]],
    parts: Sequence[Part],
    folds: Mapping[str, Values],
    identity: _Identity,
) -> dict[str, TermNode]:
    """Return what a tuple carries of a run: itself, and the values of its keys."""
    elements = tuple(part.element for part in parts if part.element is not None)
    chosen = tuple((part.blocks, part.chosen) for part in parts)
    own = {run: TermNode(identity(chosen), Run(elements, folds).spell())}
    return own | _key_terms(key_names, keys, elements[0])


def column_terms(
    one: ColumnChain,
    step: int,
    run: str,
    key_names: Sequence[str],
    keys: Mapping[int, Sequence[str]],
    identity: _Identity,
) -> dict[str, TermNode]:
    """Return what a tuple carries of the run of a step, as `run_terms` does."""
    first = one.first_of(step).element
    assert first is not None
    own = {run: TermNode(identity(one.chosen_of(step)), one.spelled(step))}
    return own | _key_terms(key_names, keys, first)


def _key_terms(
    names: Sequence[str], keys: Mapping[int, Sequence[str]], first: RunElement
) -> dict[str, TermNode]:
    values = (first.value(key) for key in keys[first.block])
    return {name: TermNode(0, value) for name, value in zip(names, values, strict=True)}
