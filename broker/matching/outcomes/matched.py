"""A match of a statement with rows or limits, with what is read of it.

What is read stays text until it is asked for, and the documents of a match stay rows: most matches
are never shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from broker.matching.boxes.columns import Ints
from broker.matching.hits import TupleReading
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.lines import Behind, MatchLines
from broker.matching.rendering.matchnodes import MatchNodes
from broker.matching.uses import Topic
from templates.clause import Clause
from templates.rungraphs import CountedRuns
from xscl.comparison import (
    INSTANTS,
    Call,
    Elements,
    Operand,
    PathFrom,
    VariableValue,
    operand_terms,
    operands_in,
    term,
)
from xscl.evaluation import UnboundError, Values, compile_operand

__all__ = ["Asked", "ClauseReader", "Matched", "MatchedDocuments", "Rows"]

Rows = Callable[[Iterable[int]], Iterator[tuple[Sequence[int], pa.RecordBatch]]]
"""Yields the rows of instances by number."""

CERTAIN = Fraction(1)
"""How sure documents are of which nothing else is known."""

Asked = tuple[Values, ...]
"""The values of one key or aggregate: of each argument."""


class MatchedDocuments:
    """The documents of some matches, by number: read when one of them is shown or compared.

    `rows_of` yields the rows of those that nobody has read, of the batch in hand.
    """

    def __init__(self) -> None:
        self._parts: list[tuple[Ints, pa.RecordBatch]] = []
        self._leaves: dict[int, Leaf] = {}
        self.rows_of: Rows | None = None

    def add(self, numbers: Sequence[int], rows: pa.RecordBatch) -> None:
        """Take rows of documents, whose numbers ascend."""
        self._parts.append((np.array(numbers, np.int64), Leaf.columns(rows)))

    def __getitem__(self, number: int) -> Leaf:
        leaf = self._leaves.get(number)
        if leaf is None:
            leaf = self._leaves[number] = self._read(number)
        return leaf

    def find(self, numbers: Sequence[int]) -> None:
        """Read documents of the batch in hand that nobody has read, all at once."""
        unread = sorted(set(numbers).difference(self._leaves))
        if unread:
            assert self.rows_of is not None
            for some, rows in self.rows_of(unread):
                self._leaves.update(zip(some, Leaf.read(some, rows), strict=True))

    def _read(self, number: int) -> Leaf:
        for numbers, rows in self._parts:
            at = int(numbers.searchsorted(number))
            if at < len(numbers) and numbers[at] == number:
                (leaf,) = Leaf.read([number], rows.slice(at, 1))
                return leaf
        raise KeyError(number)


class Matched:
    """A decided match: where it stands, its documents, and what is read of it.

    `form` is None where matches are only counted: it stands for `count` of them, which are
    `counted`, or is one; where `find_leaves` is there, it finds out of which documents, in the
    batch in hand.
    `newest` is the newest outside document behind it.  `times` are what the factors of
    its confidence ask for, `known` is how sure its documents are where that counts; `confidence` is
    set where it is known.
    """

    __slots__ = (
        "_asked",
        "_documents",
        "clause",
        "confidence",
        "counted",
        "depth",
        "docid",
        "end_us",
        "find_leaves",
        "form",
        "hits",
        "known",
        "leaves",
        "newest",
        "readings",
        "start_us",
        "times",
        "topic",
        "visible",
        "watermark_us",
    )

    def __init__(
        self,
        place: Sequence[int],
        nodes: MatchNodes,
        topic: Topic,
        clause: ClauseReader,
        documents: MatchedDocuments,
        counted: CountedRuns | None = None,
    ) -> None:
        self.leaves, self.visible, self.form = nodes
        self.counted = counted
        self.find_leaves: Callable[[], Sequence[int]] | None = None
        self.docid, self.newest, self.depth, self.watermark_us, self.start_us, self.end_us = place
        self.topic = topic
        self.clause = clause
        self.readings: list[TupleReading] = []
        self.hits: list[tuple[int, int]] = []
        self.times: dict[str, int] = {}
        self.known = CERTAIN
        self.confidence: Fraction | None = None
        self._documents = documents
        self._asked: dict[int, Asked] = {}

    def asked(self, number: int) -> Asked:
        """Return the values of a key, or of the arguments of an aggregate, by its number."""
        if self.counted is not None:
            # Of what is counted nothing else is asked than what it is told apart by.
            keys = self.counted.keys
            return ((keys[number],),) if number < len(keys) else ()
        found = self._asked.get(number)
        if found is None:
            found = self._asked[number] = self.clause.readers[number](self.readings)
        return found

    def read(self, readings: Sequence[TupleReading]) -> None:
        """Have it be of other tuples."""
        self.readings = [*readings]
        self._asked.clear()

    def read_as(self, asked: Sequence[Asked]) -> None:
        """Have keys and aggregates be as they were read once."""
        self._asked = dict(enumerate(asked))

    @property
    def name(self) -> str:
        """Its id."""
        assert self.form is not None, "what is counted has none"
        lines = MatchLines(self.topic.parameters, self.form)
        behind = Behind.of(self.behind, self.form)
        return lines.id(lines.identity(behind.keys, lines.nodes(self.visible)))

    @property
    def count(self) -> int:
        """How many matches it stands for."""
        return 1 if self.counted is None else self.counted.count

    @property
    def behind(self) -> list[Leaf]:
        """Its documents."""
        self.find_documents()
        return [self._documents[number] for number in self.leaves]

    def find_documents(self) -> None:
        """Find its documents out, and read them, where they are not known."""
        if self.find_leaves is not None:
            self._documents.find(self.found_leaves())

    def found_leaves(self) -> Sequence[int]:
        """Return the numbers of its documents, found out where they are not known."""
        if self.find_leaves is not None:
            self.leaves, self.find_leaves = tuple(self.find_leaves()), None
        return self.leaves

    @property
    def order(self) -> tuple[Any, ...]:
        """Its place among the matches that a row is made of: by end, start, documents and nodes.

        Of matches that have all these in common the first alternative comes first.  Of those that
        are counted a row says nothing one by one, and of those whose documents have not been found
        out there is no row yet.
        """
        if self.counted is not None or self.find_leaves is not None:
            return self.end_us, self.second
        positions = tuple([leaf.position for leaf in self.behind])
        blocks = () if self.form is None else (self.form.units, self.form.branches)
        return self.end_us, self.second, positions, self.visible, blocks

    @property
    def second(self) -> int:
        """The key of its order behind its end, for which no document of it is looked at."""
        return self.start_us if self.counted is None else self.docid

    @property
    def turn(self) -> tuple[Any, ...]:
        """Its place in the order in which matches are decided."""
        return self.docid, self.depth, *self.order


class ClauseReader:
    """What is read of the tuples of a clause: `names` of terms, `readers` of keys and aggregates.

    `outcome` are these, with their `arguments`, and `at` the places of the terms among those of the
    clause.
    """

    def __init__(self, clause: Clause, names: Sequence[str]) -> None:
        self.clause = clause
        self.outcome = () if clause.counts else clause.outcome
        self.arguments = [_arguments(each) for each in self.outcome]
        operands = [operand for each in self.arguments for operand in each]
        asked = dict.fromkeys(term(t) for o in operands for t in operand_terms(o))
        self.names = tuple(asked)
        self.at = np.array([names.index(name) for name in asked], np.int64)
        self.readers = [_reader(each) for each in self.outcome]


_Reader = Callable[[Sequence[TupleReading]], Asked]


def _arguments(operand: Operand) -> tuple[Operand, ...]:
    """Return what is read of a match: a key, or the arguments of an aggregate."""
    return operand.arguments if isinstance(operand, Call) else (operand,)


def _reader(operand: Operand) -> _Reader:
    """Return what gives the values of a key, or of the arguments of an aggregate, in a match."""
    compiled = [_of_match(each) for each in _arguments(operand)]
    return lambda readings: tuple([read(readings) for read in compiled])


def _of_match(operand: Operand) -> Callable[[Sequence[TupleReading]], Values]:
    """Return what gives the values of an operand in a match: of its tuples, each choice once."""
    read = compile_operand(operand)
    choice_of = list(dict.fromkeys(_terms_of(operand)))
    told = [_told(each) for each in choice_of]

    def one(reading: TupleReading) -> Values:
        try:
            return read(reading)
        except UnboundError:
            return ()

    def values(readings: Sequence[TupleReading]) -> Values:
        if len(readings) == 1:
            return one(readings[0])
        choices: dict[tuple[str, ...], TupleReading] = {}
        for each in readings:
            choices.setdefault(tuple([tell(each) for tell in told]), each)
        return [value for key in sorted(choices) for value in one(choices[key])]

    return values


def _terms_of(operand: Operand) -> Iterator[Operand]:
    """Yield what an operand reads of a tuple; of a run each term by itself, of all its elements."""
    match operand:
        case Elements(run, function, of) if of is not None and function != "fold":
            yield from (Elements(run, "all", each) for each in operand_terms(of))
        case Elements():
            yield operand
        case VariableValue() | PathFrom():
            yield operand
        case Call(function) if function in INSTANTS and operand.arguments:
            yield operand
        case _:
            for each in operands_in(operand):
                yield from _terms_of(each)


def _told(read: Operand) -> Callable[[TupleReading], str]:
    """Return a function that gives a text, equal for equal values of what is read."""
    if not isinstance(read, Elements):
        name = term(read)
        return lambda reading: reading.value(name)
    values = compile_operand(read)

    def told(reading: TupleReading) -> str:
        try:
            found = list(values(reading))
        except UnboundError:
            found = []
        return (
            str(found[0])
            if read.function == "fold" and found
            else json.dumps(found, ensure_ascii=False)
        )

    return told
