"""Tries mutants in a copy of the checkout."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from mutants.mutations import Mutant

__all__ = ["Fate", "Trial", "copy_of_checkout"]

SECONDS_MIN = 60
"""Tests of a mutant may take three times as long as without it, and this long in any case."""


_PASSED = (0, 5)
"""How pytest ends where no test fails, and where there is none: all of them start Spark."""


class Fate(Enum):
    """What became of a mutant."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"


@contextmanager
def copy_of_checkout(root: Path) -> Iterator[Path]:
    """Make a copy of what git knows or would add, for as long as it is used."""
    listed = subprocess.run(
        ["git", "ls-files", "-coz", "--exclude-standard"], cwd=root, capture_output=True, check=True
    )
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        for path in filter(None, listed.stdout.decode().split("\0")):
            if (root / path).is_file():
                target = Path(name) / path
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / path, target)
        yield Path(name)


@dataclass(slots=True)
class Trial:
    """Runs tests in a copy; `seconds` is how long each file of tests takes without a mutant."""

    root: Path
    seconds: dict[Path, float] = field(default_factory=dict)

    def of(self, mutant: Mutant, tests: Sequence[Path]) -> Fate:
        """Return what becomes of a mutant under some files of tests."""
        for test in tests:
            self._measure(test)
        module = self.root / mutant.path
        source = module.read_text()
        module.write_text(mutant.code(source))
        try:
            quickest_first = sorted(tests, key=lambda test: self.seconds[test])
            seconds = max(SECONDS_MIN, 3 * sum(self.seconds[test] for test in tests))
            code = self._run(quickest_first, seconds)
        finally:
            module.write_text(source)
        if code is None:
            return Fate.TIMED_OUT
        return Fate.SURVIVED if code in _PASSED else Fate.KILLED

    def _measure(self, test: Path) -> None:
        if test in self.seconds:
            return
        start = time.monotonic()
        code = self._run([test], None)
        assert code in _PASSED, f"{test} fails without any mutant"
        self.seconds[test] = time.monotonic() - start

    def _run(self, tests: Sequence[Path], seconds: float | None) -> int | None:
        """Return how pytest ended, None if it did not in time."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-m", "not spark"]
        command += ["-p", "no:cacheprovider", "--hypothesis-seed", "0", *map(str, tests)]
        process = subprocess.Popen(
            command,
            cwd=self.root,
            # Processes that tests start read the copy, too.
            env={**os.environ, "PYTHONPATH": str(self.root), "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # What tests have started and a mutant has made them leave behind.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
