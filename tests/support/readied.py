"""What every process that runs tests would do first, done once: `python tests/support/readied.py`.

Of a new checkout pytest rewrites the assertions of each file of tests, Python compiles what these
import, and Hypothesis looks for constants in the code.  All three are kept in files.  What cannot
be done here, for another version of pytest or Hypothesis, is done by the tests.
"""

from __future__ import annotations

import os
import py_compile
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from multiprocessing import Pool
from pathlib import Path
from types import ModuleType, SimpleNamespace

from _pytest.assertion import rewrite
from hypothesis.internal.constants_ast import constants_from_module

__all__ = ["ready"]

ROOT = Path(__file__).parents[2]


def ready(packages: list[str]) -> Iterator[Callable[[], object]]:
    """Yield what is to be done for the tests, and for the code that they try."""
    for path in sorted((ROOT / "tests").rglob("*.py")):
        is_rewritten = path.name.startswith("test_") or path.name == "conftest.py"
        yield partial(_rewrite if is_rewritten else py_compile.compile, path)
    for package in packages:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield partial(_look_for_constants, path)


def _rewrite(path: Path) -> None:
    kept = rewrite.get_cache_dir(path) / f"{path.stem}{rewrite.PYC_TAIL}"
    if rewrite._read_pyc(path, kept) is None:
        source, code = rewrite._rewrite_test(path, None)
        kept.parent.mkdir(exist_ok=True)
        rewrite._write_pyc(SimpleNamespace(trace=print), code, source, kept)


def _look_for_constants(path: Path) -> None:
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    constants_from_module(module)


def _do(work: Callable[[], object]) -> None:
    with suppress(Exception):
        work()


if __name__ == "__main__":
    with Pool(os.cpu_count()) as pool:
        pool.map(_do, ready(sys.argv[1:]), chunksize=16)
