"""Matches that have been found are made: their ids, their outputs, their lines.

Matches of one document are made in a row, whoever asks for them: the documents behind it are read
once, and an output that several queries ask for is made once (`outputs`).  What is equal for many
matches is spelled once: a pair of documents, a time, a value, and all that queries in an equal form
say of the same nodes, who have one row (`FoundRow`); with it, for each output that they ask for,
the end of their lines and what a match costs (`_Shown`).  So a match that is one more of its row
takes the digest of its id and one text.

What matches cost is charged for many at once (`charges`).  A query that has a tally, as it may be
near its budget, is charged for each; of the others what is made is measured, so that no document
makes more than it may.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from broker.documents.document import Document, render_time
from broker.matching.costs.accounting import Accounting
from broker.matching.costs.blocks import Account
from broker.matching.costs.budget import PUBLISHED_COST
from broker.matching.costs.charges import PaymentCharges
from broker.matching.costs.payments import Payments, Price
from broker.matching.match import FoundMatch
from broker.matching.publications import published_document
from broker.matching.rendering.copies import Copies
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.lines import Behind, MatchLines, found_texts
from broker.matching.rendering.matchreader import MatchReader
from broker.matching.rendering.matchrows import FoundColumns, FoundRow, Reader
from broker.matching.rendering.outputs import Output, Outputs, ReadingCost
from broker.matching.rendering.trees import DocumentTree, Trees
from broker.matching.spelling import spell
from broker.matching.uncertain import held
from xscl.meter import ExhaustedError, Meter, size
from xscl.output import build

__all__ = ["BuiltMatch", "BuiltMatches", "MatchBuilder"]


class BuiltMatch(NamedTuple):
    """A match, and the document that its query publishes for it, if it publishes any."""

    row: FoundMatch
    published: Document | None


class BuiltMatches(NamedTuple):
    """Matches, and those of them that publish a document, with it."""

    rows: list[FoundMatch]
    published: list[tuple[FoundMatch, Document]]

    @classmethod
    def of(cls, built: Iterable[BuiltMatch]) -> BuiltMatches:
        """Return matches that were made one by one."""
        made = cls([], [])
        for row, document in built:
            made.rows.append(row)
            if document is not None:
                made.published.append((row, document))
        return made


class _Spelled(NamedTuple):
    """What is spelled of a row for all who have it."""

    behind: Behind
    identity: bytes
    found: str


class _Shown(NamedTuple):
    """A row's matches with one output: how their lines end, and what each of them costs.

    Queries charged together with others are `payers`.
    """

    output: Output
    tail: str
    price: Price
    payers: list[int]


class _Making:
    """What an account of a query has spent on outputs that were made, of those charged together."""

    def __init__(self) -> None:
        self.spent = 0
        self.read: set[int] = set()


class MatchBuilder:
    """Makes the matches of a stratum.

    `leaves` are the documents behind them by number.  `is_wanted` returns whether a match of a
    query that publishes a stream has to be made, by the stream and the match's id.  Behind `most`
    bytes that have been made queries are charged.
    """

    def __init__(
        self,
        leaves: Mapping[int, Leaf],
        trees: Trees,
        is_wanted: Callable[[str, str], bool],
        most: int,
    ) -> None:
        self._leaves = leaves
        self._most = most
        self._uncharged = 0
        self._tree_of = trees.tree
        self._is_wanted = is_wanted
        self._outputs = Outputs()
        self._behind: dict[Hashable, Behind] = {}
        self._queries: dict[str, int] = {}
        self._selections: dict[Hashable, int] = {}
        self._selection_of: dict[int, int] = {}
        self._subscriptions: dict[int, MatchReader] = {}
        self._payments = Payments()
        self._copies = Copies(leaves, trees, self._subscriptions, most)
        self._was_charged = False
        self._making: dict[tuple[int, int, int], _Making] = {}
        self._bytes_max = 0

    def build(
        self, parts: Iterable[FoundColumns], readers: Sequence[Reader], accounts: Accounting
    ) -> BuiltMatches:
        """Return the matches of rows that are wanted, as far as the budgets of queries go.

        Rows of a part are charged together.  A document whose matches go over the budget stops the
        query; some of its matches may be there.
        """
        self._bytes_max = accounts.bytes_max
        made = BuiltMatches([], [])
        for part in parts:
            self._subscribe(part, readers, accounts)
            rest = range(len(part.docids))
            while rest:
                rest = self._build(part, rest, accounts, made)
            self._charge(accounts)
            self._copies.forget()
        return made

    def _build(
        self, part: FoundColumns, rest: range, accounts: Accounting, made: BuiltMatches
    ) -> range:
        """Make matches of rows until queries were charged; return the rows that are left."""
        self._was_charged = False
        are_others = self._copies.begin(part, rest, self._bytes_max)
        cuts = [0, *(1 + np.flatnonzero(np.diff(are_others))).tolist(), len(are_others)]
        for first, last in pairwise(cuts):
            some = rest[first:last]
            if are_others[first]:
                for row in part.rows(some):
                    self._add(row, accounts, made)
            else:
                made.rows.extend(self._copies.take(some, self._payments))
            if self._was_charged:  # Some queries may be charged one by one now.
                return rest[last:]
        if len(are_others) < len(rest):
            self._charge(accounts)
        return rest[len(are_others) :]

    def _subscribe(
        self, part: FoundColumns, readers: Sequence[Reader], accounts: Accounting
    ) -> None:
        for number in set(np.unique(part.readers).tolist()) - self._subscriptions.keys():
            reader = readers[number]
            query = self._queries.setdefault(reader.topic.query.id, len(self._queries))
            made = self._subscriptions[number] = MatchReader(reader, query)
            asked = self._selections.setdefault(made.selection, len(self._selections))
            self._selection_of[number] = asked
            made.look_up(accounts)

    def _charge(self, accounts: Accounting) -> None:
        """Charge queries with what has been made; some may have a tally then."""
        payments, self._payments, self._making = self._payments, Payments(), {}
        self._uncharged = 0
        self._was_charged = True
        if payments.columns():
            accounts.charge(PaymentCharges.of([*self._queries], payments))
        for each in self._subscriptions.values():
            each.look_up(accounts)

    def _add(self, row: FoundRow, accounts: Accounting, made: BuiltMatches) -> None:
        """Make the matches of a row, one by one."""
        docid, spelled, known = row.docid, None, self._subscriptions
        all_shown: dict[int, _Shown] = {}
        for number in row.readers:
            reader = known[number]
            if docid >= reader.limit:
                continue
            spelled = spelled or self._spell(row, reader)
            behind, identity, found = spelled
            lines, publishes = reader.lines, reader.publishes
            name = lines.id(identity)
            if publishes is not None and not self._is_wanted(publishes, name):
                continue
            selection = self._selection_of[number]
            shown = all_shown.get(selection)
            if shown is None:
                shown = self._show(row, behind, reader, selection, accounts)
                if shown is None:
                    all_shown = {}  # Their payments have been charged.
                    continue
                all_shown[selection] = shown
            line = lines.line(name, found, shown.tail)
            self._pay(row, line, shown, reader)
            match = FoundMatch(docid, reader.query.id, name, reader.parameters, behind.oldest, line)
            made.rows.append(match)
            if publishes is not None:
                document = self._published(publishes, name, row, shown.output, behind, reader)
                made.published.append((match, document))
            self._uncharged += len(line)
            if self._uncharged >= self._most:
                self._charge(accounts)
                all_shown = {}  # Their payments have been charged.

    def _show(
        self,
        row: FoundRow,
        behind: Behind,
        reader: MatchReader,
        selection: int,
        accounts: Accounting,
    ) -> _Shown | None:
        """Return a row's matches with the output of a reader; None where it cannot pay for it.

        `selection` is the number of what the reader selects.
        """
        # Alike for all but constructors, which may write them.
        own = None
        if reader.is_constructed:
            folds = spell(dict(row.folds)) if row.folds else ""
            # A fraction is hashed by way of its inverse, which takes two microseconds.
            own = row.start_us, row.end_us, row.confidence.as_integer_ratio(), folds
        asked = selection, own, row.visible
        outputs = self._outputs.of(row.leaves)
        output = outputs.get(asked)
        if output is None:
            output = self._output(row, behind, reader, accounts)
            if output is None:
                return None
            outputs[asked] = output
        costs = output.most, output.nbytes, output.cost
        price = Price(*costs, row.leaves, output.readings)
        payers: list[int] = []
        self._payments.add(payers, row.docid, row.newest, price)
        return _Shown(output, MatchLines.tail(row.folds, output), price, payers)

    def _pay(self, row: FoundRow, line: str, shown: _Shown, reader: MatchReader) -> None:
        price, payers, is_decided = shown.price, shown.payers, row.newest < row.docid
        if is_decided or reader.publishes is not None:
            extra = 0 if reader.publishes is None else PUBLISHED_COST * price.kept
            price = price._replace(
                most=price.most + extra,
                # A tick may decide so much that the lines themselves are counted.
                kept=size(line) if is_decided else price.kept,
                cost=price.cost + extra,
            )
            payers = []
            self._payments.add(payers, row.docid, row.newest, price)
        self._charge_with(row, price, payers, reader)

    @staticmethod
    def _charge_with(row: FoundRow, price: Price, payers: list[int], reader: MatchReader) -> None:
        if reader.tally is None:
            payers.append(reader.number)
        else:
            price.tell(reader.tally, row.docid, row.newest)
            reader.limit = reader.tally.limit

    def _spell(self, row: FoundRow, reader: MatchReader) -> _Spelled:
        lines, behind = reader.lines, self._documents(row, reader)
        nodes = lines.nodes(row.visible)
        before = lines.before(
            row.docid if reader.is_ordered else None,
            row.confidence if reader.has_confidence else None,
        )
        times = ([render_time(row.start_us)], [render_time(row.end_us)])
        own = ([before], [behind.line], [nodes], [row.witnesses], [row.omitted])
        [found] = found_texts(times, *own)
        return _Spelled(behind, lines.identity(behind.keys, nodes), found)

    def _documents(self, row: FoundRow, reader: MatchReader) -> Behind:
        form = reader.form
        named = (form.units, form.branches, form.names_blocks) if form.has_blocks else None
        asked = row.leaves, named
        behind = self._behind.get(asked)
        if behind is None:
            behind = Behind.of([self._leaves[number] for number in row.leaves], form)
            self._behind[asked] = behind
        return behind

    def _output(
        self, row: FoundRow, behind: Behind, reader: MatchReader, accounts: Accounting
    ) -> Output | None:
        """Return a match's output, made; None where its query cannot pay for it."""
        tally, key = reader.tally, (reader.number, row.docid, row.newest)
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = _Making()
        account = Account(row.docid, row.newest)
        meter = Meter(self._bytes_max - making.spent if tally is None else tally.left(account))
        trees: list[DocumentTree] = []
        readings: list[ReadingCost] = []
        try:
            for leaf in behind.leaves:
                tree, number = self._tree_of(leaf), leaf.instance
                trees.append(tree)
                readings.append(ReadingCost.of(tree, is_constructed=reader.is_constructed))
                was_read = number in making.read
                if tally is not None:
                    was_read = was_read or tally.has_read(account, number)
                making.read.add(number)
                meter.spend(readings[-1].again if was_read else readings[-1].first)
            read = meter.spent
            text, error = self._made(row, trees, meter, reader)
        except ExhaustedError:
            spent = meter.spent
            payers: list[int] = []
            price = Price(spent, 0, spent, (), ())
            self._payments.add(payers, row.docid, row.newest, price)
            self._charge_with(row, price, payers, reader)
            self._charge(accounts)
            return None
        making.spent += meter.spent
        return Output.of(text, error, meter.spent - read, readings)

    def _made(
        self, row: FoundRow, trees: Sequence[DocumentTree], meter: Meter, reader: MatchReader
    ) -> tuple[str, str | None]:
        form = reader.form
        return build(
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
            row.confidence,
            row.folds,
        )

    def _published(
        self,
        stream: str,
        name: str,
        row: FoundRow,
        output: Output,
        behind: Behind,
        reader: MatchReader,
    ) -> Document:
        interval = row.start_us, row.end_us
        document = published_document(stream, name, interval, output.text, behind.leaves)
        sure = held(row.confidence)
        document = replace(document, docid_max=row.newest, confidence=sure)
        if not reader.is_ordered:
            return document
        depth = 1 + row.depth
        return replace(document, docid=row.docid, depth=depth, watermark_us=row.watermark_us)
