"""Packs: what tasks of evaluation read, where they do not see the spool.

    A-B-I.pack        the segments of task I of a batch, A to B: their files, one behind the other
    N.version, *.plan the plans of the registry versions of these segments, as in `PlanStore`

Spark's reader of the spool writes them beside the driver before any task knows of them.  What is
there of an earlier batch is deleted with the next one: its tasks are done by then.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa

from broker.documents.head import Segment, read_header
from broker.documents.segment import read_segments
from broker.pipeline.slices import Slice
from broker.pipeline.store.objects import WAITS_S, Objects, StorePlace
from broker.pipeline.store.runs import begin
from xpath_eval.catalog import EvaluationPlan

__all__ = ["PackWriter", "PackedPlans", "unpacked"]


class PackWriter:
    """Writes packs of batches to a place; `plans` is the directory of all plans."""

    def __init__(self, place: StorePlace, plans: Path, waits_s: Sequence[float] = WAITS_S) -> None:
        self.place = place
        self._objects = Objects(place, waits_s)
        self._plans = plans
        self._there: set[str] | None = None

    def put(self, parts: Sequence[Sequence[Slice]]) -> list[list[Slice]]:
        """Put what the parts of a batch read, and return them as they name it."""
        if self._there is None:  # another process may have been here before
            begin(self._objects)
            self._there = set(self._objects.names())
        packs = {_pack(number, part): part for number, part in enumerate(parts) if part}
        wanted = {name: _copied(Path(each.path) for each in part) for name, part in packs.items()}
        slices = [each for part in parts for each in part]
        for version in {read_header(Path(each.path)).registry_version for each in slices}:
            name = f"{version}.version"
            plan = f"{(self._plans / name).read_text()}.plan"
            wanted |= {each: _copied([self._plans / each]) for each in (name, plan)}
        self._objects.put_all((n, wanted[n]) for n in sorted(wanted) if n not in self._there)
        self._objects.remove(self._there.difference(wanted))
        self._there = set(wanted)
        return [
            [each._replace(path=f"{name}/{Path(each.path).name}") for each in part]
            for name, part in packs.items()
        ]


def _pack(number: int, part: Sequence[Slice]) -> str:
    first, last = (Path(part[i].path).stem for i in (0, -1))
    return f"{first}-{last}-{number}.pack"


def _copied(paths: Iterable[Path]) -> Callable[[Any], None]:
    found = list(paths)

    def write(file: Any) -> None:
        for path in found:
            file.write(path.read_bytes())

    return write


def unpacked(
    place: StorePlace, slices: Sequence[Slice]
) -> dict[str, tuple[Segment, pa.RecordBatch]]:
    """Return what slices are of, by their paths."""
    objects = Objects(place)
    found = {}
    for name in {each.path.rpartition("/")[0] for each in slices}:
        for segment, rows in read_segments(Path(name), objects.get(name)):
            found[f"{name}/{segment.name}"] = segment, rows
    return found


class PackedPlans:
    """The plans of registry versions, at a place."""

    def __init__(self, place: StorePlace) -> None:
        self._place = place

    def get(self, registry_version: int) -> EvaluationPlan:
        """Return the plan of a registry version."""
        return _read_plan(self._place, registry_version)


@lru_cache(maxsize=4)
def _read_plan(place: StorePlace, registry_version: int) -> EvaluationPlan:
    objects = Objects(place)
    plan = objects.get(f"{registry_version}.version").to_pybytes().decode()
    found: EvaluationPlan = pickle.loads(objects.get(f"{plan}.plan"))
    return found
