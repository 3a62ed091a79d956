"""Why documents are no run: the first one that the run before it cannot take.

Documents stand in the order of their ends, and each is an element of a step (`runsteps`).  Where
they could be divided among the steps in several ways, the one that comes furthest is told.  What
stands between the documents, and what is forgotten, is no matter here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, islice

from broker.documents.document import Document, render_time
from broker.explain.quantities import Quantity, quantity_of_both
from broker.explain.spelling import spell_comparison, spell_operand
from broker.whynot.blockattempts import BlockAttempts
from broker.whynot.operators import side_text
from broker.whynot.reason import Reason, spell_length
from broker.whynot.runsteps import RunScope, RunStep, SteppedSource
from templates.rundecision import RunAtHand, RunElement, RunReading, TermNode, compile_values
from xscl.durations import render_duration
from xscl.evaluation import Values, compile_conjunction
from xscl.functions import to_double
from xscl.query import Disjunct, Operand, Residual, ValueJoin

__all__ = ["RunAttempts"]

WAYS_MAX = 200
"""Ways to divide documents among steps that are tried."""

HEADS_MAX = 200
"""Choices of nodes of the documents so far that are gone on with."""


@dataclass(frozen=True, slots=True)
class _Taken:
    """What a run has taken: its documents, the elements of each step, and values of FOLD."""

    documents: tuple[Document, ...] = ()
    elements: tuple[tuple[RunElement, ...], ...] = ()
    folds: tuple[Mapping[str, Values], ...] = ()


@dataclass
class RunAttempts:
    """The steps of a query on documents."""

    source: SteppedSource
    blocks: BlockAttempts
    labels: Mapping[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.labels = {each.name: each.label for each in self.blocks.query.variables}
        self._read = self.source.read()

    def best(self, documents: Sequence[Document]) -> Reason:
        """Return whether documents are a run, told of the way that comes furthest."""
        ordered = sorted(documents, key=lambda each: (each.end_us, each.docid))
        places = list(_ways(self.source.steps, len(ordered)))
        best = Reason("run", False, "no run has so many documents")
        for steps in places:
            found = self._walk(ordered, steps)
            if found.holds or found.progress > best.progress or len(places) == 1:
                best = found
            if found.holds:
                break
        return best

    def _walk(self, documents: Sequence[Document], steps: Sequence[int]) -> Reason:
        """Return whether documents are the elements of steps, which are named by number."""
        heads = [_Taken()]
        for place, (document, step) in enumerate(zip(documents, steps, strict=True)):
            bound, reason = self._elements(document, self.source.steps[step])
            longer: list[_Taken] = []
            for head in heads if bound else ():
                for element in bound:
                    failure = self._failure(head, step, document, element, place == len(steps) - 1)
                    if failure is None:
                        longer.append(self._longer(head, step, document, element))
                    elif reason.holds or failure.progress > reason.progress:
                        reason = failure
            if not longer:
                return self._ended(documents, steps, place, reason)
            heads = longer[:HEADS_MAX]
        numbers = ", ".join(str(each.docid) for each in documents)
        return Reason("run", True, f"documents {numbers} fit one behind the other")

    def _ended(
        self, documents: Sequence[Document], steps: Sequence[int], place: int, reason: Reason
    ) -> Reason:
        """Return the reason that a run does not take the document at a place."""
        document, progress = documents[place], (place + reason.progress) / len(documents)
        facts = {"document": document.docid, "step": steps[place]}
        what = "ended" if place and steps[place] == steps[place - 1] else "came no further than"
        text = f"the run {what} at {document.docid}" if what == "ended" else None
        if text is None:
            before = (
                f"behind document {documents[place - 1].docid}" if place else "at the beginning"
            )
            text = f"document {document.docid} cannot stand {before}"
        if reason.kind == "block":
            where = f"{text}, {document.stream} {render_time(document.end_us)}"
            return Reason("run", False, where, None, facts, (reason,), progress)
        return Reason("run", False, f"{text}: {reason.text}", reason.hint, facts, (), progress)

    # -- one element ---------------------------------------------------------------------------

    def _elements(self, document: Document, step: RunStep) -> tuple[list[RunElement], Reason]:
        """Return a document as elements of a step, and the reason if it is none."""
        best: Reason | None = None
        found: list[RunElement] = []
        for block in step.unit.blocks:
            reason, bindings = self.blocks.block(block, document, self._read)
            if best is None or reason.progress > best.progress:
                best = reason
            for binding in bindings:
                terms = {name: TermNode(each.number, each.value) for name, each in binding.items()}
                found.append(RunElement(block, document.start_us, document.end_us, terms))
        assert best is not None
        return found, best

    def _failure(
        self, head: _Taken, step: int, document: Document, element: RunElement, is_last: bool
    ) -> Reason | None:
        """Return why a run does not take an element, None where it does."""
        own = self.source.steps[step]
        is_first = len(head.elements) <= step
        late = self._out_of_time(head, step, document)
        if late is not None:
            return late
        reading = self._reading(head, step, document, element)
        asked = [*([own.first] if is_first else []), *own.each]
        for disjuncts in asked:
            failure = self._unfulfilled(disjuncts, reading)
            if failure is not None:
                return failure
        for scope in self.source.scopes:
            failure = self._other_key(scope, head, step, element)
            if failure is not None:
                return failure
        if is_last:
            return self._kept_out(self._longer(head, step, document, element))
        return None

    def _out_of_time(self, head: _Taken, step: int, document: Document) -> Reason | None:
        """Return why the times of an element do not fit."""
        own = self.source.steps[step]
        if not head.documents:
            bounds = []
        else:
            last = head.documents[-1]
            if document.start_us <= last.end_us:
                text = f"it does not begin after document {last.docid} ends"
                return Reason("order", False, text)
            own_start = sum(len(each) for each in head.elements[:step])
            bounds = [("", head.documents[own_start - 1], own.window_us)] if own_start else []
            if len(head.elements) > step:
                bounds.append(("", last, own.gap_us))
        for what, first, longest_us in bounds:
            apart = document.end_us - first.end_us
            if apart > longest_us:
                return _too_far(apart, longest_us, f"behind document {first.docid}{what}")
        for scope in self.source.scopes:
            if not scope.first <= step <= scope.last:
                continue
            begun = sum(len(each) for each in head.elements[: scope.first])
            begin = head.documents[begun] if begun < len(head.documents) else document
            apart = document.end_us - begin.start_us
            if apart > scope.within_us:
                return _too_far(apart, scope.within_us, f"from document {begin.docid} on, WITHIN")
        return None

    def _other_key(
        self, scope: RunScope, head: _Taken, step: int, element: RunElement
    ) -> Reason | None:
        """Return why SAME does not hold of an element."""
        if not scope.first <= step <= scope.last:
            return None
        others = [e for each in head.elements[scope.first : scope.last + 1] for e in each]
        for key in scope.source.keys:
            value = element.terms[key.variable(element.block)].value
            if not value:
                return Reason("value join", False, "a key of SAME is empty there")
            known = [one.terms[key.variable(one.block)].value for one in others[:1]]
            if known and known[0] != value:
                text = f"SAME: its key is {value!r}, that of the run is {known[0]!r}"
                return Reason("value join", False, text)
        return None

    def _kept_out(self, whole: _Taken) -> Reason | None:
        """Return why WHERE keeps a complete run out."""
        start_us = whole.documents[0].start_us
        runs = {
            step.unit.run: RunAtHand(elements, None, folds)
            for step, elements, folds in zip(
                self.source.steps, whole.elements, whole.folds, strict=False
            )
        }
        for scope in self.source.scopes:
            begun = sum(len(each) for each in whole.elements[: scope.first])
            end = sum(len(each) for each in whole.elements[: scope.last + 1])
            part = whole.documents[begun:end]
            start_us, end_us = part[0].start_us, part[-1].end_us
            reading = RunReading({}, start_us, end_us, RunAtHand((), None, {}), runs)
            failure = self._unfulfilled(scope.where, reading)
            if failure is not None:
                return replace(failure, text=f"WHERE keeps the run out: {failure.text}")
        return None

    # -- what conditions read ------------------------------------------------------------------

    def _reading(
        self, head: _Taken, step: int, document: Document, element: RunElement | None
    ) -> RunReading:
        steps = self.source.steps
        before = range(min(step, len(head.elements)))
        runs = {
            steps[each].unit.run: RunAtHand(head.elements[each], None, head.folds[each])
            for each in before
        }
        start_us = head.documents[0].start_us if head.documents else document.start_us
        own = head.elements[step] if len(head.elements) > step else ()
        empty = RunReading({}, start_us, document.end_us, RunAtHand((), None, {}), runs)
        if own:
            folds = head.folds[step]
        else:
            # What is folded at first speaks of what stands before.
            left = head.documents
            between_us = (left[0].start_us, left[-1].end_us) if left else (0, 0)
            ahead = RunReading({}, *between_us, RunAtHand((), None, {}), runs)
            folds = _folded(steps[step], ahead, 0)
        return empty._replace(run=RunAtHand(own, element, folds))

    def _longer(self, head: _Taken, step: int, document: Document, element: RunElement) -> _Taken:
        reading = self._reading(head, step, document, element)
        folds = _folded(self.source.steps[step], reading, 1)
        own = head.elements[step] if len(head.elements) > step else ()
        return _Taken(
            (*head.documents, document),
            (*head.elements[:step], (*own, element)),
            (*head.folds[:step], folds),
        )

    def _unfulfilled(self, disjuncts: Sequence[Disjunct], reading: RunReading) -> Reason | None:
        """Return which conditions fail, those of the alternative that comes furthest."""
        best: Reason | None = None
        for disjunct in disjuncts:
            failing = [each for each in _single(disjunct) if not compile_conjunction(each)(reading)]
            if not failing:
                return None
            text = "; ".join(self._spelled(each, reading) for each in failing)
            progress = 0.9 - 0.5 * len(failing) / max(1, len(list(_single(disjunct))))
            if best is None or progress > best.progress:
                best = Reason("residual", False, text, None, {}, (), progress)
        return best

    def _spelled(self, single: Disjunct, reading: RunReading) -> str:
        """Return a condition that fails, with the values that it compares."""
        labels = dict(self.labels)
        are_ordered = any(each.operator[0] in "<>" for each in single.residuals)

        def shown(operand: Operand, quantity: Quantity = Quantity.NONE) -> str:
            values = compile_values(operand)(reading)
            return side_text([to_double(v) for v in values] if are_ordered else values, quantity)

        for join in single.similarity_joins:
            return f"`{spell_comparison(join.residual, labels)}` does not hold"
        for test in single.tests:
            if test.function == "joins":
                return (
                    f"`{spell_operand(test, labels)}` is {' = '.join(map(shown, test.arguments))}"
                )
            values = ", ".join(map(shown, test.arguments))
            return f"`{spell_operand(test, labels)}` does not hold of {values}"
        compared: Sequence[ValueJoin | Residual] = (*single.value_joins, *single.residuals)
        (comparison,) = compared
        operator = comparison.operator if isinstance(comparison, Residual) else "="
        quantity = quantity_of_both(comparison.left, comparison.right)
        sides = f" {operator} ".join(
            shown(each, quantity) for each in (comparison.left, comparison.right)
        )
        return f"`{spell_comparison(comparison, labels)}` is {sides}"


def _single(disjunct: Disjunct) -> Iterator[Disjunct]:
    """Yield the conditions of a conjunction, one by one."""
    yield from (Disjunct(value_joins=(each,)) for each in disjunct.value_joins)
    yield from (Disjunct(residuals=(each,)) for each in disjunct.residuals)
    yield from (Disjunct(similarity_joins=(each,)) for each in disjunct.similarity_joins)
    yield from (Disjunct(tests=(each,)) for each in disjunct.tests)


def _folded(step: RunStep, reading: RunReading, side: int) -> dict[str, Values]:
    """Return values of FOLD, at first (0) or behind a further element (1)."""
    return {name: tuple(compile_values(sides[side])(reading)) for name, *sides in step.folds}


def _too_far(apart_us: int, longest_us: int, what: str) -> Reason:
    over, allowed = spell_length(apart_us), render_duration(longest_us)
    return Reason("window", False, f"it is {over} {what}, {allowed} allowed")


def _ways(steps: Sequence[RunStep], count: int) -> Iterator[tuple[int, ...]]:
    """Yield the ways to divide documents in order among steps, the step of each document."""
    repeated = [number for number, step in enumerate(steps) if step.is_repeated]
    spare = count - len(steps)
    if spare < 0 or (spare and not repeated):
        return
    slots = spare + len(repeated) - 1
    dividers = combinations(range(slots), len(repeated) - 1) if repeated else iter([()])
    for bars in islice(dividers, WAYS_MAX):
        edges = [-1, *bars, slots]
        more = {step: edges[i + 1] - edges[i] - 1 for i, step in enumerate(repeated)}
        yield tuple(n for n in range(len(steps)) for _ in range(1 + more.get(n, 0)))
