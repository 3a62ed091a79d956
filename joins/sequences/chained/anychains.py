"""One chain under MATCH ANY, batch by batch: nothing of it is listed before it is complete.

    reached   an element is where another that is may stand before it, or a run begins with it.
              Neighbours are held against each other only: no run need lead there, but none
              leads to what is not reached
    lines     what is reached, under the values that what comes behind it must have
    complete  with an element of the last step the runs are listed that end there: back over what
              is reached, then each from its beginning.  With one that came late, the runs through
              it; where no element of the last step is behind it, nothing is looked at
    ways      on the way back the runs are counted of which nothing else is asked than what is
              asked of neighbours: where they are too many, none is listed
    limit     a document with too many runs makes none, nor does a later one

`docs/repetition.md` has the theory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

from joins.budget.limits import RunLimits
from joins.memory.durations import UNBOUNDED
from joins.sequences.absentunits import Key
from joins.sequences.chained.chainelements import ChainElements
from joins.sequences.chained.chainparts import ChainHead, DecidedChain
from joins.sequences.chained.chainsteps import StepEvaluation
from joins.sequences.chained.neighbours import Neighbours, are_remembered
from joins.sequences.clock import WatermarkSteps
from joins.sequences.runparts import Part
from templates.chaindecision import ChainDecision

__all__ = ["AnyChainEvaluation"]


@dataclass(slots=True, eq=False)
class _StepNode:
    """An element at a step."""

    part: Part
    step: int
    same: Key

    @property
    def end_us(self) -> int:
        """When it ends."""
        return self.part.end_us


_END = attrgetter("end_us")


class _TooManyRunsError(Exception):
    """More runs end with an element than its document may make."""


class _Onward(NamedTuple):
    """What may lead to an element, with what it leads to; and the runs that begin there."""

    steps: dict[_StepNode, dict[_StepNode, None]]
    begun: list[tuple[ChainHead, _StepNode]]


_Place = tuple[int, bool, Key]
"""A step, whether a further element of it is looked for, and the values that it must have."""


class AnyChainEvaluation(ChainElements):
    """The elements of one chain."""

    def __init__(self, decision: ChainDecision, lateness_us: int, limits: RunLimits) -> None:
        super().__init__(decision, limits)
        self.needs = self._of_each_step()
        self._lateness_us = lateness_us
        count = len(decision.links)
        self._steps = [StepEvaluation(decision, number, lateness_us) for number in range(count)]
        self._neighbours = [Neighbours(decision, number) for number in range(count)]
        self._lines: dict[_Place, list[_StepNode]] = defaultdict(list)
        self._reached: list[list[_StepNode]] = [[] for _ in decision.links]
        self._unreached: list[_StepNode] = []
        self._unreached_us = -UNBOUNDED
        windows = [link.window_us for link in decision.links]
        self._shortest_us = min(decision.within_us, UNBOUNDED, *windows)
        self._are_counted = all(each.is_all for each in self._neighbours)
        self._newest_us = -UNBOUNDED
        self._size = 0

    def __len__(self) -> int:
        return self._size

    # -- a batch -------------------------------------------------------------------------------

    def decide(self, clock: WatermarkSteps) -> list[DecidedChain]:
        """Return the runs that are complete with the elements of the batch."""
        new = [(part, step) for step, parts in enumerate(self._parts) for part in parts.take_new()]
        new.sort(key=lambda each: (each[0].position, each[1]))
        found: list[ChainHead] = []
        docid, begun, looked_at = 0, 0, 0
        for part, number in new:
            if part.docid != docid:
                docid, begun, looked_at = part.docid, len(found), 0
            if self.limit is not None and docid >= self.limit:
                break
            same = self._steps[number].same(part)
            if same is None:
                continue
            try:
                for head, is_complete in self._with(
                    _StepNode(part, number, same), self._limits.runs - (len(found) - begun)
                ):
                    looked_at += 1
                    if is_complete:
                        found.append(head)
                    if (
                        len(found) - begun > self._limits.runs
                        or looked_at > self._limits.heads
                        or head.size > self._limits.elements
                    ):
                        raise _TooManyRunsError
            except _TooManyRunsError:
                self.limit = docid
                del found[begun:]
        return list(map(self._decided, found))

    def _decided(self, head: ChainHead) -> DecidedChain:
        return DecidedChain(head.steps(), self._steps[head.step].complete(head), None)

    # -- what is reached -----------------------------------------------------------------------

    def _with(self, node: _StepNode, runs: int) -> Iterator[tuple[ChainHead, bool]]:
        """Add an element; yield the runs that go through it, and whether they are complete.

        `runs` are as many as may be.
        """
        self._size += 1
        self._newest_us = max(self._newest_us, node.part.watermark_us)
        if not self._is_reached(node):
            self._unreached.append(node)
            self._unreached_us = max(self._unreached_us, node.part.start_us)
            return
        self._reach(node)
        last = len(self._steps) - 1
        if self._unreached_us > node.end_us:
            self._reach_behind(node)
        ends = self._reached[last]
        if node.step == last or (ends and ends[-1].end_us > node.end_us):
            yield from self._through(node, runs)

    def _is_reached(self, node: _StepNode) -> bool:
        if node.step == 0 and self._steps[0].begun(node.part, node.same) is not None:
            return True
        return next(self._before(node), None) is not None

    def _reach(self, node: _StepNode) -> None:
        """Have an element be found by what comes behind it."""
        insort(self._reached[node.step], node, key=_END)
        for number in self._nexts(node.step):
            is_further = number == node.step
            for key in self._neighbours[number].keys_of_one(node.part, is_further=is_further):
                place = (number, is_further, (*node.same, *key))
                insort(self._lines[place], node, key=_END)
                self._size += 1

    def _reach_behind(self, late: _StepNode) -> None:
        """Reach what was not, and may be now that an element came late."""
        behind = [each for each in self._unreached if each.part.start_us > late.end_us]
        left = [each for each in self._unreached if each.part.start_us <= late.end_us]
        for each in sorted(behind, key=_END):
            if self._is_reached(each):
                self._reach(each)
            else:
                left.append(each)
        self._unreached = left
        self._unreached_us = max((each.part.start_us for each in left), default=-UNBOUNDED)

    def _nexts(self, number: int) -> list[int]:
        """Return the steps that may come behind one."""
        is_repeated, last = self._steps[number].link.is_repeated, len(self._steps) - 1
        return [*([number] if is_repeated else []), *([number + 1] if number < last else [])]

    def _before(self, node: _StepNode) -> Iterator[_StepNode]:
        """Yield what is reached that may stand before an element, as far as both say."""
        part, neighbours = node.part, self._neighbours[node.step]
        for is_further in (True, False):
            if node.step == 0 if not is_further else not neighbours.is_repeated:
                continue
            from_us = part.end_us - neighbours.longest_us(is_further=is_further)
            keys = neighbours.keys_of_other(part, is_further=is_further)
            met: set[_StepNode] = set()
            for key in keys:
                line = self._lines.get((node.step, is_further, (*node.same, *key)), [])
                at = bisect_left(line, part.start_us, key=_END)
                while at and line[at - 1].end_us >= from_us:
                    at -= 1
                    # Two that have several values in common are one pair.
                    if len(keys) > 1:
                        if line[at] in met:
                            continue
                        met.add(line[at])
                    if neighbours.may_follow(line[at].part, part, is_further=is_further):
                        yield line[at]

    def _behind(self, node: _StepNode) -> Iterator[_StepNode]:
        """Yield what is reached that may come behind an element."""
        for number in self._nexts(node.step):
            own, is_further = self._reached[number], number == node.step
            neighbours = self._neighbours[number]
            until_us = node.end_us + neighbours.longest_us(is_further=is_further)
            for each in own[bisect_right(own, node.end_us, key=_END) :]:
                if each.end_us > until_us:
                    break
                if each.part.start_us > node.end_us and each.same == node.same:
                    yield each

    # -- what is complete ----------------------------------------------------------------------

    def _through(self, node: _StepNode, runs: int) -> Iterator[tuple[ChainHead, bool]]:
        """Yield the runs through an element, and on the way all that might become one."""
        last = len(self._steps) - 1
        onward, heads = self._onward(node, runs if node.step == last else None)
        while heads:
            head, at = heads.pop()
            head.has_gone_on = at is node or head.has_gone_on
            yield head, head.has_gone_on and at.step == last
            own = self._steps[at.step]
            for each in self._behind(at) if head.has_gone_on else onward[at]:
                longer = self._steps[each.step].longer(head, own, each.part)
                if longer is not None and are_remembered(
                    head, longer, self.decision, self._lateness_us
                ):
                    longer.has_gone_on = head.has_gone_on
                    heads.append((longer, each))

    def _onward(self, node: _StepNode, runs: int | None) -> _Onward:
        """Return what may lead to an element; raise where certainly more than so many runs do."""
        from_us = self._counted_from_us(node)
        found = _Onward({node: {}}, [])
        ways: dict[_StepNode, int] = {}
        counts = [int(self._begin(node, found))]
        stack = [(node, self._before(node))]
        total = counts[0]
        while stack:
            at, befores = stack[-1]
            for before in befores:
                is_new = before not in found.steps
                found.steps.setdefault(before, {})[at] = None
                if is_new:
                    stack.append((before, self._before(before)))
                    is_begun = self._begin(before, found) and before.part.start_us >= from_us
                    counts.append(int(is_begun))
                    total += is_begun
                    break
                counts[-1] += ways[before]
                total += ways[before]
                if runs is not None and total > runs:
                    raise _TooManyRunsError
            else:
                stack.pop()
                ways[at] = counts.pop()
                if stack:
                    counts[-1] += ways[at]
            if runs is not None and total > runs:
                raise _TooManyRunsError
        return found

    def _begin(self, node: _StepNode, found: _Onward) -> bool:
        """Return whether runs begin with an element; add the one that does."""
        head = self._steps[0].begun(node.part, node.same) if node.step == 0 else None
        if head is not None:
            found.begun.append((head, node))
        return head is not None

    def _counted_from_us(self, node: _StepNode) -> int:
        """Return from when on what leads to an element certainly is a run with it.

        All windows reach so far, and all that lies there is remembered with each other.
        """
        if not self._are_counted:
            return UNBOUNDED
        if self._shortest_us >= UNBOUNDED:
            return -UNBOUNDED
        return max(node.end_us, self._newest_us - self._lateness_us) - self._shortest_us

    # -- what is kept --------------------------------------------------------------------------

    def evict(self, horizon_us: int) -> None:
        """Forget, once there are enough, what no run can take any more."""
        if self._size <= self._swept:
            return
        retention_us = self.decision.retained_us
        if retention_us < UNBOUNDED:
            before_us = horizon_us - retention_us
            for own in (*self._lines.values(), *self._reached):
                del own[: bisect_left(own, before_us, key=_END)]
            self._lines = defaultdict(list, {at: own for at, own in self._lines.items() if own})
            self._unreached = [each for each in self._unreached if each.end_us >= before_us]
        self._size = len(self._unreached) + sum(map(len, (*self._reached, *self._lines.values())))
        self._swept = max(self._limits.swept_parts, 2 * self._size)
