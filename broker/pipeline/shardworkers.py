"""What Spark's Python workers are forked from where the join is spread over them; see `workers`."""

from __future__ import annotations

from pyspark.daemon import manager

import broker.pipeline.shards
import broker.pipeline.workers  # noqa: F401 - tasks of shards and of evaluation
from broker.pipeline.thisprocess import set_up_process

if __name__ == "__main__":
    set_up_process()
    manager()
