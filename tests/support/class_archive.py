"""Java's classes for the suite, read once: `python tests/support/class_archive.py FILE`.

A start of Spark's JVM spends most of its processor time on reading some ten thousand classes, and
the suite starts it some twenty times.  Java can write down what it has read (class data sharing);
`tests/conftest.py` has every JVM of the suite take it from there, if the file is there.  A JVM of
another build ignores it.
"""

from __future__ import annotations

import io
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import broker.pipeline.spark
import xscl
from broker.pipeline.jvm import Java, Jvm, start_jvm
from broker.pipeline.lookback.replay import replay
from broker.pipeline.spark import Spark

WRITING_S = 600.0
QUERY = "S//a->x FOLLOWED BY {x = y, 2 h} S//a->y"


class Writing(Jvm):
    """A JVM that is given the time to write the archive when it ends."""

    def stop(self, timeout_s: float = WRITING_S) -> None:
        super().stop(timeout_s)


def write(archive: Path, directory: Path) -> None:
    """Have a JVM do what it does for a join over shards, and write the classes that it has read."""

    def start(java: Java, **options: Any) -> Jvm:
        jvm = start_jvm(java, **options, options=[f"-XX:ArchiveClassesAtExit={archive}"])
        return Writing(jvm.java, jvm.port, jvm.secret, jvm.process)

    broker.pipeline.spark.start_jvm = start
    documents = directory / "documents.jsonl"
    row = {"stream": "S", "time": "2026-01-01T00:00:00Z", "xml": "<a>same</a>"}
    documents.write_text(f"{json.dumps(row)}\n" * 2)
    spark = Spark.start(directory / "log", has_shards=True)
    try:
        replay(xscl.parse(QUERY, id="q"), [documents], io.StringIO(), session=spark, shards=2)
    finally:
        spark.stop()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        write(Path(sys.argv[1]).resolve(), Path(place))
