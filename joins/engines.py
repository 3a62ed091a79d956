"""The engines by name, and the interface that all of them have.

`signatures` is the default, and the only engine of a running broker: it keeps to a budget of pairs,
and its state can be spread over shards.  The others are the paper's, for reference.

An engine works through batches of instances, stratum by stratum.  A **stratum** is a level of
operators.  Operators over documents from outside are in stratum 0; an operator over tuples of
another operator, or over a published stream, is one above that.  All inputs of a stratum are known
when it is probed, so each stratum is probed once a batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

import pyarrow as pa

from joins.budget.pairs import Bounds, Overrun
from joins.classes import Holders, Retaining
from joins.memory.durations import CLOSED, UNBOUNDED
from joins.memory.instance import Instance
from joins.memory.tupletable import ClassTuple, TupleTable
from joins.signature.engine import SignatureProcessor
from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits
from joins.sql.engine import SqlProcessor
from templates.queryclass import QueryClass
from templates.template import Template
from xpath_eval.shape import Edge

__all__ = ["DEFAULT_ENGINE", "ENGINES", "EngineName", "Processor", "make_processor"]

EngineName = Literal["sequential", "mmqjp", "mmqjp-views", "signatures"]
ENGINES: tuple[EngineName, ...] = ("sequential", "mmqjp", "mmqjp-views", "signatures")
DEFAULT_ENGINE: EngineName = "signatures"


class Processor(Protocol):
    """The interface of all engines; each finds the same tuples."""

    @property
    def next_instance(self) -> int:
        """The number that the next instance will get."""

    @property
    def strata(self) -> list[int]:
        """The strata in use, lowest first."""

    def add(
        self,
        query_class: QueryClass,
        window_us: int,
        point: int = 0,
        least: Sequence[float] = (),
        holder: int = 0,
        times: int = 1,
    ) -> int:
        """Add so many uses of a class, from a registration point on; return the class's number.

        `least` are the thresholds of the similarity joins by which it can be paired: an engine may
        leave out tuples below them.  `holder` is as in `UseKind`.
        """

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

    def ask(self, holders: Holders) -> None:
        """Ask these whose tuples are whose, where classes read tuples that not everybody has."""

    def retain(self, number: int, retention_us: int, times: int = 1) -> None:
        """Keep instances that can fill a class for longer than its window, to be joined again.

        So many ask for that.
        """

    def release(self, number: int, retention_us: int, times: int = 1) -> None:
        """Undo so many of what `retain` did."""

    def template_of(self, number: int) -> Template:
        """Return the template of a class."""

    def add_shapes(self, shapes: Mapping[str, Sequence[Edge]]) -> None:
        """Learn witness shapes by their edges."""

    def tuple_shapes(self, names: Sequence[str], variables: Sequence[tuple[int, ...]]) -> list[int]:
        """Return the numbers of shapes of tuples, learnt by name where they are not known.

        The variables of each are those of its nodes, that of the root first.
        """

    def shape_number(self, shape: str) -> int | None:
        """Return the number of a witness shape, or None while it is not known."""

    def begin_batch(self) -> None:
        """Start a batch: instances that are absorbed from now on are new."""

    def absorb(self, instances: pa.Table) -> None:
        """Remember instances (`INSTANCE_SCHEMA` without numbers); they get the next numbers."""

    def probe(self, stratum: int) -> list[ClassTuple]:
        """Return the tuples of a stratum's classes that have a new instance in them."""

    def tuples(self, stratum: int) -> Iterable[TupleTable]:
        """Yield the tuples of `probe` as they are found, roughly in their documents' order."""

    def limit(self, number: int, docid: int, window_us: int = CLOSED) -> None:
        """Leave out tuples of a class outside a window, from a document on, in this batch.

        It saves work and is no promise: an engine may yield them all the same.
        """

    def remembered(self, horizon_us: int) -> int:
        """Return how many instances are remembered that some class can still use.

        `horizon_us` is the newest event time less the allowed lateness.
        """

    def retaining(self, horizon_us: int) -> Retaining:
        """Return the classes because of which most of the remembered instances are kept."""

    def overruns(self) -> Sequence[Overrun]:
        """Return the uses of classes that went over the budget in this batch.

        Their tuples from the document of the overrun on may be missing.
        """

    def warm_up(self) -> None:
        """Have all that is remembered where it is needed next, so that the next batch need not."""

    def evict(self, horizon_us: int) -> int:
        """Free instances that no class can use any more, lazily; return how many went.

        They end before the horizon by more than the retention of their shapes (`retention`).
        """

    def rows(self, numbers: Iterable[int]) -> Iterator[tuple[list[int], pa.RecordBatch]]:
        """Yield the numbers of remembered instances, ascending, with their rows.

        Rows are of `INSTANCE_SCHEMA`, perhaps without the number and the shape.
        """

    def instances(self, numbers: Iterable[int]) -> dict[int, Instance]:
        """Return remembered instances by number."""

    def figures(self) -> dict[str, int]:
        """Return how much is remembered: `documents`, `shapes`, `memory_bytes` and the like.

        Names that end in `_total` count from the start.
        """


def make_processor(
    engine: EngineName,
    *,
    lateness_us: int,
    pairs_max: int = UNBOUNDED,
    spill_directory: Path | None = None,
    limits: SignatureLimits = DEFAULT_LIMITS,
) -> Processor:
    """Return a join without classes and without state.

    Three things are for `signatures` alone: it stops uses of classes in which a document makes more
    than `pairs_max` pairs; it writes what does not fit into memory to `spill_directory`, or to
    where the system has temporary files; and it keeps to `limits`.
    """
    if engine == "signatures":
        bounds = Bounds(lateness_us, pairs_max)
        return SignatureProcessor(bounds, spill_directory=spill_directory, limits=limits)
    return SqlProcessor(lateness_us=lateness_us, engine=engine)
