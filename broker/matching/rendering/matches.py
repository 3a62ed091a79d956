"""Matches that have been found are made: their ids, their outputs, their lines.

Matches of one document are made in a row, whoever asks for them: the documents behind it are read
once, and an output that several queries ask for is made once (`outputs`).  What is equal for many
matches is spelled once: a pair of documents, a time, a value, and all that queries in an equal form
say of the same nodes (`_FoundAlike`).

What matches cost is charged for many at once (`charges`).  A query that has a tally, as it may be
near its budget, is charged for each; of the others what is made is measured, so that no document
makes more than it may.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

from broker.documents.document import Document, render_time
from broker.matching.costs.accounts import Accounts
from broker.matching.costs.blocks import Account
from broker.matching.costs.budget import PUBLISHED_COST, Tally
from broker.matching.costs.charges import Payment, PaymentCharges
from broker.matching.match import FoundMatch, parameters_key
from broker.matching.publications import published_document
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.lines import Behind, MatchLines
from broker.matching.rendering.matchrows import FoundRow, Reader
from broker.matching.rendering.outputs import Output, Outputs, ReadingCost
from broker.matching.rendering.trees import DocumentTree
from joins import UNBOUNDED
from xscl.meter import ExhaustedError, Meter, size
from xscl.output import build
from xscl.query import Constructor, SelectAll, SelectNodes

__all__ = ["BuiltMatch", "MatchBuilder"]

CHARGED = 4_000
"""Matches that are charged together."""


class BuiltMatch(NamedTuple):
    """A match, and the document that its query publishes for it, if it publishes any."""

    row: FoundMatch
    published: Document | None


class _Subscription:
    """A reader of matches: how its lines are spelled, and what its outputs depend on.

    `number` is that of its query, `spelling` that of what its lines say alike with others.
    """

    def __init__(self, reader: Reader, number: int, spelling: int) -> None:
        topic, self.form = reader
        self.query = query = topic.query
        self.number = number
        self.spelling = spelling
        self.given = topic.parameters
        self.lines = MatchLines(self.given, self.form)
        self.parameters = parameters_key(self.given)
        self.is_constructed = isinstance(query.select, Constructor)
        self.is_ordered = query.is_ordered
        self.is_lossy = query.is_lossy
        self.publishes = query.publish
        self.selection = self._selection()
        self.tally: Tally | None = None
        self.limit = UNBOUNDED

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


class _FoundAlike(NamedTuple):
    """What is spelled of a match for all that are found alike: the row without its reader."""

    row: FoundRow
    behind: Behind
    identity: bytes
    found: str


class _Making:
    """What an account of a query has spent on outputs that were made, of those charged together."""

    def __init__(self) -> None:
        self.spent = 0
        self.read: set[int] = set()


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
        self._documents_of_shared: tuple[int, ...] = ()
        self._shared: dict[tuple[int, tuple[int, ...]], _FoundAlike] = {}
        self._spellings: dict[Hashable, int] = {}
        self._queries: dict[str, int] = {}
        self._subscriptions: dict[int, _Subscription] = {}
        self._payments: list[Payment] = []
        self._making: dict[tuple[int, Account], _Making] = {}

    def build(
        self, rows: Iterator[FoundRow], readers: Sequence[Reader], accounts: Accounts
    ) -> Iterator[BuiltMatch]:
        """Yield each match that is wanted, as far as its query's budget goes.

        A document whose matches go over the budget stops the query; some of its matches may have
        been yielded before.
        """
        while part := [*islice(rows, CHARGED)]:
            for row in part:
                reader = self._subscriptions.get(row.reader)
                if reader is None:
                    reader = self._subscription(row.reader, readers[row.reader], accounts)
                if row.docid < reader.limit:
                    match = self._built(row, reader, accounts)
                    if match is not None:
                        yield match
            self._charge(accounts)

    def _subscription(self, number: int, reader: Reader, accounts: Accounts) -> _Subscription:
        query = self._queries.setdefault(reader.topic.query.id, len(self._queries))
        asked = reader.form.spelling
        spelling = self._spellings.setdefault(asked, len(self._spellings))
        made = self._subscriptions[number] = _Subscription(reader, query, spelling)
        _look_up(made, accounts)
        return made

    def _charge(self, accounts: Accounts) -> None:
        """Charge queries with what has been made; some may have a tally then."""
        payments, self._payments, self._making = self._payments, [], {}
        if payments:
            accounts.charge(PaymentCharges.of([*self._queries], payments))
        for each in self._subscriptions.values():
            _look_up(each, accounts)

    def _pay(self, payment: Payment, reader: _Subscription) -> None:
        if reader.tally is None:
            self._payments.append(payment)
        else:
            payment.tell(reader.tally)
            reader.limit = reader.tally.limit

    def _built(self, row: FoundRow, reader: _Subscription, accounts: Accounts) -> BuiltMatch | None:
        _, behind, identity, found = self._found(row, reader)
        query, lines, publishes = reader.query, reader.lines, reader.publishes
        name = lines.id(identity)
        if publishes is not None and not self._is_wanted(publishes, name):
            return None
        # Alike for all but constructors, which may write them.
        own = (row.start_us, row.end_us, row.confidence) if reader.is_constructed else None
        asked = reader.selection, own, row.visible
        outputs = self._outputs.of(row.leaves)
        output = outputs.get(asked)
        if output is None:
            output = self._output(row, behind, reader, accounts)
            if output is None:
                return None
            outputs[asked] = output
        line = lines.line(name, found, row.folds, output)
        extra = 0 if publishes is None else PUBLISHED_COST * output.nbytes
        # A tick may decide so much that the lines themselves are counted.
        kept = size(line) if row.newest < row.docid else output.nbytes
        payment = Payment(
            reader.number,
            row.docid,
            row.newest,
            output.most + extra,
            kept,
            output.cost + extra,
            row.leaves,
            output.readings,
        )
        self._pay(payment, reader)
        match = FoundMatch(row.docid, query.id, name, reader.parameters, behind.oldest, line)
        published = None
        if publishes is not None:
            published = self._published(publishes, name, row, output, behind, reader)
        return BuiltMatch(match, published)

    def _found(self, row: FoundRow, reader: _Subscription) -> _FoundAlike:
        """Return what is spelled of a match for all that are found alike."""
        if row.leaves != self._documents_of_shared:
            self._documents_of_shared, self._shared = row.leaves, {}
        asked = reader.spelling, row.visible
        shared = self._shared.get(asked)
        if shared is None or shared.row[1:] != row[1:]:
            shared = self._shared[asked] = self._spell(row, reader)
        return shared

    def _spell(self, row: FoundRow, reader: _Subscription) -> _FoundAlike:
        lines, behind = reader.lines, self._documents(row, reader)
        witnesses = ", ".join([lines.witness(each, self._spelled) for each in row.witnesses])
        found = lines.found(
            (self._time(row.start_us), self._time(row.end_us)),
            behind,
            row.visible,
            witnesses,
            row.omitted,
            row.docid if reader.is_ordered else None,
            row.confidence if reader.is_lossy else None,
        )
        return _FoundAlike(row, behind, MatchLines.identity(behind, row.visible), found)

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

    def _output(
        self, row: FoundRow, behind: Behind, reader: _Subscription, accounts: Accounts
    ) -> Output | None:
        """Return a match's output, made; None where its query cannot pay for it."""
        account, tally = Account(row.docid, row.newest), reader.tally
        making = self._making.setdefault((reader.number, account), _Making())
        left = accounts.bytes_max - making.spent if tally is None else tally.left(account)
        meter = Meter(left)
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
            where = reader.number, row.docid, row.newest
            self._pay(Payment(*where, spent, 0, spent, (), ()), reader)
            self._charge(accounts)
            return None
        making.spent += meter.spent
        return Output.of(text, error, meter.spent - read, readings)

    def _made(
        self, row: FoundRow, trees: Sequence[DocumentTree], meter: Meter, reader: _Subscription
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
            float(row.confidence),
        )

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


def _look_up(reader: _Subscription, accounts: Accounts) -> None:
    """Have a reader charged as its query is now."""
    reader.tally = accounts.opened(reader.query.id)
    reader.limit = accounts.limit_of(reader.query.id)
