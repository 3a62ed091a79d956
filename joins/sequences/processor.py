"""A join with decisions among its classes.

Rows that the join absorbs and a decision reads are taken by the way.  To the join a class whose
tuples are decided is a class of a stratum that is never probed: it has a number, and keeps the
instances that its tuples are made of.  Nothing else of any engine is touched, so decisions stand
over every one of them, in one process or in shards.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from joins.budget.limits import DEFAULT_RUN_LIMITS, RunLimits
from joins.budget.pairs import Overrun
from joins.classes import Holders, Retaining, UseKind
from joins.engines import Processor
from joins.memory.durations import CLOSED
from joins.memory.instance import Instance
from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits
from joins.memory.slots import Ints
from joins.memory.tupletable import ClassTuple, TupleTable
from joins.sequences.batch import DecidingBatch
from joins.sequences.clock import WatermarkSteps
from joins.sequences.contenders import StreamRows
from joins.sequences.decidedtuples import DecidedTuples
from joins.sequences.evaluation import Evaluation
from joins.sequences.planning.outputs import ClassOutput, ClassOutputs
from joins.sequences.planning.plan import Plan
from joins.sequences.repetitions import Repetitions
from joins.sequences.runends import CountedEnds
from joins.sequences.runrows import Documents
from templates.chaindecision import DecidedChains
from templates.decision import Decided, Decision
from templates.queryclass import QueryClass
from templates.rundecision import DecidedRuns
from templates.template import Template
from xpath_eval.shape import Edge

__all__ = ["DecidingProcessor"]

NEVER = -1
"""The stratum of classes that no engine probes."""


class DecidingProcessor:
    """A join, `inner`, and the decisions over its tuples; see `engines.Processor`."""

    def __init__(
        self,
        inner: Processor,
        lateness_us: int,
        limits: MemoryLimits = DEFAULT_MEMORY_LIMITS,
        run_limits: RunLimits = DEFAULT_RUN_LIMITS,
    ) -> None:
        self.inner = inner
        self._windows: dict[int, Counter[int]] = defaultdict(Counter)
        self._least: dict[int, float] = {}
        self._classes: dict[int, QueryClass] = {}
        self._strata: Counter[int] = Counter()
        self._joined_as: dict[QueryClass, QueryClass] = {}
        self._plan = Plan()
        self._evaluation = Evaluation(self._plan, lateness_us, limits)
        self._handed_on: dict[int, ClassOutput] = {}
        self._of_strata: dict[int, ClassOutputs] = {}
        self._repetitions = Repetitions(inner, lateness_us, run_limits)
        self._batch = DecidingBatch(WatermarkSteps(), self._repetitions.next_identity)
        self._has_changed = False

    # -- classes -------------------------------------------------------------------------------

    @property
    def strata(self) -> list[int]:
        """The strata in use, lowest first."""
        own = (each for each in self.inner.strata if each != NEVER)
        return sorted(self._strata.keys() | own)

    def add(
        self,
        query_class: QueryClass,
        window_us: int,
        point: int = 0,
        least: Sequence[float] = (),
        holder: int = 0,
        times: int = 1,
    ) -> int:
        """Add so many uses of a class, from a registration point on; return the class's number."""
        decided = query_class.decided
        if decided is None:
            return self.inner.add(query_class, window_us, point, least, holder, times)
        number = self.inner.add(self._joined(query_class), window_us, point, times=times)
        self.inner.retain(number, window_us, times)
        windows = self._windows[number]
        self._has_changed |= window_us not in windows
        windows[window_us] += times
        if least and least[0] < self._least.get(number, math.inf):
            self._least[number] = least[0]
            self._has_changed = True
        if number not in self._classes:
            self._strata[query_class.stratum] += 1
        self._classes[number] = query_class
        if isinstance(decided, (DecidedRuns, DecidedChains)) and not decided.given:
            kind = UseKind(window_us, point)
            self._repetitions.add(number, query_class.stratum, decided, kind, times)
        return number

    def _joined(self, query_class: QueryClass) -> QueryClass:
        """Return the class that the join has in place of a decided one: it is never probed."""
        joined = self._joined_as.get(query_class)
        if joined is None:
            joined = self._joined_as[query_class] = replace(query_class, stratum=NEVER)
        return joined

    def remove(
        self,
        number: int,
        window_us: int,
        point: int = 0,
        least: Sequence[float] = (),
        holder: int = 0,
        times: int = 1,
    ) -> None:
        """Undo so many of what `add` did."""
        if number in self._classes:
            if not self._is_given(number):
                self._repetitions.remove(number, UseKind(window_us, point), times)
            self.inner.release(number, window_us, times)
            windows = self._windows[number]
            windows[window_us] -= times
            if not windows[window_us]:
                del windows[window_us]
                self._has_changed = True
            if not windows:
                gone = self._classes.pop(number)
                del self._windows[number], self._joined_as[gone]
                self._strata -= Counter([gone.stratum])
                self._handed_on.pop(number, None)
                self._least.pop(number, None)
                self._has_changed = True
            least = ()
        self.inner.remove(number, window_us, point, least, holder, times)

    def _is_given(self, number: int) -> bool:
        decided = self._classes[number].decided
        return isinstance(decided, (DecidedRuns, DecidedChains)) and bool(decided.given)

    def give(
        self, number: int, window_us: int, point: int, said: Sequence[str], times: int = 1
    ) -> None:
        """Have what is decided of a class be decided for a vector of data: so many uses ask."""
        query_class = self._classes[number]
        decided, kind = query_class.decided, UseKind(window_us, point)
        assert isinstance(decided, (DecidedRuns, DecidedChains))
        self._repetitions.add(number, query_class.stratum, decided, kind, times, tuple(said))
        self._has_changed = True

    def take_back(
        self, number: int, window_us: int, point: int, said: Sequence[str], times: int = 1
    ) -> None:
        """Undo so many of what `give` did."""
        self._repetitions.remove(number, UseKind(window_us, point), times, tuple(said))
        self._has_changed = True

    def ask(self, holders: Holders) -> None:
        """Ask these whose tuples are whose."""
        self.inner.ask(holders)

    def retain(self, number: int, retention_us: int, times: int = 1) -> None:
        """Keep instances that can fill a class for longer than its window."""
        self.inner.retain(number, retention_us, times)

    def release(self, number: int, retention_us: int, times: int = 1) -> None:
        """Undo so many of what `retain` did."""
        self.inner.release(number, retention_us, times)

    def template_of(self, number: int) -> Template:
        """Return the template of a class."""
        return self.inner.template_of(number)

    def _follow(self) -> None:
        """Take decisions that came into use into the plan, and leave out the ones out of use."""
        wanted: dict[Decision, int] = {}
        windows: dict[Decision, set[int]] = defaultdict(set)
        for number, each in self._classes.items():
            if isinstance(each.decided, Decided):
                decision = each.decided.decision
                wanted[decision] = min(each.stratum, wanted.get(decision, each.stratum))
                if decision.is_graded or decision.is_nearing or decision.is_reaching:
                    windows[decision] |= self._windows[number].keys()
        for decision in [each for each in self._plan.numbers if each not in wanted]:
            self._plan.remove(decision)
        have_moved = [
            self._plan.take(each, stratum, windows[each]) for each, stratum in wanted.items()
        ]
        if any(have_moved):
            self._evaluation.move()
        are_lowered = [
            self._plan.lower(each.decided.decision, self._least[number])
            for number, each in self._classes.items()
            if isinstance(each.decided, Decided) and number in self._least
        ]
        if any(are_lowered):
            self._evaluation.renew_keys()
        for number, each in self._classes.items():
            if isinstance(each.decided, Decided) and number not in self._handed_on:
                self._handed_on[number] = self._plan.hand_on(number, each.decided)
        of_strata: dict[int, list[ClassOutput]] = {}
        for number, handed_on in self._handed_on.items():
            of_strata.setdefault(self._classes[number].stratum, []).append(handed_on)
        self._of_strata = {stratum: ClassOutputs.of(own) for stratum, own in of_strata.items()}
        self._repetitions.follow()
        self._has_changed = False

    # -- a batch -------------------------------------------------------------------------------

    @property
    def next_instance(self) -> int:
        """The number that the next instance will get."""
        return self.inner.next_instance

    def begin_batch(self) -> None:
        """Start a batch: instances that are absorbed from now on are new."""
        self.inner.begin_batch()
        self._repetitions.begin_batch()
        clock = self._batch.clock.next_batch()
        self._batch = DecidingBatch(clock, self._repetitions.next_identity)
        if self._has_changed:
            self._follow()

    def advance(self, docids: Ints, before_us: Ints, ends_us: Ints) -> None:
        """Let time pass with documents from outside: `W` before each, and its event time."""
        self._batch.clock.advance(docids, before_us, ends_us)

    def is_behind(self, watermark_us: int) -> bool:
        """Return whether time has passed that no document has told of, and something waits."""
        return bool(self._classes) and watermark_us > self._batch.clock.newest_us

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances; they get the next numbers."""
        first = self.inner.next_instance
        self.inner.absorb(instances)
        if not self._classes:
            return
        self._repetitions.absorb(instances, first)
        streams = instances.column("stream").combine_chunks().dictionary_encode()
        names = self._plan.seats.streams_of(streams.dictionary)
        for stratum, is_read in self._plan.strata_of(names):
            rows = np.flatnonzero(is_read[streams.indices.to_numpy()])
            read = instances if len(rows) == len(instances) else instances.take(pa.array(rows))
            self._evaluation.add(StreamRows(read, first + rows), stratum)

    def probe(self, stratum: int) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them."""
        return [found for table in self.tuples(stratum) for found in table.rows()]

    def tuples(self, stratum: int) -> Iterator[TupleTable]:
        """Yield the tuples of `probe` as they are found; decided tuples come last."""
        if stratum in self.inner.strata:
            yield from self.inner.tuples(stratum)
        batch = self._batch
        yield from self._repetitions.tables(stratum, batch)
        if stratum not in self._of_strata:
            return
        batch.decided.append(self._evaluation.decide(stratum, batch))
        decided = DecidedTuples.concat(batch.decided)
        if len(decided):
            yield self._evaluation.rows(decided, self._of_strata[stratum], batch.taken)

    def ends(
        self, stratum: int, takes: Callable[[int], object]
    ) -> Iterator[tuple[int, CountedEnds]]:
        """Yield runs that end and are only counted, of classes of a stratum that `takes` names.

        They are no tuples then; to be asked before `tuples`.
        """
        return self._repetitions.ends(stratum, self._batch, takes)

    def limit(self, number: int, docid: int, window_us: int = CLOSED) -> None:
        """Leave out tuples of a class, where that saves work."""
        if number not in self._classes:
            self.inner.limit(number, docid, window_us)
        elif window_us == CLOSED:
            limits = self._batch.limits
            limits[number] = min(limits[number], docid)

    # -- what is remembered --------------------------------------------------------------------

    def add_shapes(self, shapes: Mapping[str, Sequence[Edge]]) -> None:
        """Learn witness shapes by their edges."""
        self.inner.add_shapes(shapes)

    def tuple_shapes(self, names: Sequence[str], variables: Sequence[tuple[int, ...]]) -> list[int]:
        """Return the numbers of shapes of tuples by the variables of their nodes."""
        return self.inner.tuple_shapes(names, variables)

    def shape_number(self, shape: str) -> int | None:
        """Return the number of a witness shape, or None while it is not known."""
        return self.inner.shape_number(shape)

    def remembered(self, horizon_us: int) -> int:
        """Return how many instances are remembered that some class can still use."""
        return self.inner.remembered(horizon_us)

    def retaining(self, horizon_us: int) -> Retaining:
        """Return the classes because of which most of the remembered instances are kept."""
        return self.inner.retaining(horizon_us)

    def overruns(self) -> Sequence[Overrun]:
        """Return the uses of classes that went over the budget in this batch."""
        return self._batch.overrun(self.inner.overruns(), self._repetitions.overruns())

    def warm_up(self) -> None:
        """Have all that is remembered where it is needed next."""
        self.inner.warm_up()

    def evict(self, horizon_us: int) -> int:
        """Free instances that no class can use any more, lazily; return how many went."""
        self._evaluation.evict(horizon_us)
        self._repetitions.evict(horizon_us)
        return self.inner.evict(horizon_us)

    def rows(self, numbers: Iterable[int]) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield the numbers of remembered instances, ascending, with their rows."""
        return self.inner.rows(numbers)

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""
        return self.inner.instances(numbers)

    def documents_of(self, runs: int) -> Documents | None:
        """Return what finds the documents of counted runs that were handed on in this batch.

        They are told by their node; None where the tuple has its documents.
        """
        return self._repetitions.documents_of(runs)

    def figures(self) -> dict[str, int]:
        """Return how much is remembered, and how much waits to be decided."""
        undecided = self._evaluation.waiting + self._repetitions.waiting
        decisions = len(self._plan.numbers) + len(self._repetitions)
        own = {"decisions": decisions, "undecided": undecided}
        return {**self.inner.figures(), **own}
