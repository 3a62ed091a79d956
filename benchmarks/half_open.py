"""Answers of the API while connections are half open: `python -m benchmarks half_open`.

    python -m benchmarks half_open [--connections 2000] [--files 1024]

A whole broker may open so many files, and no more, as under `ulimit -n`.  Connections are opened
that send half of a request's head and no more; meanwhile and afterwards the API is asked by
somebody else, each time over a connection of its own.
"""

from __future__ import annotations

import argparse
import contextlib
import socket
import statistics
import sys
import tempfile
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.running_broker import Broker

HALF = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-"
ASKED_EVERY = 20
ASKED_AFTERWARDS = 50


def main() -> None:
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--connections", type=int, default=2_000)
    parser.add_argument("--files", type=int, default=1_024, help="the broker's `ulimit -n`")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as opened:
        # Both limits: the broker raises the soft one as far as it may.
        limited = ("sh", "-c", f'ulimit -n {given.files}; exec "$@"', "sh")
        broker = Broker(Path(name), starter=limited)
        try:
            broker.start()
            address = ("127.0.0.1", int(broker.url.rpartition(":")[2]))
            during = []
            for number in range(given.connections):
                half = opened.enter_context(socket.create_connection(address, timeout=30))
                half.sendall(HALF)
                if number % ASKED_EVERY == 0:
                    during.append(answered_in_s(broker))
            afterwards = [answered_in_s(broker) for _ in range(ASKED_AFTERWARDS)]
        finally:
            broker.stop()
    for when, seconds in (("while they are opened", during), ("once they are open", afterwards)):
        print(
            f"{when:<24} {len(seconds)} answers, median {statistics.median(seconds):.3f} s,"
            f" longest {max(seconds):.3f} s"
        )


def answered_in_s(broker: Broker) -> float:
    began = time.perf_counter()
    broker.call("GET", "/v1/queries")
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
