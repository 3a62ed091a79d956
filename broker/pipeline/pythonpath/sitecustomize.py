"""What Python runs first in Spark's processes: its reader of the spool does without Arrow.

Spark starts that reader by a module of its own, which imports Arrow, and with it numpy, for rows
that a reader sends along with its plan.  Ours sends none; it would be twice as large for nothing,
for as long as the broker runs.  So the module that makes such rows is imported when its function is
first called.  Where another release of PySpark asks for more of it, it is imported at once.

Python runs one module of this name.  Another one that was found so far is run behind this.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

READER = "pyspark.sql.streaming.python_streaming_source_runner"
ROWS = "pyspark.sql.worker.plan_data_source_read"
MAKES_ROWS = "records_to_arrow_batches"


class LazyRows(ModuleType):
    """Stands for the module of rows until more is wanted of it than its function's name."""

    def __getattr__(self, name: str) -> Any:
        """Return the function, which imports the module when called, or import it for the rest."""
        if name.startswith("__"):
            raise AttributeError(name)
        if name == MAKES_ROWS:
            return lambda *arguments: getattr(self._whole(), name)(*arguments)
        return getattr(self._whole(), name)

    def _whole(self) -> ModuleType:
        if sys.modules.get(ROWS) is self:
            del sys.modules[ROWS]
        return importlib.import_module(ROWS)


def run_next() -> None:
    """Run the module of this name that is found behind this directory."""
    here = Path(__file__).parent.resolve()
    others = [path for path in sys.path if Path(path or ".").resolve() != here]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


if sys.orig_argv[-1:] == [READER]:
    sys.modules[ROWS] = LazyRows(ROWS)
run_next()
