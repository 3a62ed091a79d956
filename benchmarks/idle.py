"""Memory of an idle broker with one feed, by process: `python -m benchmarks idle`.

    python -m benchmarks idle [--seconds 60] [--documents 0] [--master "local[2]"]

`xscl run` polls one feed on loopback, whose items one query joins, and is left alone for some
seconds.  Two figures for each process, as Linux counts them: *resident* is what it can see, pages
that it shares with others in full; *proportional* gives each sharer its part, so that only these
sums are what the machine would have back.  Spark's are the JVM and the Python processes below it;
`--documents` passes so many through beforehand, for what remains of work.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import sys
import tempfile
import threading
import time
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).parents[1])
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.running_broker import Broker

from benchmarks._memory import ProcessMemory, processes_below

ITEM = "<item><guid>{0}</guid><title>Story {0}</title><link>http://example.org/{0}</link></item>"
ITEMS = "".join(ITEM.format(number) for number in range(20))
FEED = f'<rss version="2.0"><channel><title>One</title>{ITEMS}</channel></rss>'
SAME_TITLE = b"news//item->a JOIN { a/title = b/title, 1 hour } news//item->b"


def main() -> None:
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=60, help="how long it is left alone")
    parser.add_argument("--documents", type=int, default=0, help="published before that")
    parser.add_argument("--master", default="local[2]")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        (directory / "feed.xml").write_text(FEED)
        handler = functools.partial(Quiet, directory=name)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        broker = Broker(directory / "broker", f'[spark]\nmaster = "{given.master}"')
        try:
            broker.start()
            broker.call("PUT", "/v1/queries/same-title", SAME_TITLE)
            url = f"http://127.0.0.1:{server.server_port}/feed.xml"
            feed = {"url": url, "stream": "news"}
            broker.call("POST", "/v1/feeds", feed)
            broker.wait_for(lambda: matched(broker) >= 20)
            publish(broker, given.documents)
            time.sleep(given.seconds)
            report(broker.pid, processes_below(broker.pid))
        finally:
            broker.stop()
            server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing of it."""

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


def matched(broker: Broker) -> int:
    """Return how many documents have been through the join."""
    lines = broker.text("/metrics").splitlines()
    of_name = (line.rpartition(" ")[2] for line in lines if "documents_evaluated_total " in line)
    return int(float(next(value for value in of_name if value[0].isdigit())))


def publish(broker: Broker, documents: int) -> None:
    """Pass documents through, a thousand in a request, and wait until all are joined."""
    before = matched(broker)
    for first in range(0, documents, 1_000):
        numbers = range(first, min(first + 1_000, documents))
        xml = "<item><title>Line {0}</title><author>{1}</author></item>"
        broker.publish("news", [{"key": f"k{n}", "xml": xml.format(n, n % 99)} for n in numbers])
    broker.wait_for(lambda: matched(broker) >= before + documents)


def report(root: int, processes: list[ProcessMemory]) -> None:
    print(f"{'process':<44}{'resident MB':>12}{'proportional MB':>17}")
    for process in processes:
        print(
            f"{process.name[:43]:<44}{process.resident_mb:>12.0f}{process.proportional_mb:>17.0f}"
        )
    of_spark = [process for process in processes if process.pid != root]
    for name, part in (("all processes", processes), ("of that Spark's", of_spark)):
        resident = sum(process.resident_mb for process in part)
        proportional = sum(process.proportional_mb for process in part)
        print(f"{name:<44}{resident:>12.0f}{proportional:>17.0f}")


if __name__ == "__main__":
    main()
