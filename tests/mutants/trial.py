"""Tries mutants in a copy of the checkout."""

from __future__ import annotations

import ast
import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from importlib.util import cache_from_source
from operator import attrgetter
from pathlib import Path

from mutants.mutations import Mutant
from mutants.reach import NOTED, ORDER, PACKAGES, SECONDS, Reach, read_noted

__all__ = ["Fate", "Trial", "copy_of_checkout", "lines_of_statement"]

SECONDS_MIN = 60
"""The processor time that tests of a mutant may take: three times as without it, at least this."""

_WAITING = 10
"""How many times as long they may take by the clock: a mutant may have them wait for ever."""


_PASSED = (0, 5)
"""How pytest ends where no test fails, and where there is none: all of them start Spark."""


class Fate(Enum):
    """What became of a mutant; it is not tried where no test ran that may notice it."""

    KILLED = "killed"
    TIMED_OUT = "timed out"
    SURVIVED = "survived"
    NOT_TRIED = "not tried"


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
    """Runs tests in a copy; `reaches` is what those of each file run without a mutant."""

    root: Path
    packages: Sequence[str]
    reaches: dict[Path, list[Reach]] = field(default_factory=dict)

    def of(self, mutant: Mutant, tests: Sequence[Path]) -> Fate:
        """Return what becomes of a mutant under some files of tests.

        Files that were tried before go first, all at once; others follow one by one, as a mutant
        that is killed needs no more of them.
        """
        module = self.root / mutant.path
        source = module.read_text()
        lines = lines_of_statement(source, mutant.line)
        tried = [test for test in tests if test in self.reaches]
        were_reached = False
        for files in ([tried] if tried else []) + [[test] for test in tests if test not in tried]:
            for test in files:
                self._measure(test)
            here, elsewhere = self._near(mutant.path, lines, files)
            were_reached |= bool(here)
            fate = self._fate(module, mutant.code(source), here + elsewhere)
            if fate is not Fate.SURVIVED:
                return fate
        if were_reached:
            return Fate.SURVIVED
        # What runs at imports, or is compiled, is not seen: any test may notice.
        every = [reach for test in tests for reach in self.reaches[test]]
        fate = self._fate(module, mutant.code(source), every) if every else Fate.NOT_TRIED
        # Only what was left out may have run the line.
        is_missed = fate is Fate.SURVIVED and any(not self.reaches[test] for test in tests)
        return Fate.NOT_TRIED if is_missed else fate

    def _fate(self, module: Path, code: str, reaches: Sequence[Reach]) -> Fate:
        source = module.read_text()
        _write(module, code)
        try:
            ended = self._run(reaches, max(SECONDS_MIN, 3 * sum(each.seconds for each in reaches)))
        finally:
            _write(module, source)
        if ended is None:
            return Fate.TIMED_OUT
        return Fate.SURVIVED if ended in _PASSED else Fate.KILLED

    def _near(
        self, module: Path, lines: Set[int], tests: Sequence[Path]
    ) -> tuple[list[Reach], list[Reach]]:
        """Return the tests that run some lines, and those which may run them in other processes.

        The quickest of each are first.  The second are those of files that start a process.
        """
        here: list[Reach] = []
        elsewhere: list[Reach] = []
        for file in [self.reaches[test] for test in tests]:
            starts_processes = any(reach.starts_processes for reach in file)
            for reach in file:
                if not lines.isdisjoint(reach.lines.get(str(module), ())):
                    here.append(reach)
                elif starts_processes:
                    elsewhere.append(reach)
        seconds = attrgetter("seconds")
        return sorted(here, key=seconds), sorted(elsewhere, key=seconds)

    def _measure(self, test: Path) -> None:
        if test in self.reaches:
            return
        noted = self.root / ".noted"
        more = {PACKAGES: " ".join(self.packages), NOTED: str(noted)}
        if self._pytest([str(test)], more, None) in _PASSED:
            self.reaches[test] = read_noted(noted)
        else:
            # Some wait for a program, and not for long where the machine is busy.
            print(f"left out, as it fails without any mutant: {test}", file=sys.stderr)
            self.reaches[test] = []

    def _run(self, reaches: Sequence[Reach], seconds: float) -> int | None:
        """Return how pytest ended, None if it did not within so much processor time."""
        if not reaches:
            return 0
        order = self.root / ".order"
        order.write_text(json.dumps([reach.test for reach in reaches]))
        files = dict.fromkeys(reach.test.partition("::")[0] for reach in reaches)
        more = {ORDER: str(order), SECONDS: str(math.ceil(seconds))}
        return self._pytest(list(files), more, _WAITING * seconds)

    def _pytest(
        self, files: Sequence[str], more: Mapping[str, str], seconds: float | None
    ) -> int | None:
        """Return how pytest ended, None if it did not in so many seconds, or used its time up."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-m", "not spark"]
        command += ["-p", "mutants.reach", "-p", "no:cacheprovider", "--hypothesis-seed", "0"]
        # A busy machine is slow, which is no sign of a mutant.
        command += ["-o", "timeout=0"]
        process = subprocess.Popen(
            [*command, *files],
            cwd=self.root,
            # Processes that tests start read the copy, too.
            env={**os.environ, "PYTHONPATH": f"{self.root}:{self.root / 'tests'}", **more},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # A group, not a session, which would have a share of the processor of its own.
            process_group=0,
        )
        try:
            ended = process.wait(seconds)
            return None if ended in (-signal.SIGXCPU, -signal.SIGKILL) else ended
        except subprocess.TimeoutExpired:
            return None
        finally:
            # What tests have started and a mutant has made them leave behind.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _write(module: Path, code: str) -> None:
    """Change a module, whose bytecode Python would know by its second and size alone."""
    module.write_text(code)
    Path(cache_from_source(str(module))).unlink(missing_ok=True)


def lines_of_statement(source: str, line: int) -> set[int]:
    """Return the lines of the smallest statement around one; of `if` and the like, of its head."""
    found = {line}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt):
            body: list[ast.stmt] = getattr(node, "body", [])
            last = max(node.lineno, body[0].lineno - 1) if body else node.end_lineno or node.lineno
            if node.lineno <= line <= last:
                # Statements further within are walked later.
                found = set(range(node.lineno, last + 1))
    return found
