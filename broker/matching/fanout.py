"""From the tuples of query classes to the queries that share the classes.

The join finds tuples of classes.  A tuple is one of a query's if it is in the query's box (its
data, window and registration point: `boxes`), and if the remaining residuals hold, which is tested
where it is counted (`collector`).  Boxes are looked up for all tuples of a table at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set

import numpy as np

from broker.matching.boxes.columns import Ints
from broker.matching.boxes.forms import Forms
from broker.matching.boxes.index import Box, BoxIndex
from broker.matching.boxes.points import Points
from broker.matching.clauseterms import ClauseTerms
from broker.matching.hits import Hits
from broker.matching.uses import Use
from templates.clause import Clause

__all__ = ["FanOut"]


FOLLOWS = -1
"""The number of a use whose hits are those of another."""


class FanOut:
    """All uses of classes, by their boxes; some `boxes_max` are listed at a time."""

    def __init__(self, boxes_max: int) -> None:
        self._boxes_max = boxes_max
        self._index = BoxIndex(boxes_max)
        self._forms = Forms()
        self._uses: list[Use | None] = []
        self._by_class: dict[int, dict[Use, int]] = {}
        self._clauses: Counter[Clause] = Counter()
        self._alike: dict[tuple[Clause, str, Box], list[Use]] = {}
        # Of the clauses that have had a tuple.
        self._terms: dict[Clause, ClauseTerms] = {}

    def add(self, use: Use) -> None:
        """Add a use; of those of one source only the first is asked."""
        box = use.asked
        if use.subscriber.source:
            alike = self._alike.setdefault(self._source(use), [])
            alike.append(use)
            if len(alike) > 1:
                self._follow(use)
                return
        self._enter(use, box)

    def _source(self, use: Use) -> tuple[Clause, str, Box]:
        return use.clause, use.subscriber.source, use.asked

    def _follow(self, use: Use) -> None:
        """Take a use that has the hits of another."""
        self._by_class.setdefault(use.query_class, {})[use] = FOLLOWS
        self._clauses[use.clause] += 1

    def _enter(self, use: Use, box: Box) -> None:
        number = self._index.add(self._forms.add(use.query_class, use.clause, box), box)
        self._uses += [None] * (number + 1 - len(self._uses))
        self._uses[number] = use
        self._by_class.setdefault(use.query_class, {})[use] = number
        self._clauses[use.clause] += 1

    def remove(self, use: Use) -> None:
        """Undo one `add`."""
        uses = self._by_class[use.query_class]
        number = uses.pop(use)
        if not uses:
            del self._by_class[use.query_class]
        if number != FOLLOWS:
            self._uses[number] = None
            self._index.remove(number)
            self._forms.remove(use.query_class, use.clause, use.asked)
        alike = self._alike.get(self._source(use), [])
        if use in alike:
            alike.remove(use)
            if alike and number != FOLLOWS:
                # The next one is asked from now on.
                self._clauses[use.clause] -= 2
                self._enter(alike[0], alike[0].asked)
                return
            if not alike:
                del self._alike[self._source(use)]
        self._clauses[use.clause] -= 1
        if not self._clauses[use.clause]:
            del self._clauses[use.clause]
            self._terms.pop(use.clause, None)

    def classes(self) -> Set[int]:
        """Return the numbers of the classes in use."""
        return self._by_class.keys()

    def uses(self) -> Iterator[Use]:
        """Yield all uses."""
        for uses in self._by_class.values():
            yield from uses

    def uses_of(self, query_class: int) -> Iterator[Use]:
        """Yield the uses of one class."""
        yield from self._by_class.get(query_class, ())

    def expand(self, points: Points) -> Iterator[Hits]:
        """Yield each tuple with every use whose box has it, as far as hashes tell.

        Residuals are not tested.
        """
        asks = self._forms.asks(points)
        found: list[tuple[Ints, Ints]] = []
        size = 0
        for which, numbers in self._index.find(asks):
            found.append((asks.rows[which], numbers))
            size += len(which)
            if size >= self._boxes_max:
                yield self._hits(points, found)
                found, size = [], 0
        if found:
            yield self._hits(points, found)

    def _hits(self, points: Points, found: list[tuple[Ints, Ints]]) -> Hits:
        rows, numbers = (np.concatenate(each) for each in zip(*found, strict=True))
        distinct, which = np.unique(numbers, return_inverse=True)
        uses: list[Use] = []
        for number in distinct.tolist():
            use = self._uses[number]
            assert use is not None
            uses.append(use)
        return Hits(points, rows, uses, [self._terms_of(use) for use in uses], which)

    def _terms_of(self, use: Use) -> ClauseTerms:
        terms = self._terms.get(use.clause)
        if terms is None:
            terms = ClauseTerms.of(use.subscriber.query, use.clause)
            self._terms[use.clause] = terms
        return terms
