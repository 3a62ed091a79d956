"""What Spark's Python workers are forked from: a process that has imported what evaluation needs.

A worker is a copy of it, so it begins at once and shares its pages with the others.  It ends when
it has had nothing to do for a minute; this process stays.  Where the join is spread over shards,
workers are forked from `shardworkers` instead, which has imported the join as well.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

import pyspark.worker  # noqa: F401 - what each worker runs
from pyspark.daemon import manager

import broker.pipeline.evaluation  # noqa: F401 - what their tasks run


class WithoutPandas(MetaPathFinder):
    """Has no pandas to import.

    Arrow imports it, where there is one, for the first array that it makes of Python's values:
    36 MB and a second of each worker.  Evaluation has no values of pandas.
    """

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raise `ImportError` for pandas, and find nothing else."""
        if fullname == "pandas":
            raise ModuleNotFoundError("evaluation has no use for pandas", name=fullname)


if __name__ == "__main__":
    sys.meta_path.insert(0, WithoutPandas())
    manager()
