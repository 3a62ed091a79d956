"""Heavy pairs, where a database lists the equal nodes of all pairs: they are left out before that.

Most documents have a value once, or a few times.  How often one instance has a value under a
variable, and how many values it has there, bounds the equal nodes of all its pairs; so it is only
for classes in which the most that has ever been seen may exceed the budget that pairs are weighed
(`skew`), from counts of values by instance.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import prod

from joins.budget.pairs import UNBOUNDED, SkewedPair
from joins.budget.probe import ValueJoin
from joins.budget.repeats import Repeats
from joins.budget.skew import Skew, skew_of
from joins.classes import ClassRegistry, QueryClass
from joins.sql import schema
from joins.sql.render import FOLLOWS, LeftOut, ProbeStep, pair_sql, span
from joins.sql.rows import TemplateTables
from joins.sql.select import Steps
from joins.sql.state import JoinState
from templates.template import Template

__all__ = ["SkewedPairs"]


@dataclass
class _FoundPairs:
    """What is left out: pairs by class, and by value join."""

    classes: dict[tuple[int, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    joins: dict[tuple[int, int], set[ValueJoin]] = field(default_factory=lambda: defaultdict(set))


class SkewedPairs:
    """Weighs pairs of instances in a database."""

    def __init__(
        self,
        state: JoinState,
        tables: TemplateTables,
        classes: ClassRegistry,
        repeats: Repeats,
        tuples_max: int,
    ) -> None:
        self._state = state
        self._tables = tables
        self._classes = classes
        self._repeats = repeats
        self._tuples_max = tuples_max

    @property
    def is_needed(self) -> bool:
        """Whether there is a budget."""
        return self._tuples_max != UNBOUNDED

    def find(self, probe_step: ProbeStep) -> tuple[list[SkewedPair], LeftOut]:
        """Return the skewed pairs of a batch in a stratum, and what to leave out for them."""
        found = _FoundPairs()
        pairs: list[SkewedPair] = []
        if not self.is_needed:
            return pairs, LeftOut()
        classes = {
            n: c for n, c in self._classes.by_number.items() if c.stratum == probe_step.stratum
        }
        joins = {join for each in classes.values() for join in each.value_pairs()}
        equal_max = {value_join: self._repeats.equal_max(value_join) for value_join in joins}
        for value_join, most in equal_max.items():
            if most > self._tuples_max:
                # Whatever else a class joins by, it is skewed there, or holds nowhere.
                some = {n for n, each in classes.items() if value_join in each.value_pairs()}
                equal = _equal_sql(value_join, probe_step.first_instance)
                over = f"SELECT l, r FROM {equal} WHERE n > {self._tuples_max}"
                for left, right in self._state.run(over):
                    found.joins[left, right].add(value_join)
                    found.classes[left, right] |= some
        for number, query_class in classes.items():
            most = prod(equal_max[value_join] for value_join in query_class.value_pairs())
            if query_class.template.value_joins and most > self._tuples_max:
                pairs += self._skew_of(number, query_class, probe_step, found)
        return pairs, LeftOut.of(found.classes, found.joins)

    def _skew_of(
        self, number: int, query_class: QueryClass, probe_step: ProbeStep, found: _FoundPairs
    ) -> Iterator[SkewedPair]:
        """Yield the pairs that are skewed in a class, and that a window of it holds."""
        repeats = Counter(query_class.value_pairs())
        sql = _skew_sql(repeats, probe_step, self._tuples_max)
        one_class = replace(probe_step, only=number)
        for left, right, span_us, follows, one, two, *counts in self._state.run(sql):
            equal = dict(zip(repeats, map(int, counts), strict=True))
            skew = skew_of([equal[each] for each in query_class.value_pairs()], self._tuples_max)
            is_symmetric, window_us = query_class.is_symmetric, self._classes.window_us(number)
            held = span_us <= window_us and (is_symmetric or follows)
            if held and skew is Skew.UNCERTAIN:
                held = self._has_too_many(query_class.template, one_class, (left, right))
                if not held:
                    continue
            found.classes[left, right].add(number)
            if held:
                yield SkewedPair(number, max(one, two), min(one, two), span_us)

    def _has_too_many(
        self, template: Template, probe_step: ProbeStep, pair: tuple[int, int]
    ) -> bool:
        """Return whether one pair has too many tuples in the class of a probe_step."""
        sql = pair_sql(template, self._tables.numbers[template], probe_step, pair)
        ((count,),) = self._state.run(
            f"SELECT count(*) FROM (FROM ({sql}) LIMIT {self._tuples_max + 1})"
        )
        return int(count) > self._tuples_max


def _skew_sql(repeats: Counter[ValueJoin], probe_step: ProbeStep, tuples_max: int) -> str:
    """Return a statement for pairs that are not light by value joins, each so many times.

    Rows: left, right, span, follows, both docids, equal nodes by each value join.
    """
    counts = [f"n{i}" for i in range(len(repeats))]
    steps = Steps()
    for i, join in enumerate(repeats):
        if steps.is_full:
            steps.end({"l", "r", *counts[:i]})
        columns = [("l", "l"), ("r", "r"), (counts[i], "n")]
        steps.select.add(_equal_sql(join, probe_step.first_instance), f"e{i}", columns)
    for side in ("l", "r"):
        steps.select.add(schema.REMEMBERED, f"d{side}", [(side, "instance")])
    held = [steps.select.columns[count] for count in counts]
    powers = zip(held, repeats.values(), strict=True)
    product = " * ".join(f"{column}::DOUBLE ^ {n}" for column, n in powers)
    steps.select.where.append(f"{product} > {tuples_max}")
    head = [
        "dl.instance",
        "dr.instance",
        span(probe_step.lateness_us),
        FOLLOWS,
        "dl.docid",
        "dr.docid",
    ]
    return steps.render([*head, *held])


def _equal_sql(value_join: ValueJoin, first: int) -> str:
    """Return a table (l, r, n): how many equal nodes pairs with a new instance have."""
    left, right = map(_values, value_join)
    return f"""(SELECT x.instance AS l, y.instance AS r, sum(x.n * y.n) AS n
    FROM {left} AS x, {right} AS y
    WHERE x.value = y.value AND x.instance <> y.instance
        AND (x.instance >= {first} OR y.instance >= {first}) GROUP BY ALL)"""


def _values(variable: int) -> str:
    return (
        f"(SELECT instance, value, count(*) AS n FROM {schema.BINDING}"
        f" WHERE variable = {variable} GROUP BY ALL)"
    )
