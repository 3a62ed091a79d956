"""Pytest's plugin that notes which lines tests run, and runs those that it is told to, in order.

What tests start in other processes is not seen, nor what runs while modules are imported.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

__all__ = ["NOTED", "ORDER", "PACKAGES", "SECONDS", "Reach", "read_noted"]

PACKAGES, NOTED = "MUTANTS_PACKAGES", "MUTANTS_NOTED"
"""Variables of the environment: where the lines are, and a file to note in."""

ORDER, SECONDS = "MUTANTS_ORDER", "MUTANTS_SECONDS"
"""Those of a run: a file of the tests to run, and the processor time that they may take."""

_STARTS = {("subprocess.py", "_execute_child"), ("process.py", "start")}
"""Functions of Python's own that start a process, by the names of their modules."""


@dataclass(frozen=True, slots=True)
class Reach:
    """What a test runs, and its processor time: lines are by the file relative to the checkout."""

    test: str
    seconds: float
    lines: dict[str, list[int]]
    starts_processes: bool


def read_noted(path: Path) -> list[Reach]:
    """Return what was noted of each test."""
    return [Reach(**each) for each in json.loads(path.read_text())]


class _Tracer:
    """Follows one test; a function all of whose lines it has run is not followed any more."""

    def __init__(self, packages: Sequence[str]) -> None:
        self._packages = tuple(packages)
        self.seen: dict[str, set[int]] = defaultdict(set)
        self.starts_processes = False
        self._left: dict[CodeType, set[int]] = {}

    def called(self, frame: FrameType, _: str, __: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self._packages):
            if (os.path.basename(code.co_filename), code.co_name) in _STARTS:
                self.starts_processes = True
            return None
        left = self._left.get(code)
        if left is None:
            left = self._left[code] = {line for *_, line in code.co_lines() if line is not None}
            left.discard(code.co_firstlineno)
        if not left:
            return None
        lines = self.seen[code.co_filename]

        def stepped(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
                left.discard(frame.f_lineno)
            return stepped

        return stepped


class _Notes:
    def __init__(self, packages: Sequence[str], target: Path) -> None:
        self._packages, self._target = packages, target
        self._reaches: list[dict[str, Any]] = []

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        tracer = _Tracer(self._packages)
        start = time.process_time()
        threading.settrace(tracer.called)
        sys.settrace(tracer.called)
        try:
            yield
        finally:
            sys.settrace(None)
            threading.settrace(None)  # type: ignore[arg-type]
        root = item.config.rootpath
        self._reaches.append(
            {
                "test": item.nodeid,
                "seconds": time.process_time() - start,
                "lines": {os.path.relpath(p, root): sorted(n) for p, n in tracer.seen.items()},
                "starts_processes": tracer.starts_processes,
            }
        )

    def pytest_sessionfinish(self) -> None:
        self._target.write_text(json.dumps(self._reaches))


class _Order:
    def __init__(self, tests: Sequence[str]) -> None:
        self._places = {test: place for place, test in enumerate(tests)}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if item.nodeid in self._places]
        items.sort(key=lambda item: self._places[item.nodeid])


def pytest_configure(config: pytest.Config) -> None:
    if target := os.environ.pop(NOTED, None):
        packages = [f"{config.rootpath / name}/" for name in os.environ[PACKAGES].split()]
        config.pluginmanager.register(_Notes(packages, Path(target)))
    if order := os.environ.pop(ORDER, None):
        config.pluginmanager.register(_Order(json.loads(Path(order).read_text())))
    if seconds := os.environ.pop(SECONDS, None):
        most = int(seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
