"""How long after a tick of a running broker's clock what it decides is in the outbox.

    python -m benchmarks ticks [--bursts 30] [--documents 200]

A burst of documents, each announced under a key of its own, then silence: each is followed by no
other, which a tick decides.  What is measured is the time from the tick's arrival, as the spool has
it, to the commit of its batch, as the broker's log has it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.running_broker import Broker

from benchmarks._live import commit_times
from broker.documents.document import CLOCK
from broker.documents.spool import Spool

SILENCE = "news//item[k->x] NOT FOLLOWED BY {x = y, 1 s} news//item[k->y] GRACE 0 s"
SETTINGS = '[log]\nformat = "json"\nlevel = "debug"\n[clock]\nevery = "1 s"\n'


def arrivals(directory: Path) -> Iterator[tuple[int, float]]:
    """Yield the ticks of a spool, each with the time at which it came."""
    spool = Spool(directory)
    for segment in spool.segments():
        rows = spool.rows(segment)
        columns = (rows.column(name).to_pylist() for name in ("stream", "arrival_us"))
        for docid, (stream, arrival_us) in enumerate(
            zip(*columns, strict=True), segment.first_docid
        ):
            if stream == CLOCK:
                yield docid, arrival_us / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--bursts", type=int, default=30)
    parser.add_argument("--documents", type=int, default=200)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        broker = Broker(Path(name), SETTINGS)
        broker.start()
        broker.call("PUT", "/v1/queries/silence", SILENCE.encode())
        for burst in range(options.bursts):
            numbers = range(burst * options.documents, (burst + 1) * options.documents)
            broker.publish("news", [{"xml": f"<item><k>{n}</k></item>"} for n in numbers])
            expected = (burst + 1) * options.documents
            broker.wait_for(lambda wanted=expected: found(broker) >= wanted)
        matches = found(broker)
        assert broker.stop() == 0
        committed = commit_times(broker.log)
        delays = [
            committed[docid] - at
            for docid, at in arrivals(Path(name) / "data" / "spool")
            if docid in committed
        ]
    centiles = statistics.quantiles(delays, n=100)
    print(f"{len(delays)} ticks, {matches:,.0f} matches")
    print(f"tick to outbox: p50 {centiles[49]:.2f} s, p99 {centiles[98]:.2f} s")


def found(broker: Broker) -> float:
    """Return how many matches a broker has found."""
    matches: float = broker.call("GET", "/v1/statistics")["figures"]["matches_total"]
    return matches


if __name__ == "__main__":
    main()
