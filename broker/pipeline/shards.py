"""Where the shards of a join are: all in this process, or in tasks, with their state in files.

The files of one processor are in a directory of its own, a **run**; they are written once and
never changed.  Another run, as after a restart, makes its state from the spool again, and may have
another number of shards; what was left behind is deleted then.
"""

from __future__ import annotations

import os
import pickle
import shutil
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from joins import UNBOUNDED, Processor
from joins.shards.driver import Answerer, ShardedProcessor
from joins.shards.limits import DEFAULT_SHARD_LIMITS, ShardLimits
from joins.shards.orders import Answer, ClassCatalog, Order, Store
from joins.shards.shard import Shard

__all__ = ["DirectoryStore", "Join", "MemoryStore", "RunTasks", "ShardTask", "Tasks", "carry_out"]


@dataclass(frozen=True, slots=True)
class ShardTask:
    """An order, and all that a process needs that has never heard of its shard."""

    join: Join
    run: str
    order: Order


RunTasks = Callable[[Sequence[ShardTask]], Sequence[Answer]]
"""Has tasks carried out, by `carry_out`, in whatever processes; answers are in the tasks' order."""


@dataclass(frozen=True, slots=True)
class Tasks:
    """Where tasks go, and the directory of their files.

    All processes that carry out tasks must see the directory, under the same name.
    """

    run: RunTasks
    directory: Path


@dataclass(frozen=True, slots=True)
class Join:
    """How documents are joined: spread over how many shards, of the engine `signatures`.

    Uses of classes in which a document makes more than `pairs_max` pairs are stopped.
    """

    lateness_us: int
    shards: int = 1
    pairs_max: int = UNBOUNDED
    limits: ShardLimits = DEFAULT_SHARD_LIMITS

    def processor(self, tasks: Tasks | None) -> Processor | None:
        """Return the join, its shards in tasks, or in this process where there are none.

        None where nothing is spread: the engine then joins by itself.
        """
        if self.shards == 1:
            return None
        return self._local() if tasks is None else self._in_tasks(tasks)

    def _local(self) -> Processor:
        store = MemoryStore()
        members = [self.shard(number, store) for number in range(self.shards)]

        def answer(orders: Sequence[Order]) -> Iterable[Answer]:
            return [members[order.shard].answer(order) for order in orders]

        return self._spread(store, answer)

    def _spread(self, store: Store, answer: Answerer) -> Processor:
        return ShardedProcessor(
            self.shards, store, answer, pairs_max=self.pairs_max, limits=self.limits
        )

    def _in_tasks(self, tasks: Tasks) -> Processor:
        run = tasks.directory.resolve() / uuid.uuid4().hex

        def answer(orders: Sequence[Order]) -> Iterable[Answer]:
            return tasks.run([ShardTask(self, str(run), order) for order in orders])

        store = DirectoryStore(run)
        return self._spread(store, answer)

    def shard(self, number: int, store: Store) -> Shard:
        """Return a shard, without state."""
        return Shard(
            number,
            self.shards,
            store,
            lateness_us=self.lateness_us,
            pairs_max=self.pairs_max,
            limits=self.limits.shard,
        )


_kept_run = ""
_kept: dict[int, Shard] = {}


def carry_out(task: ShardTask) -> Answer:
    """Carry out a task, in a process that keeps the shards that it has had to do with.

    Shards of an earlier run are forgotten.
    """
    global _kept_run
    if _kept_run != task.run:
        _kept.clear()
        _kept_run = task.run
    number = task.order.shard
    store = DirectoryStore(Path(task.run), is_begun=True)
    # Taken out: a shard that fails in the middle of an order is in no state to go on from.
    shard = _kept.pop(number, None) or task.join.shard(number, store)
    answer = shard.answer(task.order)
    _kept[number] = shard
    return answer


class DirectoryStore:
    """A directory of tables and catalogs.

    With the first of them a run begins, which takes the place of earlier ones.  Not so where it
    `is_begun`: a task may be late, and is not to put an end to the run that has followed its own.
    """

    def __init__(self, directory: Path, *, is_begun: bool = False) -> None:
        self._directory = directory
        self._is_begun = is_begun

    def put(self, name: str, rows: pa.Table) -> None:
        """Keep a table."""
        path = self._new_file(name)
        with pa.ipc.new_file(str(path), rows.schema) as writer:
            writer.write_table(rows)
        path.rename(self._directory / name)

    def get(self, name: str) -> pa.Table:
        """Return a table."""
        return pa.ipc.open_file((self._directory / name).read_bytes()).read_all()

    def put_catalog(self, name: str, catalog: ClassCatalog) -> None:
        """Keep a catalog."""
        path = self._new_file(name)
        path.write_bytes(pickle.dumps(catalog, protocol=pickle.HIGHEST_PROTOCOL))
        path.rename(self._directory / name)

    def get_catalog(self, name: str) -> ClassCatalog:
        """Return a catalog."""
        catalog: ClassCatalog = pickle.loads((self._directory / name).read_bytes())
        return catalog

    def remove(self, names: Sequence[str]) -> None:
        """Forget tables and catalogs."""
        for name in names:
            (self._directory / name).unlink(missing_ok=True)

    def _new_file(self, name: str) -> Path:
        """Return where to write a file before it gets its name; another attempt has another."""
        if not self._is_begun:
            self._begin()
        return self._directory / f".{name}.{os.getpid()}.{uuid.uuid4().hex}"

    def _begin(self) -> None:
        """Take the place of earlier runs."""
        self._is_begun = True
        earlier = list(self._directory.parent.glob("*"))
        self._directory.mkdir(parents=True)
        for directory in earlier:
            shutil.rmtree(directory, ignore_errors=True)


class MemoryStore:
    """Tables and catalogs in this process."""

    def __init__(self) -> None:
        self._tables: dict[str, pa.Table] = {}
        self._catalogs: dict[str, ClassCatalog] = {}

    def names(self) -> set[str]:
        """Return the names of all that is there."""
        return {*self._tables, *self._catalogs}

    def put(self, name: str, rows: pa.Table) -> None:
        """Keep a table."""
        self._tables[name] = rows

    def get(self, name: str) -> pa.Table:
        """Return a table."""
        return self._tables[name]

    def put_catalog(self, name: str, catalog: ClassCatalog) -> None:
        """Keep a catalog."""
        # The driver's own mappings change; what an order names does not.
        self._catalogs[name] = ClassCatalog(
            dict(catalog.classes),
            dict(catalog.epochs),
            dict(catalog.retention),
            dict(catalog.thresholds),
        )

    def get_catalog(self, name: str) -> ClassCatalog:
        """Return a catalog."""
        return self._catalogs[name]

    def remove(self, names: Sequence[str]) -> None:
        """Forget tables and catalogs."""
        for name in names:
            self._tables.pop(name, None)
            self._catalogs.pop(name, None)
