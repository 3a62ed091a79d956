"""What Spark's Python processes import: no more than they need, and nothing of somebody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import broker
from broker.pipeline.jvm import worker_environment

READER = "pyspark.sql.streaming.python_streaming_source_runner"

IMPORTED = f"""
import sys
import {READER}, broker.pipeline.spoolsource
print(sorted({{"pyarrow", "numpy", "lxml", "pandas"}} & set(sys.modules)))
"""

ROWS = f"""
from {READER} import records_to_arrow_batches
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import IntegerType, StructType
schema = StructType().add("a", IntegerType())
batches = records_to_arrow_batches(iter([(7,)]), 10, schema, DataSource({{}}))
print([batch.to_pydict() for batch in batches])
"""

ANOTHER_NAME = """
from pyspark.sql.worker.plan_data_source_read import worker_run
print(worker_run.__module__)
"""


def said(
    code: str, name: str = READER, path: Path | None = None, directory: Path | None = None
) -> str:
    """Return what some code prints in a process that is started as Spark starts one."""
    environment = worker_environment(is_local=True)
    if path is not None:
        environment["PYTHONPATH"] += os.pathsep + str(path)
    command = [sys.executable, "-c", code, name]
    return subprocess.run(
        command, env=environment, cwd=directory, capture_output=True, text=True, check=True
    ).stdout.strip()


def test_the_reader_of_the_spool_does_without_arrow() -> None:
    assert said(IMPORTED) == "[]"


def test_a_reader_that_sends_rows_along_still_can() -> None:
    assert said(ROWS) == "[{'a': [7]}]"


def test_whatever_else_is_asked_of_what_is_put_off_is_there() -> None:
    assert said(ANOTHER_NAME) == "pyspark.sql.worker.utils"


@pytest.mark.parametrize("name", [READER, "pyspark.worker"])
def test_what_an_operator_has_python_run_first_is_run_as_well(tmp_path: Path, name: str) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('mine')")
    assert said("print('theirs')", name, tmp_path) == "mine\ntheirs"


def test_a_module_where_the_broker_was_started_is_somebody_elses(tmp_path: Path) -> None:
    (tmp_path / "broker.py").write_text("raise SystemExit('not yours')")
    code = "import broker.pipeline.workers; print(broker.__file__)"
    assert said(code, "pyspark.worker", directory=tmp_path) == broker.__file__
