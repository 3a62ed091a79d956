"""Compiled loops are made by a process of its own, and nobody waits for it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.kernels import needs_kernels

from templates.compilation import Loops

ROOT = Path(__file__).parents[2]

COLD = """
import logging
from pathlib import Path

from joins.signature import compilation
from support.kit import cases, check
from support.runners import run_engine
from support.tiny_limits import matching

logging.basicConfig(format="%(message)s", level=logging.INFO)

def check_some():
    limits = matching(few_pairs=0, compiled_pairs=0)
    for _, text in list(cases())[:4]:
        check(text, lambda case: run_engine(case, limits=limits))

check_some()
compilation._LOOPS._process.wait()
kept = sorted(Path(CACHE).rglob("*.nbc"))
assert kept
logging.info("compiled")
check_some()
assert compilation._LOOPS.are_ready()
# All that is called has been compiled before.
assert sorted(Path(CACHE).rglob("*.nbc")) == kept
"""


def test_loops_are_used_when_their_process_has_ended() -> None:
    needs_kernels()
    loops = Loops("this", "do nothing", "array operations do it", lambda: True)
    assert not loops.are_ready()
    assert loops._process is not None
    assert loops._process.wait() == 0
    assert loops.are_ready()


@pytest.mark.soak
@pytest.mark.timeout(900)  # ten seconds of a processor, and ten times that on a busy machine
def test_array_operations_join_until_loops_are_compiled(tmp_path: Path) -> None:
    needs_kernels()
    ran = run(COLD.replace("CACHE", repr(str(tmp_path))), NUMBA_CACHE_DIR=str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    said = ran.stderr.splitlines()
    assert "a process of its own compiles the loops that compare pairs" in said[0]
    assert said[1:] == ["compiled"]


FAILING = """
import logging, sys
from joins.similarity.compilation import LOOPS as loops

logging.basicConfig(format="%(message)s")
python, sys.executable = sys.executable, EXECUTABLE
assert not loops.are_ready()
if loops._process is not None:
    assert loops._process.wait()
assert not any(loops.are_ready() for _ in range(3))
"""


@pytest.mark.parametrize(("executable", "why"), [("false", "status 1"), ("/none", "No such file")])
def test_where_loops_cannot_be_compiled_it_is_said_once(
    tmp_path: Path, executable: str, why: str
) -> None:
    needs_kernels()
    ran = run(FAILING.replace("EXECUTABLE", repr(executable)), NUMBA_CACHE_DIR=str(tmp_path))
    assert ran.returncode == 0, ran.stderr
    (said,) = ran.stderr.splitlines()
    assert "could not be compiled, so that array operations do it" in said
    assert why in said


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
