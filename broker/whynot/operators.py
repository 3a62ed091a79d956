"""One operator over the tuples of its two sides: section 4 of the semantics, with reasons.

Times are the same for all tuples over the same documents, so they are looked at once.  A value
join is a look-up, so that documents with hundreds of values cost little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice

from broker.documents.document import CLOCK, Document, render_time
from broker.explain.quantities import Quantity, quantity_of_both
from broker.explain.spelling import spell_comparison, spell_operand
from broker.whynot.blocks import Binding
from broker.whynot.likeness import similarity_reason
from broker.whynot.nearmiss import nearest
from broker.whynot.reason import UNITS_MAX, Reason, quote, spell_length
from xscl import functions
from xscl.durations import render_duration
from xscl.evaluation import (
    UnboundError,
    Values,
    compile_condition,
    compile_operand,
    compile_test,
)
from xscl.query import (
    INFINITE_US,
    Call,
    Derived,
    Disjunct,
    Operand,
    OperatorKind,
    Residual,
    SimilarityJoin,
    ValueJoin,
    operand_terms,
    term,
)

__all__ = ["Joining", "NamedOperand", "StreamAt", "side_text"]

StreamAt = Callable[[int], str | None]
"""Returns the stream of the first document with an event time, None where that is not known."""

PAIRS_MAX = 200_000
"""Pairs of tuples that are looked at; two documents with more are cut there."""

_SHOWN = 3


@dataclass(frozen=True)
class NamedOperand:
    """One operand on given documents: its tuples, and what it is called."""

    name: str
    documents: tuple[Document, ...]
    tuples: Sequence[Binding]

    @property
    def was(self) -> str:
        """The verb that its name takes."""
        return "was" if len(self.documents) == 1 else "were"

    @cached_property
    def start_us(self) -> int:
        """The start of its interval."""
        return min(document.start_us for document in self.documents)

    @cached_property
    def end_us(self) -> int:
        """The end of its interval."""
        return max(document.end_us for document in self.documents)

    @cached_property
    def newest(self) -> Document:
        """The document that came last."""
        return max(self.documents, key=_position)


def _position(document: Document) -> tuple[int, int, str]:
    return document.docid, document.depth, document.match_id


def _is_later(one: NamedOperand, other: NamedOperand) -> bool:
    return _position(one.newest) > _position(other.newest)


@dataclass(frozen=True)
class Joining:
    """An operator under one alternative of its predicate, on two sides that have tuples."""

    kind: OperatorKind
    disjunct: Disjunct
    window_us: int
    lateness_us: int
    left: NamedOperand
    right: NamedOperand
    labels: Mapping[str, str]
    stream_at: StreamAt = lambda end_us: None

    def reasons(self) -> tuple[Reason, ...]:
        """Return what the operator asks, one by one, and whether it all holds together."""
        reasons = [self._order()] if self.kind is OperatorKind.FOLLOWED_BY else []
        return (*reasons, self._window(), self._lateness(), *self.conditions())

    def conditions(self) -> tuple[Reason, ...]:
        """Return what the predicate asks, times left aside."""
        single = [self._value_join(each) for each in self.disjunct.value_joins]
        single += [self._similarity_join(each) for each in self.disjunct.similarity_joins]
        single += [self._residual(each) for each in self.disjunct.residuals]
        single += [self._test(each) for each in self.disjunct.tests]
        is_open = len(single) > 1 and all(reason.holds for reason in single)
        if is_open and next(self._pairs(), None) is None:
            single.append(self._together())
        return tuple(single)

    def tuples(self) -> list[Binding]:
        """Return the tuples of the operator, times left aside."""
        found = {_key(left | right): left | right for left, right in self._pairs()}
        return list(found.values())

    # -- times -----------------------------------------------------------------------------------

    def _order(self) -> Reason:
        end, start = self.left.end_us, self.right.start_us
        facts = {"left_end": render_time(end), "right_start": render_time(start)}
        if end < start:
            text = f"{self.left.name} ends {spell_length(start - end)} before {self.right.name}"
            return Reason("order", True, text, facts=facts)
        if end == start:
            text = f"both stand at {render_time(end)}: equal times never follow each other"
            return Reason("order", False, text, "JOIN does not ask for an order", facts)
        text = f"{self.left.name} ends {spell_length(end - start)} after {self.right.name} starts"
        return Reason("order", False, text, "JOIN does not ask for an order", facts)

    def _window(self) -> Reason:
        apart = abs(self.right.end_us - self.left.end_us)
        allowed = render_duration(self.window_us)
        facts = {"apart_us": apart, "window_us": self.window_us}
        if apart <= self.window_us:
            text = f"{spell_length(apart)} apart, {allowed} allowed"
            return Reason("window", True, text, facts=facts)
        over = spell_length(apart - self.window_us)
        text = f"{spell_length(apart)} apart, {allowed} allowed: {over} too far"
        return Reason("window", False, text, f"a window of {spell_length(apart)} holds them", facts)

    def _lateness(self) -> Reason:
        """Section 1.1: what came first must have been remembered when the other came."""
        is_left_later = _is_later(self.left, self.right)
        later, earlier = (self.left, self.right) if is_left_later else (self.right, self.left)
        until = earlier.end_us + self.window_us + self.lateness_us
        watermark = later.newest.watermark_us
        if self.window_us >= INFINITE_US or watermark <= until:
            return Reason("lateness", True, f"{earlier.name} {earlier.was} remembered")
        facts = {"watermark": render_time(watermark), "remembered_until": render_time(until)}
        text = (
            f"{earlier.name} came first and had been forgotten when {later.name} came: documents of"
            f" {render_time(earlier.end_us)} are remembered until the newest event time is"
            f" {render_time(until)}, and it was {render_time(watermark)}"
        )
        if stream := self.stream_at(watermark):
            facts["stream"] = stream
            text += f", from stream `{stream}`" if stream != CLOCK else ", by the broker's clock"
        need = spell_length(watermark - earlier.end_us - self.window_us)
        return Reason("lateness", False, text, f"an allowed lateness of {need} keeps it", facts)

    # -- comparisons -----------------------------------------------------------------------------

    def _value_join(self, join: ValueJoin) -> Reason:
        name = self._spell(join)
        left = self._all_values(join.left, self.left.tuples)
        right = self._all_values(join.right, self.right.tuples)
        common = sorted((left & right) - {""})
        facts = {"left": sorted(left)[:20], "right": sorted(right)[:20]}
        if common:
            text = f"{name}: {_several(common)} on both sides"
            return Reason("value join", True, text, facts=facts | {"common": common[:20]})
        if "" in left and "" in right and left | right == {""}:
            text = f"{name}: both are empty, and the empty string joins nothing"
            return Reason("value join", False, text, facts=facts)
        for side, values in ((join.left, left), (join.right, right)):
            if not values:
                text = f"{name}: `{spell_operand(side, dict(self.labels))}` has no value"
                return Reason("value join", False, text, facts=facts)
        found = nearest(left - {""}, right - {""})
        if found is None:
            text = f"{name}: {_several(left)} on the left, {_several(right)} on the right"
            return Reason("value join", False, text, facts=facts)
        a, b, miss = found
        rewritten = miss.rewrite(*self._sides(join))
        return Reason(
            "value join",
            False,
            f"{name}: {quote(a)} is nearly {quote(b)}: {miss.text}",
            f"write {rewritten}" if rewritten else None,
            facts | {"near_miss": {"left": a, "right": b, "differences": list(miss.differences)}},
            progress=0.9 if miss.wraps else 0.5,
        )

    def _sides(self, join: ValueJoin) -> tuple[str, str, str]:
        labels = dict(self.labels)
        return spell_operand(join.left, labels), "=", spell_operand(join.right, labels)

    def _similarity_join(self, join: SimilarityJoin) -> Reason:
        readings = map(self._reading, self._projections(join.measured))
        return similarity_reason(self._spell(join.residual), join, readings)

    def _residual(self, residual: Residual) -> Reason:
        name = self._spell(residual)
        quantity = quantity_of_both(residual.left, residual.right)
        holds = compile_condition([residual])
        seen: list[tuple[Values, Values]] = []
        for one in self._projections(residual.left, residual.right):
            left, right = self._values(residual.left, one), self._values(residual.right, one)
            if holds(self._reading(one)):
                sides = (side_text(each, quantity) for each in (left, right))
                text = f"{name}: {f' {residual.operator} '.join(sides)}"
                return Reason("residual", True, text)
            seen.append((left, right))
        shown = "; ".join(
            " and ".join(side_text(each, quantity) for each in sides) for sides in seen[:_SHOWN]
        )
        more = f"; and {len(seen) - _SHOWN} more" if len(seen) > _SHOWN else ""
        text = f"{name}: holds for none of {shown}{more}" if len(seen) > 1 else f"{name}: {shown}"
        hint = None
        if residual.operator not in ("=", "!=") and any(_no_number(*each) for each in seen):
            hint = "numbers are compared, and one side is no number"
        return Reason("residual", False, text, hint, {"operator": residual.operator})

    def _test(self, test: Call) -> Reason:
        name = spell_operand(test, dict(self.labels))
        holds = compile_test(test)
        seen: list[str] = []
        for one in self._projections(*test.arguments):
            shown = "; ".join(side_text(self._values(each, one)) for each in test.arguments)
            if holds(self._reading(one)):
                return Reason("residual", True, f"{name}: {shown}")
            seen.append(shown)
        more = f"; and {len(seen) - _SHOWN} more" if len(seen) > _SHOWN else ""
        text = " or ".join(seen[:_SHOWN]) + more
        text = f"{name}: holds for none of {text}" if len(seen) > 1 else f"{name}: {text}"
        return Reason("residual", False, text, facts={"test": test.function})

    def _projections(self, *operands: Operand) -> Iterator[Binding]:
        """Yield the different choices of the nodes that a condition looks at."""
        names = {term(each) for operand in operands for each in operand_terms(operand)}
        lefts = _distinct(self.left.tuples, names)
        rights = _distinct(self.right.tuples, names)
        return islice((a | b for a in lefts for b in rights), PAIRS_MAX)

    def _together(self) -> Reason:
        return Reason(
            "together",
            False,
            "each comparison holds for some nodes, but no choice of nodes satisfies all at once",
            "a variable is one node in all comparisons; paths such as `x/a` are free each time",
            progress=0.9,
        )

    def _spell(self, comparison: ValueJoin | Residual) -> str:
        return spell_comparison(comparison, dict(self.labels))

    # -- values ----------------------------------------------------------------------------------

    def _reading(self, binding: Binding) -> _BindingReading:
        start_us = min(self.left.start_us, self.right.start_us)
        return _BindingReading(binding, start_us, max(self.left.end_us, self.right.end_us))

    def _values(self, operand: Operand, binding: Binding) -> Values:
        try:
            return _compiled(operand)(self._reading(binding))
        except UnboundError:
            return ()

    def _all_values(self, operand: Derived, tuples: Iterable[Binding]) -> set[str]:
        return {str(value) for one in tuples for value in self._values(operand, one)}

    # -- pairs -----------------------------------------------------------------------------------

    def _pairs(self) -> Iterator[tuple[Binding, Binding]]:
        """Yield the pairs of tuples that satisfy the predicate."""
        joins = self.disjunct.value_joins
        keep = self._keeps(joins[1:])
        for left, right in islice(self._candidates(joins[:1]), PAIRS_MAX):
            if keep(left, right):
                yield left, right

    def _candidates(self, first: Sequence[ValueJoin]) -> Iterator[tuple[Binding, Binding]]:
        if not first:
            yield from ((a, b) for a in self.left.tuples for b in self.right.tuples)
            return
        (join,) = first
        index: dict[object, list[Binding]] = {}
        for right in self.right.tuples:
            for value in set(self._values(join.right, right)) - {""}:
                index.setdefault(value, []).append(right)
        for left in self.left.tuples:
            seen: set[int] = set()
            for value in set(self._values(join.left, left)) - {""}:
                for right in index.get(value, ()):
                    if id(right) not in seen:
                        seen.add(id(right))
                        yield left, right

    def _keeps(self, joins: Sequence[ValueJoin]) -> Callable[[Binding, Binding], bool]:
        similar = [join.residual for join in self.disjunct.similarity_joins]
        holds = compile_condition([*similar, *self.disjunct.residuals], self.disjunct.tests)

        def keep(left: Binding, right: Binding) -> bool:
            for join in joins:
                values = set(self._values(join.left, left)) & set(self._values(join.right, right))
                if not values - {""}:
                    return False
            return holds(self._reading(left | right))

        return keep


def _key(binding: Binding) -> frozenset[tuple[str, int]]:
    return frozenset((name, bound.number) for name, bound in binding.items())


_compiled = lru_cache(maxsize=1_024)(compile_operand)


@dataclass(frozen=True, slots=True)
class _BindingReading:
    """The nodes of a pair of tuples, as conditions read them; parameters have been put in."""

    binding: Binding
    start_us: int
    end_us: int

    @property
    def parameters(self) -> Mapping[str, str | float | int]:
        return {}

    def value(self, name: str) -> str:
        return self.binding[name].value


def _distinct(tuples: Iterable[Binding], names: set[str]) -> list[Binding]:
    found: dict[frozenset[tuple[str, int]], Binding] = {}
    for one in tuples:
        part = {name: bound for name, bound in one.items() if name in names}
        found.setdefault(_key(part), part)
    return list(found.values())


def _several(values: Iterable[str]) -> str:
    ordered = sorted(values)
    shown = ", ".join(map(quote, ordered[:_SHOWN]))
    return f"{shown} and {len(ordered) - _SHOWN} more" if len(ordered) > _SHOWN else shown


def side_text(values: Values, quantity: Quantity = Quantity.NONE) -> str:
    """Return the values of one side of a comparison, numbers as what they are of."""
    if not values:
        return "nothing"
    return ", ".join(
        quote(v) if isinstance(v, str) else _number_text(float(v), quantity)
        for v in values[:_SHOWN]
    )


def _number_text(value: float, quantity: Quantity) -> str:
    if not (quantity.is_time and value.is_integer()):
        return f"{value:g}"
    if quantity is Quantity.DURATION:
        return ("-" if value < 0 else "") + spell_length(abs(int(value)), most=UNITS_MAX)
    try:
        return render_time(int(value))
    except (OverflowError, ValueError):
        return f"{value:g}"


def _no_number(left: Values, right: Values) -> bool:
    numbers = [functions.to_double(value) for value in (*left, *right)]
    return any(number != number for number in numbers)
