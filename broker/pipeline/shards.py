"""Where the shards of a join are: all in this process, or in tasks, with their state in a store.

The objects of one processor are in a folder of its own, a **run** (`store.runs`).  Another run, as
after a restart, makes its state from the spool again, and may have another number of shards; what
was left behind is deleted then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from weakref import finalize

from broker.documents.spool import Spool
from broker.matching.finishing.finisher import MatchFinisher
from broker.pipeline.store.objects import WAITS_S, StorePlace
from broker.pipeline.store.runs import MemoryStore, RunsInUse, RunStore
from joins import UNBOUNDED, Processor
from joins.shards.driver import Answerer, ShardedProcessor
from joins.shards.limits import DEFAULT_SHARD_LIMITS, ShardLimits
from joins.shards.orders import Answer, Order, Store
from joins.shards.shard import Shard

__all__ = ["Join", "RunTasks", "ShardTask", "Tasks", "carry_out"]


@dataclass(frozen=True, slots=True)
class ShardTask:
    """An order, and all that a process needs that has never heard of its shard.

    Runs that are not among those `in_use` are to be forgotten.
    """

    join: Join
    run: StorePlace
    order: Order
    in_use: frozenset[str]


Documents = Callable[[Iterable[int]], Mapping[int, bytes]]
"""Returns the texts of documents by docid."""

RunTasks = Callable[[Sequence[ShardTask]], Sequence[Answer]]
"""Has tasks carried out, by `carry_out`, in whatever processes; answers are in the tasks' order."""


class Tasks:
    """Where tasks go, and the place of what they read and write, which all of them can open."""

    def __init__(self, run: RunTasks, place: StorePlace) -> None:
        self.run = run
        self.runs = RunsInUse(place)


@dataclass(frozen=True, slots=True)
class Join:
    """How documents are joined: spread over how many shards, of the engine `signatures`.

    Uses of classes in which a document makes more than `pairs_max` pairs are stopped.  Shards in
    tasks make matches where they see a `spool`, which has the texts.
    """

    lateness_us: int
    shards: int = 1
    pairs_max: int = UNBOUNDED
    limits: ShardLimits = DEFAULT_SHARD_LIMITS
    spool: Path | None = None

    def processor(self, tasks: Tasks | None) -> Processor | None:
        """Return the join, its shards in tasks, or in this process where there are none.

        None where nothing is spread: the engine then joins by itself.
        """
        if self.shards == 1:
            return None
        return self._local() if tasks is None else self._in_tasks(tasks)

    def _local(self) -> Processor:
        store = MemoryStore()

        def documents(docids: Iterable[int]) -> Mapping[int, bytes]:
            assert processor.asked is not None
            return processor.asked.documents(docids)

        def answer(orders: Sequence[Order]) -> Iterable[Answer]:
            return [members[order.shard].answer(order) for order in orders]

        members = [self.shard(number, store, documents) for number in range(self.shards)]
        processor = self._spread(store, answer, can_finish=True)
        return processor

    def _spread(self, store: Store, answer: Answerer, *, can_finish: bool) -> ShardedProcessor:
        return ShardedProcessor(
            self.shards,
            store,
            answer,
            pairs_max=self.pairs_max,
            limits=self.limits,
            can_finish=can_finish,
        )

    def _in_tasks(self, tasks: Tasks) -> Processor:
        runs = tasks.runs
        run = runs.begin()

        def answer(orders: Sequence[Order]) -> Iterable[Answer]:
            return tasks.run([ShardTask(self, run, order, runs.names) for order in orders])

        store = RunStore(run, WAITS_S, runs=runs)
        processor = self._spread(store, answer, can_finish=self.spool is not None)
        finalize(processor, runs.end, run).atexit = False
        return processor

    def shard(self, number: int, store: Store, documents: Documents | None = None) -> Shard:
        """Return a shard, without state, which makes matches where it can read documents."""
        bytes_max = self.limits.finished_bytes // self.shards
        return Shard(
            number,
            self.shards,
            store,
            lateness_us=self.lateness_us,
            pairs_max=self.pairs_max,
            limits=self.limits.shard,
            finisher=None if documents is None else MatchFinisher(documents, bytes_max),
        )


class _Texts:
    """The texts of documents, in the spool of a broker that runs elsewhere."""

    def __init__(self, directory: Path) -> None:
        self._spool = Spool(directory)

    def documents(self, docids: Iterable[int]) -> Mapping[int, bytes]:
        """Return texts by docid."""
        wanted = set(docids)
        found = self._spool.documents(wanted)
        if len(found) < len(wanted):  # they have come since
            self._spool.refresh()
            found = self._spool.documents(wanted)
        return found


_kept: dict[tuple[StorePlace, int], Shard] = {}


def carry_out(task: ShardTask) -> Answer:
    """Carry out a task, in a process that keeps the shards that it has had to do with.

    Shards of runs that are not in use are forgotten.
    """
    parent = task.run.parent
    for run, shard_number in [*_kept]:
        if run.parent != parent or run.name not in task.in_use:
            del _kept[run, shard_number]
    number = task.order.shard
    store = RunStore(task.run, is_begun=True)
    # Taken out: a shard that fails in the middle of an order is in no state to go on from.
    shard = _kept.pop((task.run, number), None) or _begin(task.join, number, store)
    answer = shard.answer(task.order)
    _kept[task.run, number] = shard
    return answer


def _begin(join: Join, number: int, store: Store) -> Shard:
    documents = None if join.spool is None else _Texts(join.spool).documents
    return join.shard(number, store, documents)
