"""Processes of the broker do without pandas, and look for cycles seldom: `set_up_process`."""

from __future__ import annotations

import subprocess
import sys

VERB = """
import gc
from broker.cli import main
main(["fmt", "--help"], standalone_mode=False)
print(gc.get_threshold())
"""

WITHOUT_PANDAS = """
import sys, types
sys.modules.pop("pandas", None)
from broker.pipeline.thisprocess import set_up_process
set_up_process()
try:
    import pandas
except ImportError as error:
    print(error)
"""


def printed(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.splitlines()[-1]


def test_a_verb_collects_less_often_than_python_does_by_itself() -> None:
    assert printed(VERB) == "(100000, 10, 10)"


def test_pandas_is_left_out_where_it_is_installed() -> None:
    assert printed(WITHOUT_PANDAS) == "the broker has no use for pandas"
