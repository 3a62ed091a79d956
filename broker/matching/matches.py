"""Tuples of one subscriber's query, gathered into matches.

A match is one assignment of visible nodes over one tuple of documents; its witness tuples are the
different assignments of the compared variables that go with it (semantics, section 6).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from broker.documents.document import Document
from broker.matching.blocks import Account
from broker.matching.budget import Tally
from broker.matching.fanout import BoundNode, FoundTuple, Subscriber
from broker.matching.form import Form, Forms
from broker.matching.leaf import Leaf
from broker.matching.likenesses import spell_likenesses
from broker.matching.lines import MatchLines, Witness
from broker.matching.match import FoundMatch, parameters_key
from broker.matching.outputs import Output, Outputs, Reading
from broker.matching.publications import published_document
from broker.matching.trees import DocumentTree
from joins import Position
from templates.clause import Clause
from xscl.meter import ExhaustedError, Meter, size
from xscl.output import build
from xscl.query import Constructor, SelectAll, SelectNodes
from xscl.runvalues import Run, shown_value

__all__ = ["WITNESSES_MAX", "BuiltMatch", "MatchBuilder", "MatchKey"]

WITNESSES_MAX = 1_000
"""Witness tuples listed in a match; the rest is counted (semantics, section 6)."""

PUBLISHED_COST = 7
"""What a byte of output costs besides where it is published: it is evaluated as a document."""


MatchKey = tuple[tuple[int, ...], tuple[int, ...], tuple[int | None, ...], tuple[int, ...]]
"""What the tuples of a match have in common: documents, numbers of visible nodes, branches and
units of the documents."""


@dataclass(slots=True)
class _Gathered:
    """The parts of its tuples that a match needs; their instances may have long values."""

    position: Position
    account: Account
    start_us: int
    form: Form
    folds: Mapping[str, Any]
    witnesses: set[Witness] = field(default_factory=set)

    @property
    def docid(self) -> int:
        """The document at which the match stands."""
        return self.position.docid

    @property
    def end_us(self) -> int:
        """The end of the match's interval."""
        return self.position.end_us


class BuiltMatch(NamedTuple):
    """A match, and the document that its query publishes for it, if it publishes any."""

    row: FoundMatch
    published: Document | None


class Making(NamedTuple):
    """What outputs are made of and kept in, and who pays for them."""

    tree_of: Callable[[Leaf], DocumentTree]
    outputs: Outputs
    tally: Tally
    meter: Meter


class MatchBuilder:
    """Gathers the tuples of a query's root within one batch; equal long values are held once."""

    def __init__(self, subscriber: Subscriber, long: int) -> None:
        self._long_min = long
        self.subscriber = subscriber
        query = subscriber.query
        self._order = sorted(query.variables, key=lambda variable: variable.block)
        self._forms = Forms(query)
        self._is_ordered = query.is_ordered
        self._is_constructed = isinstance(query.select, Constructor)
        self._parameters = parameters_key(subscriber.parameters)
        self._selections: dict[Form, Hashable] = {}
        self._compared: dict[Clause, list[str]] = {}
        self._gathered: dict[MatchKey, _Gathered] = {}
        self._lines: dict[Form, MatchLines] = {}
        self._long: dict[str, str] = {}

    def _selection(self, form: Form) -> Hashable:
        """Return what the output depends on beside documents, times and visible nodes."""
        select = self.subscriber.query.select
        mentioned = () if isinstance(select, SelectAll) else select.variables
        shown = [
            (name, tuple([(form.visible[i][1], i) for i in form.indices[name]]))
            for name in mentioned
            if name in form.indices
        ]
        if isinstance(select, Constructor):
            # Alternatives may bind different variables of it to one node.
            return select, tuple(shown), self._parameters
        if isinstance(select, SelectNodes):
            return tuple([places for _, places in shown])
        return None

    def _form(self, found: FoundTuple, runs: Sequence[Run]) -> Form:
        form = self._forms.of(found.clause.blocks, runs)
        if form not in self._selections:
            self._selections[form] = self._selection(form)
        return form

    def key(self, found: FoundTuple) -> MatchKey:
        """Return what the tuples of one match have in common."""
        runs = self._forms.runs(found)
        form = self._form(found, runs)
        return found.leaves, form.numbers(found, runs), form.branches, form.units

    def name(self, found: FoundTuple, key: MatchKey, behind: Sequence[Leaf]) -> str:
        """Return the id of the match of a tuple, by its key and its documents in order."""
        form = self._form(found, self._forms.runs(found))
        lines = self._lines.get(form)
        if lines is None:
            subscriber = self.subscriber
            lines = MatchLines(subscriber.query, subscriber.parameters, form)
            self._lines[form] = lines
        return lines.id(behind, key[1])

    def add(self, found: FoundTuple) -> bool:
        """Add one tuple; return whether it begins a match."""
        nodes, runs = found.nodes, self._forms.runs(found)
        form = self._form(found, runs)
        key = found.leaves, form.numbers(found, runs), form.branches, form.units
        gathered = self._gathered.get(key)
        is_new = gathered is None
        if gathered is None:
            folds = {name: shown_value(v) for run in runs for name, v in run.folds.items()}
            gathered = _Gathered(found.position, found.account, found.start_us, form, folds)
            self._gathered[key] = gathered
        compared = self._compared.get(found.clause)
        if compared is None:
            compared = self._order_compared(found.clause)
        shown = tuple([(name, self._held(nodes[name])) for name in compared])
        similar = spell_likenesses(found, self.subscriber.parameters)
        gathered.witnesses.add(Witness(shown, similar))
        return is_new

    def _order_compared(self, clause: Clause) -> list[str]:
        """Return the variables of a clause's witness tuples in the order of the match line."""
        compared = [
            each.name
            for each in self._order
            if each.name in clause.compared and each.block in clause.blocks
        ]
        self._compared[clause] = compared
        return compared

    def _held(self, node: BoundNode) -> BoundNode:
        """Return a node with a value that is held once."""
        if node.value is None or len(node.value) < self._long_min:
            return node
        return BoundNode(node.number, self._long.setdefault(node.value, node.value))

    def drop_from(self, docid: int) -> None:
        """Forget the matches of a document and of later ones."""
        self._gathered = {
            key: gathered for key, gathered in self._gathered.items() if gathered.docid < docid
        }

    def leaves(self) -> Iterator[int]:
        """Yield the documents of all matches."""
        for leaves, *_ in self._gathered:
            yield from leaves

    def build(
        self,
        leaves: Mapping[int, Leaf],
        tree_of: Callable[[Leaf], DocumentTree],
        outputs: Outputs,
        is_wanted: Callable[[str], bool],
        tally: Tally,
    ) -> Iterator[BuiltMatch]:
        """Yield each match whose id is wanted, as far as its budget goes.

        Trees are made for wanted matches only.  A document whose matches go over the budget stops
        the tally; some of its matches may have been yielded before.
        """
        subscriber = self.subscriber
        lines_of = {
            form: MatchLines(subscriber.query, subscriber.parameters, form)
            for form in self._selections
        }
        # Matches of one document in a row: its partners are read once.
        for (numbers, visible, *_), gathered in sorted(
            self._gathered.items(), key=lambda item: (item[1].docid, item[0][0])
        ):
            if gathered.docid >= tally.limit:
                return
            lines = lines_of[gathered.form]
            behind = [leaves[number] for number in numbers]
            name = lines.id(behind, visible)
            if is_wanted(name):
                making = Making(tree_of, outputs, tally, Meter(tally.left(gathered.account)))
                try:
                    output = self._output(gathered, visible, behind, making)
                except ExhaustedError:
                    tally.spend(gathered.account, making.meter.spent)
                    continue
                tally.spend(gathered.account, making.meter.spent)
                interval = gathered.start_us, gathered.end_us
                shown, omitted = self._witnesses(gathered)
                decided = gathered.docid if self._is_ordered else None
                line = lines.line(
                    name,
                    interval,
                    behind,
                    visible,
                    shown,
                    omitted,
                    output,
                    decided,
                    gathered.folds,
                )
                # A tick may decide so much that the lines themselves are counted.
                is_settled = gathered.account.newest < gathered.docid
                tally.keep(gathered.docid, size(line if is_settled else output.text))
                oldest = min([leaf.docid for leaf in behind])
                yield BuiltMatch(
                    FoundMatch(
                        gathered.docid, subscriber.query.id, name, self._parameters, oldest, line
                    ),
                    self._published(name, gathered, output.text, behind),
                )

    def _output(
        self, gathered: _Gathered, numbers: Sequence[int], behind: Sequence[Leaf], making: Making
    ) -> Output:
        """Return a match's output: made, or as another query has had it."""
        asked = self._asked(gathered, numbers, behind)
        output = making.outputs.get(asked)
        if output is None:
            trees = []
            for leaf in behind:
                trees.append(making.tree_of(leaf))
                self._pay(Reading.of(trees[-1]), leaf, gathered.account, making)
            output = self._made(gathered, numbers, trees, making.meter)
            making.outputs.keep(asked, output)
        else:
            for leaf, reading in zip(behind, output.readings, strict=True):
                self._pay(reading, leaf, gathered.account, making)
            making.meter.spend(output.cost)
        if self.subscriber.query.publish is not None:
            making.meter.spend(PUBLISHED_COST * size(output.text))
        return output

    def _asked(
        self, gathered: _Gathered, numbers: Sequence[int], behind: Sequence[Leaf]
    ) -> Hashable:
        """Return what the output depends on, and nothing else."""
        interval = (gathered.start_us, gathered.end_us) if self._is_constructed else None
        selection = self._selections[gathered.form]
        return selection, interval, tuple([leaf.instance for leaf in behind]), numbers

    def _made(
        self,
        gathered: _Gathered,
        numbers: Sequence[int],
        trees: Sequence[DocumentTree],
        meter: Meter,
    ) -> Output:
        form, spent = gathered.form, meter.spent
        text, error = build(
            self.subscriber.query,
            trees,
            {
                name: [(form.visible[i][1], numbers[i]) for i in indices]
                for name, indices in form.indices.items()
            },
            gathered.start_us,
            gathered.end_us,
            self.subscriber.parameters,
            meter,
        )
        return Output.of(text, error, meter.spent - spent, trees)

    def _pay(self, reading: Reading, leaf: Leaf, account: Account, making: Making) -> None:
        """Pay for reading a document.

        All matches of one account pay for it together; each that has a constructor pays
        for its text again, as it may go through all of it.
        """
        if making.tally.reads(account, leaf.instance):
            further = reading.xpath_cost if self._is_constructed else 0
            making.meter.spend(reading.cost + further)
        if self._is_constructed:
            making.meter.spend(reading.nbytes)

    def _published(
        self, name: str, gathered: _Gathered, output: str, behind: Sequence[Leaf]
    ) -> Document | None:
        stream = self.subscriber.query.publish
        if stream is None:
            return None
        interval = gathered.start_us, gathered.end_us
        document = published_document(stream, name, interval, output, behind)
        document = replace(document, docid_max=gathered.account.newest)
        if not self._is_ordered:
            return document
        at = gathered.position
        return replace(document, docid=at.docid, depth=1 + at.depth, watermark_us=at.watermark_us)

    def _witnesses(self, gathered: _Gathered) -> tuple[Sequence[Witness], int]:
        """Return the witnesses that a line shows, in order, and how many it leaves out."""
        if len(gathered.witnesses) == 1:
            return tuple(gathered.witnesses), 0
        witnesses = sorted(gathered.witnesses, key=self._place)
        return witnesses[:WITNESSES_MAX], max(0, len(witnesses) - WITNESSES_MAX)

    def _place(self, witness: Witness) -> tuple[list[int], str]:
        """Order witnesses by node numbers; -1 where an OR's alternative has no such node."""
        nodes = {variable: node.number for variable, node in witness.nodes}
        return [nodes.get(variable.name, -1) for variable in self._order], witness.similar
