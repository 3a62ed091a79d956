"""Matches that copy whole documents, made of rows in columns.

Most queries select all, and most documents are written as they were read: then a match's output is
the texts of its documents, which are there.  What it costs is known before it is made, so a
document whose matches may all be made needs no meter.

Invariant: lines, ids and charges are those that matches have which are made one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from broker.documents.document import render_time
from broker.matching.costs.charges import Payments, Price
from broker.matching.match import FoundMatch
from broker.matching.rendering.form import MatchForm
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.lines import Behind, MatchLines
from broker.matching.rendering.matchreader import MatchReader
from broker.matching.rendering.matchrows import FoundColumns
from broker.matching.rendering.trees import DocumentTree
from xscl.meter import size

__all__ = ["Copies"]

_EMPTY_BYTES = len("<match></match>")

_as_tuple = tuple.__new__
"""Makes a named tuple of its fields without a call of Python."""


class _CopiedText(NamedTuple):
    """A document that is its own copy, as JSON has it within a string.

    `nbytes` and `cost` are those of its tree.
    """

    spelled: str
    nbytes: int
    cost: int


class _Copied(NamedTuple):
    """Documents that matches copy: how their lines end, what such a match costs, its leaves."""

    tail: str
    price: Price
    leaves: list[Leaf]


class Copies:
    """The matches of some rows that copy whole documents; `leaves` and `tree_of` as `MatchBuilder`.

    The texts of the rows' documents are kept, as long as those of their lines.
    """

    def __init__(self, leaves: Mapping[int, Leaf], tree_of: Callable[[Leaf], DocumentTree]) -> None:
        self._leaves = leaves
        self._tree_of = tree_of
        self._texts: dict[int, _CopiedText | None] = {}

    def others(
        self, rows: FoundColumns, some: range, known: Mapping[int, MatchReader], bytes_max: int
    ) -> set[int]:
        """Return the documents of some rows that have other matches, or such as cost too much.

        `known` are the readers of rows.
        """
        part = slice(some.start, some.stop)
        docids, own_readers, are_whole = rows.docids[part], rows.readers[part], rows.are_whole[part]
        found = {docid for docid, is_whole in zip(docids, are_whole, strict=True) if not is_whole}
        readers = set(chain.from_iterable(own_readers))
        copying = {number for number in readers if known[number].is_copying}
        if len(copying) < len(readers):
            read = zip(docids, own_readers, strict=True)
            found |= {docid for docid, own in read if not copying.issuperset(own)}
        last: tuple[int, tuple[int, ...]] = (-1, ())
        spent = 0
        for docid, leaves in zip(docids, rows.leaves[part], strict=True):
            if (docid, leaves) != last and docid not in found:
                spent = self._most(leaves, bytes_max) + (spent if last[0] == docid else 0)
                last = docid, leaves
                if spent > bytes_max:
                    found.add(docid)
        return found

    def _most(self, leaves: Sequence[int], bytes_max: int) -> int:
        """Return what copies of documents cost at most; too much where one is no copy of itself."""
        most, texts = 0, self._texts
        for number in leaves:
            if number not in texts:
                tree = self._tree_of(self._leaves[number])
                is_copy = tree.is_verbatim
                texts[number] = (
                    _CopiedText(tree.spelled, tree.nbytes, tree.cost) if is_copy else None
                )
            text = texts[number]
            if text is None:
                return bytes_max + 1
            most += text.nbytes + text.cost
        return most

    def make(
        self,
        rows: FoundColumns,
        some: Sequence[int],
        known: Mapping[int, MatchReader],
        payments: Payments,
    ) -> list[FoundMatch]:
        """Return the matches of some rows, none of a document that has `others`."""
        made: list[FoundMatch] = []
        last: tuple[int, ...] = ()
        copied = _Copied("", Price(0, 0, 0, (), ()), [])
        spelling: MatchForm | None = None
        for i in some:
            leaves, docid, own = rows.leaves[i], rows.docids[i], rows.readers[i]
            first = known[own[0]]
            if leaves != last:
                copied, last, spelling = self._copied(leaves), leaves, None
            if first.form is not spelling:
                behind, spelling = Behind.of(copied.leaves, first.form), first.form
            nodes = first.lines.nodes(rows.visible[i])
            found = first.lines.found(
                (render_time(rows.starts_us[i]), render_time(rows.ends_us[i])),
                behind,
                nodes,
                rows.witnesses[i],
                rows.omitted[i],
                docid if first.is_ordered else None,
                rows.confidences[i] if first.has_confidence else None,
            )
            identity, oldest, tail = MatchLines.identity(behind, nodes), behind.oldest, copied.tail
            payers: list[int] = []
            is_decided, price = rows.newest[i] < docid, copied.price
            for number in own:
                reader = known[number]
                if docid < reader.limit:
                    name, line = reader.lines.named(identity, found, tail)
                    row = docid, reader.query_id, name, reader.parameters, oldest, line
                    made.append(_as_tuple(FoundMatch, row))
                    if is_decided:
                        # A tick may decide so much that the lines themselves are counted.
                        own_price = price._replace(kept=size(line))
                        payments.add([reader.number], docid, rows.newest[i], own_price)
                    else:
                        payers.append(reader.number)
            if payers:
                payments.add(payers, docid, rows.newest[i], price)
        return made

    def _copied(self, leaves: tuple[int, ...]) -> _Copied:
        """Return what matches have in common that copy these documents."""
        spelled, cost, most, readings = [], 0, 0, []
        for number in leaves:
            text = self._texts[number]
            assert text is not None, "it is no copy of itself"
            spelled.append(text.spelled)
            cost += text.nbytes
            most += text.cost
            readings.append((text.cost, 0))
        price = Price(most + cost, _EMPTY_BYTES + cost, cost, leaves, readings)
        shown = [self._leaves[number] for number in leaves]
        return _Copied(MatchLines.copies("".join(spelled)), price, shown)

    def forget(self) -> None:
        """Drop the texts of documents."""
        self._texts.clear()
