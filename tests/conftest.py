"""Fixtures of all rooms."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
from support.examples import examples, is_searching
from xdist.scheduler import LoadFileScheduling

# Tests start hundreds of processes, which would each compile all modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Look for cycles seldom: most is spared where most is imported.
gc.set_threshold(100_000, 10, 10)

# Starts of Spark read their classes from here; `tests/support/class_archive.py` says why.
CLASSES = Path(sys.prefix) / "java-classes"
if CLASSES.is_file():
    os.environ["JAVA_TOOL_OPTIONS"] = f"-XX:SharedArchiveFile={CLASSES} -Xlog:disable"

# What tests write is little and soon gone: it need not wait for a disk where files can be kept in
# memory, and programs started that stand there.
MEMORY = Path("/dev/shm")
if hasattr(os, "statvfs") and os.access(MEMORY, os.W_OK):
    memory = os.statvfs(MEMORY)
    if memory.f_bavail * memory.f_frsize >= 2 << 30 and not memory.f_flag & os.ST_NOEXEC:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# A busy machine is slow for a while, which is no failure.  The suite tries the same examples each
# time; what searches is `make soak`.
hypothesis.settings.register_profile(
    "xscl", deadline=None, derandomize=not is_searching(), max_examples=examples(15)
)
hypothesis.settings.load_profile("xscl")

if TYPE_CHECKING:
    from broker.pipeline.spark import Spark


WITH_SESSION = {
    f"tests/broker/test_{name}.py"
    for name in ("kafka", "replay", "spark_evaluation", "spark_pipeline")
}
"""The files whose tests share the session `spark`."""


class OneSession(LoadFileScheduling):
    """Gives files to processes in order; one process gets all that share Spark's session."""

    def __init__(self, config: pytest.Config, log: Any) -> None:
        # Else files with many tests come first, and the long ones have few.
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        path = super()._split_scope(nodeid)
        return "spark" if path in WITH_SESSION else path


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave to a search what it alone runs, and put files with long tests first.

    One that begins last is waited for by idle processors.
    """
    if not is_searching():
        left = [item for item in items if item.get_closest_marker("soak") is not None]
        items[:] = [item for item in items if item.get_closest_marker("soak") is None]
        config.hook.pytest_deselected(items=left)
    are_long = {
        item.path for item in items if {"slow", "spark"} & {m.name for m in item.iter_markers()}
    }
    items.sort(key=lambda item: item.path not in are_long)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Leave what has been imported and collected out of all garbage collections from here on."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Let it be collected when the process ends, as extensions ask that count what they gave."""
    gc.unfreeze()


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return how many processes run tests: one more than there are cores, as many tests wait."""
    return min(8, 1 + (os.cpu_count() or 1))


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneSession:
    """Return what deals out the tests of a parallel run."""
    return OneSession(config, log)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have measured (`record_property("figure", ...)`), also in parallel runs."""
    reports = [each for kind in ("passed", "failed") for each in terminalreporter.getreports(kind)]
    for report in reports:
        for name, value in report.user_properties:
            if name == "figure":
                terminalreporter.write_line(str(value))


@pytest.fixture(autouse=True, scope="session")
def no_contexts_of_the_user(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the contexts of whoever runs the tests out of them."""
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))


@pytest.fixture(autouse=True, scope="session")
def shared_databases() -> Iterator[None]:
    """Have all joins of a test process share one DuckDB; `support.shared_database` says why."""
    from support.shared_database import share_databases

    yield from share_databases()


@pytest.fixture(autouse=True, scope="session")
def copied_files() -> Iterator[None]:
    """Have new SQLite files be copies; `support.new_files` says why."""
    from support.new_files import copy_new_files

    yield from copy_new_files()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Spark]:
    """One Spark session for all tests: it takes seconds to start."""
    from broker.pipeline.spark import Spark

    spark = Spark.start(tmp_path_factory.mktemp("spark"))
    yield spark
    spark.stop()
