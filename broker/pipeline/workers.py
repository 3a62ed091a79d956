"""What Spark's Python workers are forked from: a process that has imported what evaluation needs.

A worker is a copy of it, so it begins at once and shares its pages with the others.  It ends when
it has had nothing to do for a minute; this process stays.  Where the join is spread over shards,
workers are forked from `shardworkers` instead, which has imported the join as well.
"""

from __future__ import annotations

import pyspark.worker  # noqa: F401 - what each worker runs
from pyspark.daemon import manager

import broker.pipeline.evaluation  # noqa: F401 - what their tasks run
from broker.pipeline.thisprocess import set_up_process

if __name__ == "__main__":
    set_up_process()
    manager()
