"""Runs: tables and values that are of use to one processor, in a folder of their own.

With its first object a run takes the place of all others beside it that are not in use: what they
have left is deleted, and so is what a task of theirs comes to write late.  Two are in use while an
engine is made beside the running one.
"""

from __future__ import annotations

import pickle
import threading
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from broker.pipeline.store.objects import Objects, StorePlace

__all__ = ["MemoryStore", "RunStore", "RunsInUse", "begin"]


class RunsInUse:
    """The runs below a place that are in use."""

    def __init__(self, place: StorePlace) -> None:
        self._place = place
        self.names: frozenset[str] = frozenset()
        # One may end while another begins, also in the same thread, where memory is collected.
        self._changing = threading.RLock()

    def begin(self) -> StorePlace:
        """Return the place of a new run."""
        run = self._place.below(uuid.uuid4().hex)
        with self._changing:
            self.names |= {run.name}
        return run

    def end(self, run: StorePlace) -> None:
        """Hear that a run is of no use any more: the next object of another one deletes it."""
        with self._changing:
            self.names -= {run.name}


def begin(objects: Objects, runs: RunsInUse | None = None) -> None:
    """Make the folder of some objects, and delete those beside it that are not in use."""
    assert objects.place.folder, "a run has a folder of its own"
    objects.create()
    beside = Objects(objects.place.parent)
    names = beside.names()  # first: another run that begins meanwhile is in use before it is there
    kept = {objects.place.name} | (runs.names if runs is not None else frozenset())
    beside.remove_folders(name for name in names if name not in kept)


class RunStore:
    """The tables and values of a run, one of `runs` where others are in use beside it.

    With the first of them it begins.  Not so where it `is_begun`: a task may be late, and is not to
    put an end to the run that has followed its own.
    """

    def __init__(
        self,
        place: StorePlace,
        waits_s: Sequence[float] = (),
        *,
        is_begun: bool = False,
        runs: RunsInUse | None = None,
    ) -> None:
        self._objects = Objects(place, waits_s)
        self._is_begun = is_begun
        self._runs = runs or RunsInUse(place.parent)
        self._beside: frozenset[str] | None = None

    def put(self, name: str, rows: pa.Table) -> None:
        """Keep a table."""
        self.put_all({name: rows})

    def put_all(self, tables: Mapping[str, pa.Table]) -> None:
        """Keep tables."""
        self._begin()
        self._objects.put_all((name, _writer(rows)) for name, rows in tables.items())

    def get(self, name: str) -> pa.Table:
        """Return a table."""
        return pa.ipc.open_file(self._objects.get(name)).read_all()

    def put_value(self, name: str, value: object) -> None:
        """Keep a value."""
        self._begin()
        content = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        self._objects.put(name, lambda file: file.write(content))

    def get_value(self, name: str) -> Any:
        """Return a value."""
        return pickle.loads(self._objects.get(name))

    def remove(self, names: Sequence[str]) -> None:
        """Forget tables and values."""
        self._objects.remove(names)

    def _begin(self) -> None:
        beside = self._runs.names
        if not self._is_begun and self._beside != beside:
            begin(self._objects, self._runs)
            self._beside = beside


def _writer(rows: pa.Table) -> Any:
    def write(file: Any) -> None:
        with pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows)

    return write


class MemoryStore:
    """Tables and values in this process."""

    def __init__(self) -> None:
        self._tables: dict[str, pa.Table] = {}
        self._values: dict[str, object] = {}

    def names(self) -> set[str]:
        """Return the names of all that is there."""
        return {*self._tables, *self._values}

    def put(self, name: str, rows: pa.Table) -> None:
        """Keep a table."""
        self._tables[name] = rows

    def put_all(self, tables: Mapping[str, pa.Table]) -> None:
        """Keep tables."""
        for name, rows in tables.items():
            self.put(name, rows)

    def get(self, name: str) -> pa.Table:
        """Return a table."""
        return self._tables[name]

    def put_value(self, name: str, value: object) -> None:
        """Keep a value."""
        self._values[name] = value

    def get_value(self, name: str) -> Any:
        """Return a value."""
        return self._values[name]

    def remove(self, names: Sequence[str]) -> None:
        """Forget tables and values."""
        for name in names:
            self._tables.pop(name, None)
            self._values.pop(name, None)
