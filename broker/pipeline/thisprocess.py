"""What each process of the broker does first: it leaves pandas out, and looks for cycles seldom.

Arrow imports pandas, where there is one, for the first array that it makes of Python's values, and
PySpark with the first frame: 40 MB and a second of each process.  Nothing here has values of it.

Python looks for cycles among the newest objects whenever there are 700 more of them, and a batch
of documents makes hundreds of thousands, hardly one of them in a cycle: a quarter of the time of a
join with many matches, and a sixth with 10,000 queries where each step was only ten times as long.
What is in cycles meanwhile takes some ten megabytes.
"""

from __future__ import annotations

import atexit
import gc
import sys
from importlib.abc import MetaPathFinder

__all__ = ["set_up_process"]

_COLLECTED_AT = 100_000, 10, 10


class _PandasFree(MetaPathFinder):
    """Has no pandas to import."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raise `ImportError` for pandas, and find nothing else."""
        if fullname == "pandas":
            raise ModuleNotFoundError("the broker has no use for pandas", name=fullname)


def set_up_process() -> None:
    """Have this process behave as where pandas is not installed, and look for cycles seldom.

    What it has imported by now is never looked through again, and stays shared with what it forks.
    """
    sys.meta_path.insert(0, _PandasFree())
    gc.freeze()
    # What is put aside goes as well: DuckDB complains on stderr of what is left of it.
    atexit.register(gc.unfreeze)
    gc.set_threshold(*_COLLECTED_AT)
