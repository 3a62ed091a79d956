"""The witnesses of committed documents, kept in files so that a restart need not evaluate again.

    <first docid>-<last docid>.witnesses   `joins.files.witnessfile`, some ten thousand documents
    <id>.asked                             what the plan that they were evaluated with asked for

Files are written after the commit, so they lag the outbox and never lead it.  They are a copy of
what evaluation would find: one that is missing, damaged, of another release, or evaluated with a
plan that did not ask for all that some query needs of it, costs time and changes nothing.

Once half of a file's documents are needed no more, it is written anew without them (`compaction`).

A query needs nothing of the documents up to its registration point.  So files stay good while
queries come and go, except for queries that look back (`SINCE`): where files are not enough, or of
another release, what is evaluated in their place is kept in their place, so once is enough.

Invariant: of the files in the list no two have one path, since a file takes the place of those
whose documents it has; who reads one beside the writer sees by its header whether it still is the
one of the list.
"""

from __future__ import annotations

import logging
from bisect import insort
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from math import inf
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa

from broker.documents.disk import Disk
from broker.pipeline.compaction import (
    Needed,
    NeededFrom,
    compact,
    has_all,
    is_worth_compacting,
    rows_in,
    stream_facts,
)
from broker.pipeline.limits import DEFAULT_PIPELINE_LIMITS, PipelineLimits
from joins.files.variablenames import AskedNames, VariableNames
from joins.files.witnessfile import (
    Header,
    WitnessFileError,
    encode_witnesses,
    read_as_written,
    read_header,
    read_witnesses,
)
from xpath_eval.catalog import EvaluationPlan
from xpath_eval.prefilters import Missing

__all__ = ["Evaluate", "Looking", "Snapshot"]

_log = logging.getLogger(__name__)

Evaluate = Callable[[int, int], Iterator[pa.Table]]
"""Evaluates the documents from one number to another, some at a time."""


class Looking(Protocol):
    """What is asked of an engine that is to remember; `broker.matching.engine.Engine` is one."""

    @property
    def plan(self) -> EvaluationPlan:
        """What the evaluation has to look for."""

    def first_point(self, missing: Missing) -> int | None:
        """Return the lowest registration point of the queries that need any of what is missing."""


class _File(NamedTuple):
    path: Path
    header: Header


class _Named(NamedTuple):
    """A plan by names, which costs a microsecond for each thing that it asks for."""

    plan: EvaluationPlan
    asked: AskedNames
    names: dict[int, bytes]


class Snapshot:
    """The files of a directory; one process writes them.

    Only `limits.file_documents` or `limits.file_bytes`, and more, make a file.
    """

    def __init__(
        self,
        directory: Path,
        *,
        disk: Disk | None = None,
        limits: PipelineLimits = DEFAULT_PIPELINE_LIMITS,
    ) -> None:
        # What power failure takes is evaluated again: nothing waits for the disk here.
        self._disk = disk or Disk(is_durable=False)
        self._directory = directory
        self._limits = limits
        self._release = version("xscl-broker")
        self._names = VariableNames()
        self._files: list[_File] = []
        self._waiting: list[pa.Table] = []
        self._plan: EvaluationPlan | None = None
        self._named: _Named | None = None

    def open(self, last_docid: int) -> None:
        """See what is there, and remove what is no use; `last_docid` is the last one committed.

        Files that lead the commit describe documents of a life that an older backup has undone.
        """
        self._directory.mkdir(parents=True, exist_ok=True)
        self._disk.clean(self._directory)
        self._waiting, self._plan = [], None
        self._files = []
        for name in self._disk.names(self._directory):
            if name.endswith(".witnesses"):
                self._open_file(self._directory / name, last_docid)

    def _open_file(self, path: Path, last_docid: int) -> None:
        try:
            header = read_header(path)
        except (OSError, WitnessFileError) as error:
            self._discard(path, str(error))
            return
        if header.last_docid > last_docid:
            self._discard(path, f"{path} leads the commit")
        elif header.facts.get("release") != self._release:
            self._discard(path, f"{path} is of another release")
        else:
            self._files.append(_File(path, header))

    def _discard(self, path: Path, reason: str) -> None:
        _log.info("state is made again by evaluation: %s", reason)
        self._disk.remove(path)
        # In place: an engine that is made beside the running one reads while a batch adds a file.
        for file in [file for file in self._files if file.path == path]:
            with suppress(ValueError):
                self._files.remove(file)

    def add(
        self,
        plan: EvaluationPlan,
        witnesses: pa.Table,
        *,
        horizon_us: int,
        needed_from: NeededFrom,
    ) -> None:
        """Keep the witnesses of the documents committed last, in a file with others.

        `horizon_us` is the oldest event time that is needed still, and `needed_from` says it by
        stream.  A file that cannot be written is a warning.
        """
        if self._plan is not None and self._plan.version != plan.version:
            self._write(self._limits.small_documents, horizon_us, needed_from)
        if not self._follows(witnesses):
            self._waiting = []
        self._plan = plan
        self._waiting.append(witnesses)
        if self._is_file_waiting():
            self._write(1, horizon_us, needed_from)

    def _is_file_waiting(self) -> bool:
        """Return whether what waits is enough for a file."""
        documents: int = sum(table.num_rows for table in self._waiting)
        nbytes: int = sum(table.nbytes for table in self._waiting)
        return documents >= self._limits.file_documents or nbytes >= self._limits.file_bytes

    def _follows(self, witnesses: pa.Table) -> bool:
        if not self._waiting:
            return True
        last = self._waiting[-1].column("docid")[-1].as_py()
        return bool(witnesses.column("docid")[0].as_py() == last + 1)

    def _write(self, documents_min: int, horizon_us: int, needed_from: NeededFrom) -> None:
        """Make a file of what waits, and see what of all files is needed no more."""
        last_docid = self._waiting[-1].column("docid")[-1].as_py()
        if self._write_waiting(documents_min):
            try:
                self._prune(horizon_us)
                self._compact(needed_from(last_docid))
            except (OSError, KeyError) as error:
                _warn(error)

    def _write_waiting(self, documents_min: int) -> bool:
        """Make a file of what waits, if these are so many documents; return whether it did."""
        plan, waiting = self._plan, self._waiting
        self._plan, self._waiting = None, []
        if plan is None or sum(table.num_rows for table in waiting) < documents_min:
            return False
        try:
            self._publish(plan, pa.concat_tables(waiting))
        except (OSError, KeyError) as error:
            _warn(error)
            return False
        return True

    def _publish(self, plan: EvaluationPlan, witnesses: pa.Table) -> None:
        """Write a file, in the place of those whose documents it has."""
        is_new = self._named is None or self._named.plan is not plan
        if self._named is None or is_new:
            self._named = _Named(plan, AskedNames.of(plan, self._names), self._names.of(plan))
        asked = self._named.asked
        path = self._directory / f"{asked.id}.asked"
        if is_new or not path.exists():  # one that is there may be damaged
            self._disk.publish(path, [asked.written()])
        facts = {"asked": asked.id, "release": self._release, **stream_facts(witnesses)}
        written = self._file(witnesses, facts, self._named.names)
        first, last = written.header.first_docid, written.header.last_docid
        for file in tuple(self._files):
            if first <= file.header.first_docid and file.header.last_docid <= last:
                self._files.remove(file)
                if file.path != written.path:
                    self._disk.remove(file.path)
        insort(self._files, written, key=_first_docid)

    def _file(
        self, witnesses: pa.Table, facts: Mapping[str, str], names: Mapping[int, bytes]
    ) -> _File:
        """Write a file of witnesses."""
        first, last = (witnesses.column("docid")[i].as_py() for i in (0, -1))
        path = self._directory / f"{first:015}-{last:015}.witnesses"
        self._disk.publish(path, encode_witnesses(witnesses, names, facts))
        return _File(path, read_header(path))

    def _prune(self, horizon_us: int) -> None:
        """Remove the files that no window reaches, and the demands that no file names."""
        needed = [file for file in self._files if file.header.end_max_us >= horizon_us]
        for file in self._files:
            if file.header.end_max_us < horizon_us:
                self._disk.remove(file.path)
        self._files = needed
        named = {f"{file.header.facts['asked']}.asked" for file in needed}
        for path in self._directory.glob("*.asked"):
            if path.name not in named:
                self._disk.remove(path)

    def _compact(self, needed: Needed) -> None:
        """Write one file anew, without what is needed no more, and with the one before it."""
        for i, file in enumerate(self._files):
            if is_worth_compacting(file.header, needed):
                first = i - 1 if i and self._are_small(*self._files[i - 1 : i + 1]) else i
                self._replace(first, i + 1, needed)
                return

    def _are_small(self, earlier: _File, later: _File) -> bool:
        """Return whether two files can be one that is not large."""
        a, b = earlier.header, later.header
        is_like = a.facts["asked"] == b.facts["asked"] and a.last_docid + 1 == b.first_docid
        is_few = "whole_since" in a.facts and rows_in(a) < self._limits.file_documents // 2
        size = _size(earlier) + _size(later)
        return is_like and is_few and size <= 2 * self._limits.file_bytes

    def _replace(self, start: int, stop: int, needed: Needed) -> None:
        before, tables, names = self._files[start:stop], [], dict[int, bytes]()
        for file in before:
            try:
                witnesses, own = read_as_written(file.path)
            except (OSError, WitnessFileError) as error:
                self._discard(file.path, str(error))
                return
            if any(names.get(number, name) != name for number, name in own.items()):
                return  # they were written by processes that number variables in other ways
            names |= own
            tables.append((file.header, witnesses))
        after = self._file(*compact(tables, needed), names)
        self._files[start:stop] = [after]
        for file in before:
            if file.path != after.path:
                self._disk.remove(file.path)

    def witnesses(
        self,
        engine: Looking,
        first: int,
        last: int,
        evaluate: Evaluate,
        needed_from: NeededFrom,
        *,
        keeps: bool = False,
    ) -> Iterator[pa.Table]:
        """Yield the witnesses of the documents from `first` to `last`, as an engine needs them.

        They are read where that does, and evaluated elsewhere.  Who also adds, and yields those of
        all that is committed, `keeps` what is evaluated.
        """
        if keeps:
            # What waits was committed as well: it is evaluated here, for this engine.
            self._waiting, self._plan = [], None
            evaluate = partial(self._kept, engine.plan, evaluate)
        numbers = {name: number for number, name in self._names.of(engine.plan).items()}
        is_enough = _Sufficiency(self._directory, engine, self._names)
        read = 0
        for file in tuple(self._files):
            header = file.header
            if not (first <= header.first_docid and header.last_docid <= last):
                continue
            if not is_enough(header):
                continue
            if not has_all(header, needed_from(header.last_docid)):
                continue
            witnesses = self._read(file, numbers)
            if witnesses is not None:
                if first < header.first_docid:
                    yield from evaluate(first, header.first_docid - 1)
                yield witnesses
                read += header.last_docid + 1 - header.first_docid
                first = header.last_docid + 1
        if first <= last:
            yield from evaluate(first, last)
        _log.info("%d documents were remembered without evaluating them again", read)

    def _kept(
        self, plan: EvaluationPlan, evaluate: Evaluate, first: int, last: int
    ) -> Iterator[pa.Table]:
        """Yield what is evaluated, and have it wait for a file like what is added."""
        for witnesses in evaluate(first, last):
            yield witnesses
            if not self._follows(witnesses):
                self._write_waiting(self._limits.small_documents)
            self._plan = plan
            self._waiting.append(witnesses)
            if self._is_file_waiting():
                self._write_waiting(1)

    def _read(self, file: _File, numbers: dict[bytes, int]) -> pa.Table | None:
        """Return what is in a file, or None where it is damaged, or another one by now."""
        try:
            witnesses = read_witnesses(file.path, numbers)
            return witnesses if read_header(file.path) == file.header else None
        except FileNotFoundError:  # another one has taken its place, and begins elsewhere
            return None
        except (OSError, WitnessFileError) as error:
            self._discard(file.path, str(error))
            return None


def _warn(error: Exception) -> None:
    _log.warning("the state of some documents was not kept for a restart: %s", error)


def _first_docid(file: _File) -> int:
    return file.header.first_docid


def _size(file: _File) -> int:
    return file.path.stat().st_size


class _Sufficiency:
    """Which files hold all that the queries of an engine need of their documents."""

    def __init__(self, directory: Path, engine: Looking, names: VariableNames) -> None:
        self._directory = directory
        self._engine = engine
        self._names = names
        self._points: dict[str, float] = {}

    def __call__(self, header: Header) -> bool:
        asked = header.facts["asked"]
        if asked not in self._points:
            self._points[asked] = self._point(asked)
        return header.last_docid <= self._points[asked]

    def _point(self, asked: str) -> float:
        """Return the last docid up to which no query needs more than was asked for."""
        try:
            before = AskedNames.read((self._directory / f"{asked}.asked").read_bytes())
        except (OSError, ValueError):
            return 0
        if before.id != asked:
            return 0
        point = self._engine.first_point(before.missing(self._engine.plan, self._names))
        return inf if point is None else point
