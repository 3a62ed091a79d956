"""Matches that have been found are made: their ids, their outputs, their lines.

Matches of one document are made in a row, whoever asks for them: the documents behind it are read
once, and an output that several queries ask for is made once (`outputs`).  What is equal for many
matches is spelled once: a pair of documents, a time, a value.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from broker.documents.document import Document, render_time
from broker.matching.costs.blocks import Account
from broker.matching.costs.budget import Tally
from broker.matching.match import FoundMatch, parameters_key
from broker.matching.publications import published_document
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.lines import Behind, MatchLines
from broker.matching.rendering.matchrows import FoundRow, Reader
from broker.matching.rendering.outputs import Output, Outputs, ReadingCost
from broker.matching.rendering.trees import DocumentTree
from xscl.meter import ExhaustedError, Meter, size
from xscl.output import build
from xscl.query import Constructor, SelectAll, SelectNodes

__all__ = ["BuiltMatch", "MatchBuilder"]

PUBLISHED_COST = 7
"""What a byte of output costs besides where it is published: it is evaluated as a document."""


class BuiltMatch(NamedTuple):
    """A match, and the document that its query publishes for it, if it publishes any."""

    row: FoundMatch
    published: Document | None


class _Subscription:
    """A reader of matches: how its lines are spelled, and what its outputs depend on."""

    def __init__(self, reader: Reader, tally: Tally) -> None:
        topic, self.form = reader
        self.query = query = topic.query
        self.tally = tally
        self.given = topic.parameters
        self.lines = MatchLines(self.given, self.form)
        self.parameters = parameters_key(self.given)
        self.is_constructed = isinstance(query.select, Constructor)
        self.is_ordered = query.is_ordered
        self.selection = self._selection()

    def _selection(self) -> Hashable:
        """Return what the output depends on beside documents, times and visible nodes."""
        select, form = self.query.select, self.form
        mentioned = () if isinstance(select, SelectAll) else select.variables
        shown = [
            (name, tuple([(form.visible[i][1], i) for i in form.indices[name]]))
            for name in mentioned
            if name in form.indices
        ]
        if isinstance(select, Constructor):
            # Alternatives may bind different variables of it to one node.
            return select, tuple(shown), self.parameters
        if isinstance(select, SelectNodes):
            return tuple([places for _, places in shown])
        return None


class MatchBuilder:
    """Makes the matches of a stratum.

    `leaves` are the documents behind them by number, `spelled` the values of their witness tuples.
    `is_wanted` returns whether a match of a query that publishes a stream has to be made, by the
    stream and the match's id.
    """

    def __init__(
        self,
        leaves: Mapping[int, Leaf],
        spelled: Sequence[str],
        tree_of: Callable[[Leaf], DocumentTree],
        is_wanted: Callable[[str, str], bool],
    ) -> None:
        self._leaves = leaves
        self._spelled = spelled
        self._tree_of = tree_of
        self._is_wanted = is_wanted
        self._outputs = Outputs()
        self._behind: dict[Hashable, Behind] = {}
        self._times: dict[int, str] = {}

    def build(
        self, rows: Iterable[FoundRow], readers: Sequence[Reader], tally_of: Callable[[str], Tally]
    ) -> Iterator[BuiltMatch]:
        """Yield each match that is wanted, as far as its query's budget goes.

        A document whose matches go over the budget stops the tally; some of its matches may have
        been yielded before.
        """
        of_readers: dict[int, _Subscription] = {}
        for row in rows:
            of_reader = of_readers.get(row.reader)
            if of_reader is None:
                reader = readers[row.reader]
                of_reader = _Subscription(reader, tally_of(reader.topic.query.id))
                of_readers[row.reader] = of_reader
            if row.docid < of_reader.tally.limit:
                match = self._built(row, of_reader)
                if match is not None:
                    yield match

    def _built(self, row: FoundRow, reader: _Subscription) -> BuiltMatch | None:
        query, lines = reader.query, reader.lines
        behind = self._documents(row, reader)
        name = lines.id(behind, row.visible)
        if query.publish is not None and not self._is_wanted(query.publish, name):
            return None
        try:
            output, cost = self._output(row, behind, reader)
        except ExhaustedError:
            return None
        witnesses = ", ".join([lines.witness(each, self._spelled) for each in row.witnesses])
        line = lines.line(
            name,
            (self._time(row.start_us), self._time(row.end_us)),
            behind,
            row.visible,
            witnesses,
            row.omitted,
            output,
            row.docid if reader.is_ordered else None,
            row.folds,
            row.confidence if query.is_lossy else None,
        )
        # A tick may decide so much that the lines themselves are counted.
        kept = size(line) if row.newest < row.docid else output.nbytes
        reader.tally.pay(Account(row.docid, row.newest), cost, kept)
        found = FoundMatch(row.docid, query.id, name, reader.parameters, behind.oldest, line)
        published = None
        if query.publish is not None:
            published = self._published(query.publish, name, row, output, behind, reader)
        return BuiltMatch(found, published)

    def _documents(self, row: FoundRow, reader: _Subscription) -> Behind:
        form = reader.form
        named = (form.units, form.branches, form.names_blocks) if form.has_blocks else None
        asked = row.leaves, named
        behind = self._behind.get(asked)
        if behind is None:
            behind = Behind.of([self._leaves[number] for number in row.leaves], form)
            self._behind[asked] = behind
        return behind

    def _time(self, time_us: int) -> str:
        time = self._times.get(time_us)
        if time is None:
            time = self._times[time_us] = render_time(time_us)
        return time

    def _output(self, row: FoundRow, behind: Behind, reader: _Subscription) -> tuple[Output, int]:
        """Return a match's output, made, or as another query has had it, and what it costs."""
        # Alike for all but constructors, which may write them.
        own = (row.start_us, row.end_us, row.confidence) if reader.is_constructed else None
        asked = reader.selection, own, row.visible
        outputs, tally = self._outputs.of(row.leaves), reader.tally
        output, account = outputs.get(asked), Account(row.docid, row.newest)
        if output is None:
            meter = Meter(tally.left(account))
            try:
                trees = []
                for leaf in behind.leaves:
                    trees.append(self._tree_of(leaf))
                    reading = ReadingCost.of(trees[-1])
                    meter.spend(_reading_cost(reading, leaf.instance, account, reader))
                output = self._made(row, trees, meter, reader)
            except ExhaustedError:
                tally.pay(account, meter.spent, 0)
                raise
            outputs[asked] = output
            cost = meter.spent
        else:
            cost = output.cost
            for number, reading in zip(row.leaves, output.readings, strict=True):
                cost += _reading_cost(reading, number, account, reader)
        if reader.query.publish is not None:
            cost += PUBLISHED_COST * output.nbytes
        return output, cost

    def _made(
        self, row: FoundRow, trees: Sequence[DocumentTree], meter: Meter, reader: _Subscription
    ) -> Output:
        form, spent = reader.form, meter.spent
        text, error = build(
            reader.query,
            trees,
            {
                name: [(form.visible[i][1], row.visible[i]) for i in indices]
                for name, indices in form.indices.items()
            },
            row.start_us,
            row.end_us,
            reader.given,
            meter,
            float(row.confidence),
        )
        return Output.of(text, error, meter.spent - spent, trees)

    def _published(
        self,
        stream: str,
        name: str,
        row: FoundRow,
        output: Output,
        behind: Behind,
        reader: _Subscription,
    ) -> Document:
        interval = row.start_us, row.end_us
        document = published_document(stream, name, interval, output.text, behind.leaves)
        document = replace(document, docid_max=row.newest)
        if not reader.is_ordered:
            return document
        depth = 1 + row.depth
        return replace(document, docid=row.docid, depth=depth, watermark_us=row.watermark_us)


def _reading_cost(reading: ReadingCost, leaf: int, account: Account, reader: _Subscription) -> int:
    """Return what a match pays for reading a document.

    All matches of one account pay for it together; each that has a constructor pays for
    its text again, as it may go through all of it.
    """
    is_first = reader.tally.reads(account, leaf)
    if reader.is_constructed:
        return reading.nbytes + is_first * (reading.cost + reading.xpath_cost)
    return is_first * reading.cost
