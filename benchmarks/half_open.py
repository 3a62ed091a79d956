"""Answers of the API while connections are half open: `python -m benchmarks half_open`.

    python -m benchmarks half_open [--connections 2000] [--files 1024]

A broker may open so many files, and no more, as under `ulimit -n`.  Connections are opened that
send half of a request's head and no more; meanwhile and afterwards the API is asked by somebody
else, each time over a connection of its own.  The broker has everything but Spark, to which no
connection leads.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

HALF = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nX-"
ASKED_EVERY = 20
ASKED_AFTERWARDS = 50
ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--connections", type=int, default=2_000)
    parser.add_argument("--files", type=int, default=1_024, help="the broker's `ulimit -n`")
    given = parser.parse_args()
    with serving(given.files) as url, contextlib.ExitStack() as opened:
        address = ("127.0.0.1", int(url.rpartition(":")[2]))
        during = []
        for number in range(given.connections):
            half = opened.enter_context(socket.create_connection(address, timeout=30))
            half.sendall(HALF)
            if number % ASKED_EVERY == 0:
                during.append(answered_in_s(url))
        afterwards = [answered_in_s(url) for _ in range(ASKED_AFTERWARDS)]
    for when, seconds in (("while they are opened", during), ("once they are open", afterwards)):
        print(
            f"{when:<24} {len(seconds)} answers, median {statistics.median(seconds):.3f} s,"
            f" longest {max(seconds):.3f} s"
        )


@contextlib.contextmanager
def serving(files: int) -> Iterator[str]:
    """Run a broker that may open so many files; yields its URL."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "xscl.toml").write_text('data = "data"\n[http]\nport = 0\n')
        broker = [sys.executable, "-m", "support.light_broker", "xscl.toml"]
        # Both limits: the broker would raise the soft one as far as it may.
        process = subprocess.Popen(
            ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *broker],
            cwd=name,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "tests")))},
        )
        try:
            address = Path(name, "data", "address")
            while not (address.exists() and address.read_text().endswith("\n")):
                assert process.poll() is None, "the broker has ended"
                time.sleep(0.1)
            yield address.read_text().strip()
        finally:
            process.terminate()
            process.wait()


def answered_in_s(url: str) -> float:
    began = time.perf_counter()
    with urllib.request.urlopen(f"{url}/healthz", timeout=60) as answer:
        assert json.load(answer) == {"status": "ok"}
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
