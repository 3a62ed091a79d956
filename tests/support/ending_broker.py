"""A broker that ends now and then, and begins again where it was."""

from __future__ import annotations

import random
from pathlib import Path

from broker.documents.disk import Disk
from broker.pipeline.snapshot import Snapshot
from support.kit import Case
from support.matching_broker import MatchingBroker

__all__ = ["run_broker"]


def run_broker(case: Case, directory: Path, cut: random.Random) -> list[str]:
    """Return the lines of a broker that ends now and then, with its snapshot or without."""

    def start() -> MatchingBroker:
        snapshot = Snapshot(directory / "state", disk=Disk(is_durable=False))
        has_snapshot = cut.random() < 0.7
        return MatchingBroker(
            directory, lateness_us=case.lateness_us, snapshot=snapshot if has_snapshot else None
        )

    broker = start()
    for query in case.queries:
        broker.register(query, point=case.registered.get(query.id, 0))
        for values in case.assignments.get(query.id, ()):
            broker.subscribe(query, values)
    rest = case.lines
    while rest:
        count = cut.randint(1, 4)
        broker.take(rest[:count])
        rest = rest[count:]
        if cut.random() < 0.6:
            broker.close()
            broker = start()
    found = broker.found()
    broker.close()
    return found
