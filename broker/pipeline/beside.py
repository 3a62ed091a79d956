"""An engine that is made beside the running one, for a change that looks back.

The running engine goes on meanwhile.  This one has the change, and remembers what is committed:
first all that some query needs, then what has been committed since, following the registry from
version to version as the running one does.  At a commit it can take the running one's place.

Invariants: nothing is absorbed that is not committed; nothing is kept but in memory; documents
behind a version are absorbed by the queries of that version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import groupby
from operator import attrgetter
from typing import Generic, NamedTuple, Protocol, TypeVar

from broker.documents.head import Segment
from broker.documents.spool import Spool

__all__ = ["Absorbing", "Due", "EngineBeside"]

EngineT = TypeVar("EngineT")
EngineT_contra = TypeVar("EngineT_contra", contravariant=True)


class Absorbing(Protocol[EngineT_contra]):
    """Has an engine absorb documents."""

    def __call__(
        self,
        engine: EngineT_contra,
        first: int | None,
        last: int,
        done: list[Segment],
        spool: Spool,
    ) -> Iterator[int]:
        """Absorb committed documents, some at a time, and yield the last one of these.

        They are those through `last`, from `first` on, or all that some query needs.
        """


class Due(NamedTuple):
    """The version from which on a change holds, and the last document of the one before."""

    version: int
    docid: int


class EngineBeside(Generic[EngineT]):
    """An engine, with a change, that absorbs what is committed; it has a spool of its own.

    It is made of a registry version with which documents through `last_docid` are committed, all
    before any other version.  `follow` brings it to a version, or says that it cannot.
    """

    def __init__(
        self,
        engine: EngineT,
        version: int,
        last_docid: int,
        *,
        spool: Spool,
        through: Callable[[], int],
        absorb: Absorbing[EngineT],
        follow: Callable[[EngineT, int], bool],
    ) -> None:
        self.engine = engine
        self._version = version
        self._made_at = last_docid
        self._spool = spool
        self._through = through
        self._absorb = absorb
        self._follow = follow
        self._absorbed: int | None = None
        self._portions: Iterator[int] = iter(())
        self.due: Due | None = None
        """Since when its change is registered; before that it cannot be taken."""
        self.is_lost = False
        """Whether it cannot follow the registry, and so cannot be taken."""
        self.is_wanted = False
        """Whether it is to be taken: who keeps it up leaves it alone."""

    def go_on(self) -> int:
        """Absorb some documents; return how many that are committed are still missing."""
        if self.is_lost:
            return 0
        last = next(self._portions, None)
        if last is None:
            self._portions = self._behind()
            last = next(self._portions, None)
        if last is not None:
            self._absorbed = last
        done = self._done()
        behind = self._absorbed or (done[0].first_docid - 1 if done else 0)
        return max(0, done[-1].last_docid - behind) if done else 0

    def bring_to(self, version: int) -> bool:
        """Absorb all that is committed and follow to a version; return False if it cannot."""
        while self.go_on():
            pass
        return self._is_brought_to(version)

    def _behind(self) -> Iterator[int]:
        """Absorb what is committed and not absorbed yet, version by version."""
        done = self._done()
        if not done:
            return
        if self._absorbed is None:
            last = min(self._made_at, done[-1].last_docid)
            yield from self._absorb(self.engine, None, last, done, self._spool)
            yield last
        first = self._absorbed + 1 if self._absorbed is not None else 1
        new = [segment for segment in done if segment.last_docid >= first]
        for version, group in groupby(new, key=attrgetter("registry_version")):
            if not self._is_brought_to(version):
                return
            last = list(group)[-1].last_docid
            yield from self._absorb(self.engine, first, last, done, self._spool)
            yield last
            first = last + 1

    def _done(self) -> list[Segment]:
        """Return the segments that are committed now."""
        through = self._through()
        self._spool.refresh()
        return [segment for segment in self._spool.all_segments() if segment.last <= through]

    def _is_brought_to(self, version: int) -> bool:
        if not self.is_lost and version != self._version:
            self.is_lost = not self._follow(self.engine, version)
            self._version = version
        return not self.is_lost
