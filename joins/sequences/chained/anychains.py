"""One chain under MATCH ANY, batch by batch: nothing of it is listed before it is complete.

    reached   an element is where another that is may stand before it, or a run begins with it.
              Neighbours are held against each other only: no run need lead there, but none
              leads to what is not reached
    lines     what is reached, under the values that what comes behind it must have
    complete  with an element of the last step the runs are listed that end there: back over what
              is reached, then each from its beginning.  With one that came late, the runs through
              it; where no element of the last step is behind it, nothing is looked at
    limit     a document with too many runs makes none, nor does a later one

`docs/repetition.md` has the theory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter

from joins.budget.limits import RunLimits
from joins.memory.durations import UNBOUNDED
from joins.memory.instance import Instance
from joins.sequences.absentunits import Key
from joins.sequences.chained.chainparts import ChainHead, DecidedChain
from joins.sequences.chained.chainsteps import StepEvaluation
from joins.sequences.chained.neighbours import Neighbours, are_remembered
from joins.sequences.clock import WatermarkSteps
from joins.sequences.runparts import Part, Parts, Roles
from templates.chaindecision import ChainDecision
from templates.decision import TupleStream

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

_Place = tuple[int, bool, Key]
"""A step, whether a further element of it is looked for, and the values that it must have."""


class AnyChainEvaluation:
    """The elements of one chain."""

    waiting = 0

    def __init__(self, decision: ChainDecision, lateness_us: int, limits: RunLimits) -> None:
        self.decision = decision
        self._limits = limits
        self._lateness_us = lateness_us
        count = len(decision.links)
        self._steps = [StepEvaluation(decision, number, lateness_us) for number in range(count)]
        self._neighbours = [Neighbours(decision, number) for number in range(count)]
        self._parts = [Parts(of_elements=True) for _ in decision.links]
        self._roles = Roles()
        for parts, link in zip(self._parts, decision.links, strict=True):
            for each in link.elements:
                self._roles.give(each.stream, parts)
                parts.takes_elements_of(each.stream)
        self._lines: dict[_Place, list[_StepNode]] = defaultdict(list)
        self._reached: list[list[_StepNode]] = [[] for _ in decision.links]
        self._unreached: list[_StepNode] = []
        self._unreached_us = -UNBOUNDED
        self._size = 0
        self._swept = limits.swept_parts
        self.limit: int | None = None

    def __len__(self) -> int:
        return self._size

    @property
    def streams(self) -> set[str]:
        """The names of the streams that are read."""
        return self._roles.streams

    def read(self, step: int, stream: TupleStream) -> None:
        """Have rows of a stream be rows of the elements of a step."""
        self._roles.give(stream, self._parts[step])

    def add(self, stream: str, row: Instance) -> None:
        """Take a row of a stream."""
        self._roles.add(stream, row)

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
            for head, is_complete in self._with(_StepNode(part, number, same)):
                looked_at += 1
                if is_complete:
                    found.append(head)
                if (
                    len(found) - begun > self._limits.runs
                    or looked_at > self._limits.heads
                    or head.size > self._limits.elements
                ):
                    self.limit = docid
                    del found[begun:]
                    break
        return list(map(self._decided, found))

    def _decided(self, head: ChainHead) -> DecidedChain:
        return DecidedChain(head.steps(), self._steps[head.step].complete(head), None)

    # -- what is reached -----------------------------------------------------------------------

    def _with(self, node: _StepNode) -> Iterator[tuple[ChainHead, bool]]:
        """Add an element; yield the runs that go through it, and whether they are complete."""
        self._size += 1
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
            yield from self._through(node)

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
            for key in neighbours.keys_of_other(part, is_further=is_further):
                line = self._lines.get((node.step, is_further, (*node.same, *key)), [])
                at = bisect_left(line, part.start_us, key=_END)
                while at and line[at - 1].end_us >= from_us:
                    at -= 1
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

    def _through(self, node: _StepNode) -> Iterator[tuple[ChainHead, bool]]:
        """Yield the runs through an element, and on the way all that might become one."""
        onward: dict[_StepNode, dict[_StepNode, None]] = {node: {}}
        stack = [node]
        while stack:
            each = stack.pop()
            for before in self._before(each):
                if before not in onward:
                    onward[before] = {}
                    stack.append(before)
                onward[before][each] = None
        last = len(self._steps) - 1
        heads: list[tuple[ChainHead, _StepNode]] = []
        for each in onward:
            head = self._steps[0].begun(each.part, each.same) if each.step == 0 else None
            if head is not None:
                heads.append((head, each))
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
