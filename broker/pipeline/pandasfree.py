"""Processes of the broker do without pandas, even where it is installed.

Arrow imports it, where there is one, for the first array that it makes of Python's values, and
PySpark with the first frame: 40 MB and a second of each process.  Nothing here has values of it.
"""

from __future__ import annotations

import sys
from importlib.abc import MetaPathFinder

__all__ = ["leave_pandas_out"]


class _PandasFree(MetaPathFinder):
    """Has no pandas to import."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        """Raise `ImportError` for pandas, and find nothing else."""
        if fullname == "pandas":
            raise ModuleNotFoundError("the broker has no use for pandas", name=fullname)


def leave_pandas_out() -> None:
    """Have this process behave as where pandas is not installed."""
    sys.meta_path.insert(0, _PandasFree())
