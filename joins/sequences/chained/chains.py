"""One chain under MATCH NEXT, PARTITION or STRICT, batch by batch.

    elements   enter at the document from which they count: the one that settles their end, or their
               own where that is later; till then they wait, by end
    documents  of the chain's streams enter likewise: STRICT and PARTITION go from one to the next
    heads      wait under the values that their next element must have, until a time
    absent     is asked when a run is decided, of what is there by then
    limit      a document with too many runs, or too long ones, makes none, nor does a later one

`docs/repetition.md` has the theory.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any

from joins.budget.limits import RunLimits
from joins.memory.durations import UNBOUNDED
from joins.sequences.absentunits import Key, KeyedElements
from joins.sequences.chained.chainelements import ChainElements
from joins.sequences.chained.chainparts import ChainHead, DecidedChain, WaitingHeads
from joins.sequences.chained.chainsteps import ChainAbsence, StepEvaluation
from joins.sequences.clock import WatermarkSteps
from joins.sequences.runparts import Part
from templates.chaindecision import ChainDecision

__all__ = ["ChainEvaluation"]

_END = attrgetter("end_us")

_Place = tuple[int, Key]


class ChainEvaluation(ChainElements):
    """The elements and heads of one chain."""

    def __init__(self, decision: ChainDecision, lateness_us: int, limits: RunLimits) -> None:
        super().__init__(decision, limits)
        self._steps = [
            StepEvaluation(decision, number, lateness_us) for number in range(len(decision.links))
        ]
        self._absent = [ChainAbsence(decision, each, lateness_us) for each in decision.absences]
        self._is_contiguous = decision.is_contiguous
        for unit in self._absent:
            self._take(unit.parts, unit.absent.elements)
        self._document_parts = self._parts_of(decision.documents)
        self._document_keys = {each.block: each.keys for each in decision.documents}
        self._lines: dict[_Place, KeyedElements] = defaultdict(KeyedElements)
        self._heads: dict[_Place, WaitingHeads] = defaultdict(WaitingHeads)
        self._of_document: dict[tuple[int, ...], list[tuple[int, Part]]] = defaultdict(list)
        self._size = 0
        self._counts: Counter[tuple[int, Key]] = Counter()
        self._head_counts: Counter[tuple[int, Key]] = Counter()

    def __len__(self) -> int:
        return self._size

    # -- a batch -------------------------------------------------------------------------------

    def decide(self, clock: WatermarkSteps) -> list[DecidedChain]:
        """Return the runs that are decided in the batch, in no order."""
        self._counts.clear()
        self._head_counts.clear()
        self._size += sum(unit.take_new() for unit in self._absent)
        entering = self._entering(clock)
        found = self._contiguous(entering) if self._is_contiguous else self._next(entering)
        return [one for one in map(self._decided, found) if one is not None]

    def _entering(self, clock: WatermarkSteps) -> list[tuple[int, Part]]:
        """Return what counts from documents of the batch on, each with its step; by end.

        Documents are in the step behind the last.
        """
        for step, parts in enumerate([*self._parts, self._document_parts]):
            for part in parts.take_new():
                self._settling.add(step, part)
        return self._settling.entering(clock)

    def _is_taken(self, head: ChainHead) -> bool:
        """Return whether a run goes on, or its newest document makes too many."""
        if self.limit is not None and head.docid >= self.limit:
            return False
        is_last = head.step == len(self._steps) - 1
        key = head.docid, head.first.data
        self._head_counts[key] += 1
        self._counts[key] += is_last
        runs, heads = self._counts[key], self._head_counts[key]
        limits = self._limits
        if runs <= limits.runs and heads <= limits.heads and head.size <= limits.elements:
            return True
        self.limit = head.docid
        return False

    def _decided(self, head: ChainHead) -> DecidedChain | None:
        """Return a complete run as it is decided, None where something takes it away."""
        steps = head.steps()
        runs = self._steps[head.step].complete(head)
        docid = max(head.docid, head.part.settled)
        if any(unit.takes_away(steps, runs, head.same, docid) for unit in self._absent):
            return None
        return DecidedChain(steps, runs, docid)

    def _with_begun(self, step: int, part: Part) -> ChainHead | None:
        same = self._steps[0].same(part) if step == 0 else None
        return None if same is None else self._steps[0].begun(part, same)

    # -- NEXT ----------------------------------------------------------------------------------

    def _next(self, entering: Sequence[tuple[int, Part]]) -> Iterator[ChainHead]:
        """Yield the complete runs: what has entered is looked up once by each head."""
        touched: dict[int, tuple[ChainHead, dict[Part, None], dict[Part, None]]] = {}
        begun: list[ChainHead] = []
        for number, part in entering:
            step = self._steps[number]
            same = step.same(part)
            if same is None:
                continue
            if number == 0 and (head := step.begun(part, same)) is not None:
                begun.append(head)
            for is_first in (True, False):
                if number == 0 if is_first else not step.link.is_repeated:
                    continue
                for key in step.places_of(part, same, is_first=is_first):
                    place = 2 * number + (not is_first), key
                    self._lines[place].add(part)
                    self._size += 1
                    waiting = self._heads.get(place)
                    for head in waiting.concerned(part.start_us) if waiting else ():
                        _, further, first = touched.setdefault(id(head), (head, {}, {}))
                        (further if head.step == number else first)[part] = None
        for head, further, first in touched.values():
            yield from self._advance(head, list(further), list(first))
        for head in begun:
            if self._is_taken(head):
                yield from self._advance(head, None, None)

    def _advance(
        self, head: ChainHead, further: list[Part] | None, first: list[Part] | None
    ) -> Iterator[ChainHead]:
        """Yield the complete runs that a head becomes with what has entered, or some of that."""
        stack = [(head, further, first)]
        while stack:
            head, further, first = stack.pop()
            is_new = further is None
            if is_new and head.step == len(self._steps) - 1:
                yield head
            longer = self._further(head, further) if self._steps[head.step].link.is_repeated else []
            if head.step < len(self._steps) - 1:
                longer += self._onward(head, first)
            stack += [(each, None, None) for each in longer if self._is_taken(each)]
            self._wait(head)

    def _further(self, head: ChainHead, parts: list[Part] | None) -> list[ChainHead]:
        """Return the runs with the next element of a repetition, and note what stands before it."""
        step = self._steps[head.step]
        known = self._known(head, step, step) if parts is None else sorted(parts, key=_END)
        best: tuple[int, int] | None = None
        found: list[ChainHead] = []
        for part in known:
            if best is not None and part.settled > best[0]:
                break
            longer = step.longer(head, step, part)
            if longer is None:
                continue
            head.nearer.append(part)
            at = max(part.entered, head.part.docid), part.end_us
            if best is None or at < best:
                best, found = at, []
            if at == best:
                found.append(longer)
        if head.has_gone_on:
            return []
        head.has_gone_on = bool(found)
        return found

    def _onward(self, head: ChainHead, parts: list[Part] | None) -> list[ChainHead]:
        """Return the runs that go on in the next step."""
        own, step = self._steps[head.step], self._steps[head.step + 1]
        known = self._known(head, own, step) if parts is None else sorted(parts, key=_END)
        if not own.link.is_repeated:
            found = self._nearest(head, own, step, known)
            head.has_gone_on = head.has_gone_on or bool(found)
            return found
        found = []
        for part in known:
            docid = max(part.settled, part.docid, head.docid)
            if any(near.end_us < part.start_us and near.docid <= docid for near in head.nearer):
                continue
            longer = step.longer(head, own, part)
            if longer is not None:
                found.append(longer)
        return found

    def _nearest(
        self, head: ChainHead, own: StepEvaluation, step: StepEvaluation, parts: Iterable[Part]
    ) -> list[ChainHead]:
        """Return the runs with the elements that fit with the least (document, end)."""
        best: tuple[int, int] | None = None
        found: list[ChainHead] = []
        for part in parts:
            if best is not None and part.settled > best[0]:
                break
            at = max(part.entered, head.part.docid), part.end_us
            if best is not None and at > best:
                continue
            longer = step.longer(head, own, part)
            if longer is None:
                continue
            if best is None or at < best:
                best, found = at, []
            found.append(longer)
        return found

    def _known(self, head: ChainHead, own: StepEvaluation, step: StepEvaluation) -> Iterator[Part]:
        """Yield what has entered behind a run that it may take in a step, by end."""
        place = 2 * step.number + (own is step)
        lines = [
            line
            for key in step.places_for(head, own)
            if (line := self._lines.get((place, key))) is not None
        ]
        # Behind the nearest one that was there when its end was settled nothing is free.
        past_us = min(
            (each.end_us for each in head.nearer if each.settled or each.docid <= head.docid),
            default=UNBOUNDED,
        )
        until_us = step.until_us(head, own)
        longest_us = max((line.longest_us for line in lines), default=0)
        parts: Iterable[Part] = lines[0].behind(head.part.end_us) if len(lines) == 1 else ()
        if len(lines) > 1:
            several = {id(p): p for line in lines for p in line.behind(head.part.end_us)}
            parts = sorted(several.values(), key=_END)
        for part in parts:
            if part.end_us > until_us or (own is not step and part.end_us - longest_us > past_us):
                break
            yield part

    def _wait(self, head: ChainHead) -> None:
        """Have a head wait for what still concerns it."""
        own = self._steps[head.step]
        head.version += 1
        past_us = min((each.end_us for each in head.nearer), default=UNBOUNDED)
        is_last = head.step == len(self._steps) - 1
        if head.has_gone_on and (is_last or not own.link.is_repeated):
            return
        for step in self._steps[head.step : head.step + 2]:
            if step is own and not own.link.is_repeated:
                continue
            until_us = min(step.until_us(head, own), past_us)
            for key in step.places_for(head, own):
                self._heads[2 * step.number + (own is step), key].add(until_us, head)
                self._size += 1

    # -- STRICT, PARTITION ---------------------------------------------------------------------

    def _contiguous(self, entering: Sequence[tuple[int, Part]]) -> Iterator[ChainHead]:
        """Yield the complete runs: a head goes to the next documents, and is over."""
        touched: dict[int, tuple[ChainHead, list[Part]]] = {}
        begun: list[ChainHead] = []
        for number, part in entering:
            if number < len(self._steps):
                self._of_document[part.leaves].append((number, part))
                self._size += 1
                head = self._with_begun(number, part)
                if head is not None:
                    begun.append(head)
                continue
            place = (0, self._key_of_document(part))
            self._lines[place].add(part)
            self._size += 1
            waiting = self._heads.get(place)
            for head in waiting.concerned(part.start_us) if waiting else ():
                touched.setdefault(id(head), (head, []))[1].append(part)
        stack: list[tuple[ChainHead, list[Part] | None]] = list(touched.values())
        stack += [(head, None) for head in begun if self._is_taken(head)]
        while stack:
            head, parts = stack.pop()
            if parts is None and head.step == len(self._steps) - 1:
                yield head
            stack += [(each, None) for each in self._next_documents(head, parts)]

    def _key_of_document(self, part: Part) -> Key:
        assert part.element is not None
        terms = self._document_keys[part.blocks[0]]
        return tuple([part.element.value(term) for term in terms])

    def _next_documents(self, head: ChainHead, parts: list[Part] | None) -> Iterator[ChainHead]:
        """Yield the runs with what fits of the next documents; or have the head wait for them."""
        # Documents say no data.
        named = head.same[: len(head.same) - len(self.decision.data)]
        place = (0, named if self.decision.is_partitioned else ())
        known: Iterable[Part] = parts or ()
        if parts is None and place in self._lines:
            known = self._lines[place].behind(head.part.end_us)
        best: tuple[int, int] | None = None
        leaves: dict[tuple[int, ...], None] = {}
        for part in known:
            if best is not None and part.settled > best[0]:
                break
            at = max(part.entered, head.part.docid), part.end_us
            if part.start_us <= head.part.end_us or (best is not None and at > best):
                continue
            if best is None or at < best:
                best, leaves = at, {}
            leaves[part.leaves] = None
        head.version += 1
        if best is None:
            self._heads[place].add(UNBOUNDED, head)
            self._size += 1
            return
        own = self._steps[head.step]
        for leaf in leaves:
            for number, part in self._of_document.get(leaf, ()):
                step = self._steps[number]
                is_onward = number == head.step + 1
                if not is_onward and not (step is own and own.link.is_repeated):
                    continue
                if step.same(part) != head.same:
                    continue
                longer = step.longer(head, own, part)
                if longer is not None and self._is_taken(longer):
                    yield longer

    # -- what is kept --------------------------------------------------------------------------

    def evict(self, horizon_us: int) -> None:
        """Forget, once there are enough, what no run can take any more, and runs that take none."""
        if self._size <= self._swept:
            return
        retention_us = self.decision.retained_us
        before_us = -UNBOUNDED if retention_us >= UNBOUNDED else horizon_us - retention_us
        _forget(self._lines, before_us)
        _forget(self._heads, before_us)
        for unit in self._absent:
            _forget(unit.lines, before_us)
        if before_us > -UNBOUNDED:
            for leaf, parts in list(self._of_document.items()):
                if parts[0][1].end_us < before_us:
                    del self._of_document[leaf]
        places: list[dict[Any, Any]] = [self._lines, self._heads, self._of_document]
        places += (unit.lines for unit in self._absent)
        self._size = sum(len(each) for own in places for each in own.values())
        self._swept = max(self._limits.swept_parts, 2 * self._size)


def _forget(places: dict[Any, Any], before_us: int) -> None:
    """Leave out lines or heads before a time, and keys under which nothing is left."""
    for place, each in list(places.items()):
        each.forget(before_us)
        if not len(each):
            del places[place]
