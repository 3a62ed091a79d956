"""Evaluate segments of the spool: what a Spark task runs, and the in-process runner too.

Plans travel as files, not inside the streaming query: a segment names the registry version of its
documents, `<version>.version` names the plan of that version, and `<plan>.plan` is the plan.  So a
change of queries reaches the workers with the next segment, and the streaming query runs on.
Tasks that do not see the directories of the driver get copies of both (`store.packs`).

Invariant: the plan of a registry version is on the disk before any segment names that version.
"""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from broker.documents.head import Segment, read_header
from broker.documents.segment import document_batch, read_rows
from broker.documents.spool import Spool
from broker.pipeline.limits import DEFAULT_PIPELINE_LIMITS, PipelineLimits
from broker.pipeline.slices import Slice
from broker.pipeline.store.objects import StorePlace
from broker.pipeline.store.packs import PackedPlans, unpacked
from xpath_eval.catalog import EvaluationPlan
from xpath_eval.counters import witness_table
from xpath_eval.stage import evaluate_batches
from xpath_eval.witnesses import WITNESS_SCHEMA

__all__ = [
    "EVALUATED_SCHEMA",
    "OpenSegment",
    "PlanOf",
    "PlanStore",
    "are_evaluated",
    "evaluate_documents",
    "evaluate_slices",
    "evaluated",
    "evaluated_slices",
    "in_sub_batches",
    "read_witnesses",
]

PlanOf = Callable[[int], EvaluationPlan]

OpenSegment = Callable[[str], tuple[Segment, pa.RecordBatch]]
"""Returns the segment of a path, and its documents."""


class PlanStore:
    """The evaluation plans of the registry versions, in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def put(self, registry_version: int, plan: EvaluationPlan) -> None:
        """Make a plan the one of a registry version, for this process and for the workers."""
        self.directory.mkdir(parents=True, exist_ok=True)
        path = self.directory / f"{plan.version}.plan"
        if not path.exists():
            _write(path, pickle.dumps(plan, protocol=pickle.HIGHEST_PROTOCOL))
        _write(self.directory / f"{registry_version}.version", plan.version.encode())

    def get(self, registry_version: int) -> EvaluationPlan:
        """Return the plan of a registry version; `FileNotFoundError` if there is none."""
        name = (self.directory / f"{registry_version}.version").read_text()
        return _load_plan(self.directory / f"{name}.plan")

    def clear(self) -> None:
        """Forget all plans: those of another release of the program may not load."""
        for pattern in ("*.plan", "*.version", "*.tmp"):
            for path in self.directory.glob(pattern):
                path.unlink(missing_ok=True)

    def forget_before(self, registry_version: int) -> None:
        """Delete the plans of earlier registry versions only.  Not beside `put`."""
        named = set()
        for path in self.directory.glob("*.version"):
            if int(path.stem) < registry_version:
                path.unlink()
            else:
                named.add(path.read_text())
        for path in self.directory.glob("*.plan"):
            if path.stem not in named:
                path.unlink()


@lru_cache(maxsize=4)
def _load_plan(path: Path) -> EvaluationPlan:
    plan: EvaluationPlan = pickle.loads(path.read_bytes())
    return plan


def _write(path: Path, content: bytes) -> None:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(content)
    temporary.rename(path)


def _in_spool(path: str) -> tuple[Segment, pa.RecordBatch]:
    return read_header(Path(path)), read_rows(Path(path))


EVALUATED_SCHEMA = pa.schema(
    [
        ("witnesses", pa.binary()),
        ("documents", pa.int64()),
        ("dead_letters", pa.int64()),
        ("left_out", pa.int64()),
    ]
)
"""What tasks send: witnesses as an Arrow stream, of how many documents they are, how many of these
are no XML, and how many are left to whoever joins them."""


def evaluate_slices(
    plan_of: PlanOf,
    slices: Iterable[Slice],
    limits: PipelineLimits = DEFAULT_PIPELINE_LIMITS,
    opened: OpenSegment = _in_spool,
) -> Iterator[pa.RecordBatch]:
    """Yield the witnesses of the documents of slices, in order.

    `plan_of` names the plan of a registry version.  Neighbouring slices of one version are one
    stream of batches: the first row of each shape in it spells the shape out.
    """
    pairs = ((opened(each.path), each) for each in slices)
    for version, group in groupby(pairs, key=lambda pair: pair[0][0].registry_version):
        documents = _document_batches(group, limits.evaluated_documents)
        yield from evaluate_batches(plan_of(version), documents, limits.evaluator)


_GATHERED_BYTES = 1 << 20
"""Documents of small segments are evaluated together, up to so many bytes: a live stream has some
twenty of them in each, and what is made for a batch costs more than these."""


def _document_batches(
    slices: Iterable[tuple[tuple[Segment, pa.RecordBatch], Slice]], documents_max: int
) -> Iterator[pa.RecordBatch]:
    """Yield the documents of slices in order, at most so many at a time."""
    small: list[pa.RecordBatch] = []
    documents = nbytes = 0
    for batch in _sliced(slices, documents_max):
        documents += batch.num_rows
        nbytes += batch.nbytes
        if small and (documents > documents_max or nbytes > _GATHERED_BYTES):
            yield _joined(small)
            small, documents, nbytes = [], batch.num_rows, batch.nbytes
        small.append(batch)
    if small:
        yield _joined(small)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _sliced(
    slices: Iterable[tuple[tuple[Segment, pa.RecordBatch], Slice]], documents_max: int
) -> Iterator[pa.RecordBatch]:
    for (segment, rows), each in slices:
        for start in range(each.start, each.stop, documents_max):
            stop = min(each.stop, start + documents_max)
            yield document_batch(segment, rows, start, stop)


def evaluated(
    plan_of: PlanOf,
    slices: Sequence[Slice],
    tasks: int = 1,
    limits: PipelineLimits = DEFAULT_PIPELINE_LIMITS,
    opened: OpenSegment = _in_spool,
) -> Iterator[pa.RecordBatch]:
    """Yield the witnesses of the documents of slices, in order.

    They have up to `limits.witness_bytes`, shared by so many tasks.  Documents behind that are
    **left out**: their rows have neither a shape nor an error.
    """
    done = nbytes = 0
    for witnesses in evaluate_slices(plan_of, slices, limits, opened):
        nbytes += witnesses.column("nodes").nbytes + witnesses.column("values").nbytes
        if nbytes > limits.witness_bytes // tasks:
            break
        done += witnesses.num_rows
        yield witnesses
    else:
        return
    pairs = ((opened(each.path), each) for each in slices)
    for documents in _document_batches(pairs, limits.evaluated_documents):
        left_out = documents.slice(min(done, documents.num_rows))
        done -= documents.num_rows - left_out.num_rows
        if left_out.num_rows:
            yield _without_witnesses(left_out)


def _without_witnesses(documents: pa.RecordBatch) -> pa.RecordBatch:
    names = set(documents.schema.names)
    return pa.RecordBatch.from_arrays(
        [
            documents.column(field.name)
            if field.name in names
            else pa.nulls(documents.num_rows, field.type)
            for field in WITNESS_SCHEMA
        ],
        schema=WITNESS_SCHEMA,
    )


def are_evaluated(witnesses: pa.Table) -> npt.NDArray[np.bool_]:
    """Return which rows are not left out."""
    # By methods: the module of Arrow's functions would be 9 MB of what workers are forked from.
    shape, error = (witnesses.column(name).is_valid().to_numpy() for name in ("shape", "error"))
    flags: npt.NDArray[np.bool_] = shape | error
    return flags


def in_sub_batches(
    spool: Spool,
    plan_of: PlanOf,
    witnesses: pa.Table,
    limits: PipelineLimits = DEFAULT_PIPELINE_LIMITS,
) -> Iterator[pa.Table]:
    """Yield witnesses in parts, in order; documents that are left out are evaluated here.

    At most `limits.witness_bytes` are given; beside them one part is held at a time.
    """
    flags = are_evaluated(witnesses)
    starts = [0, *(np.flatnonzero(np.diff(flags)) + 1).tolist(), len(flags)]
    for start, stop in pairwise(starts):
        rows = witnesses.slice(start, stop - start)
        if flags[start]:
            yield rows
        else:
            first, last = (rows.column("docid")[i].as_py() for i in (0, -1))
            yield from evaluate_documents(spool, plan_of, first, last, limits)


def evaluate_documents(
    spool: Spool,
    plan_of: PlanOf,
    first: int,
    last: int,
    limits: PipelineLimits = DEFAULT_PIPELINE_LIMITS,
) -> Iterator[pa.Table]:
    """Yield the witnesses of documents `first` to `last`, some at a time.

    Each table spells its shapes out.  Small segments are in one table: a live stream has some
    twenty documents in each, and who takes a table does a thousand things whatever is in it.
    Segments may be merged with others meanwhile, or deleted; it goes on with what is still there.
    """
    while first <= last:
        slices = _slices_of(spool, first, last, limits.evaluated_documents)
        if not slices:  # deleted meanwhile
            first = spool.all_segments()[0].first_docid
            continue
        try:
            batches = evaluate_slices(plan_of, slices, limits)
            witnesses = _first_part(batches, limits.sub_batch_bytes)
        except FileNotFoundError:  # merged with others meanwhile
            spool.refresh()
            continue
        yield witnesses
        first += witnesses.num_rows


def _slices_of(spool: Spool, first: int, last: int, documents_min: int) -> list[Slice]:
    """Return the documents from `first` on, as slices of segments, until they are so many."""
    slices: list[Slice] = []
    documents = 0
    while first <= last and documents < documents_min:
        segment = spool.segment_of(first)
        if segment is None:
            break
        start = first - segment.first_docid
        stop = min(segment.documents, last + 1 - segment.first_docid)
        slices.append(Slice(str(spool.directory / segment.name), start, stop))
        documents += stop - start
        first += stop - start
    return slices


def _first_part(batches: Iterable[pa.RecordBatch], bytes_max: int) -> pa.Table:
    part: list[pa.RecordBatch] = []
    nbytes = 0
    for batch in batches:
        part.append(batch)
        nbytes += batch.nbytes
        if nbytes > bytes_max:
            break
    return pa.Table.from_batches(part, WITNESS_SCHEMA)


def evaluated_slices(
    slices: Sequence[Slice],
    plans: Path,
    tasks: int = 1,
    limits: PipelineLimits = DEFAULT_PIPELINE_LIMITS,
    packs: StorePlace | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield what each of some tasks sends of its slices, as `EVALUATED_SCHEMA`.

    Together the tasks send up to `limits.witness_bytes`.  Slices are of segments in the spool, or
    of `packs`, which have the plans as well.
    """
    plan_of: PlanOf = PlanStore(plans).get
    opened: OpenSegment = _in_spool
    if packs is not None:
        plan_of, opened = PackedPlans(packs).get, unpacked(packs, slices).__getitem__
    for batch in evaluated(plan_of, slices, tasks, limits, opened):
        yield pa.RecordBatch.from_pylist([_counted(batch)], EVALUATED_SCHEMA)


def _counted(batch: pa.RecordBatch) -> dict[str, Any]:
    errors = batch.column("error")
    return {
        "witnesses": _encode(batch),
        "documents": batch.num_rows,
        "dead_letters": len(errors) - errors.null_count,
        "left_out": batch.num_rows - int(are_evaluated(pa.Table.from_batches([batch])).sum()),
    }


def _encode(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def read_witnesses(table: pa.Table) -> pa.Table:
    """Return the witnesses that the tasks sent, in docid order."""
    column = table.column("witnesses")
    streams = [chunk[i].as_buffer() for chunk in column.chunks for i in range(len(chunk))]
    batches = [batch for stream in streams for batch in pa.ipc.open_stream(stream)]
    batches = [batch for batch in batches if batch.num_rows]
    batches.sort(key=lambda batch: int(batch.column("docid")[0].as_py()))
    return witness_table(batches)
