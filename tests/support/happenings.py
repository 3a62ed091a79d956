"""What happens to what is remembered while a case runs, where a test wants to know that it does."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

from joins.memory.instancetable import InstanceTable
from joins.memory.remembered import Remembered
from joins.memory.spill import InstanceRows
from joins.memory.valueindex import ValueIndex
from joins.sequences.pairs import _Portions
from joins.sequences.timeline import Timeline
from joins.shards.pieces import Pieces

__all__ = ["HAPPENINGS", "noted"]

HAPPENINGS: dict[str, tuple[Any, str, Callable[[Any, Any], bool]]] = {
    "forget documents": (Remembered, "evict", lambda self, gone: gone > 0),
    "move what is left together": (InstanceTable, "end_sweep", lambda self, _: True),
    "write rows to files": (InstanceRows, "_spill", lambda self, _: True),
    "merge runs of values": (ValueIndex, "_sorted", lambda self, _: True),
    "divide pairs into portions": (_Portions, "stop", lambda self, stop: stop < len(self.ends)),
    "forget what was to be decided": (Timeline, "sweep", lambda self, is_changed: is_changed),
    "merge pieces of shards": (Pieces, "replace", lambda self, _: True),
}
"""By what a case does then: where it happens, and how one knows it from what comes back."""


@contextlib.contextmanager
def noted() -> Iterator[Counter[str]]:
    """Count how often each of them happens."""
    found: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        for name, (where, function, has_happened) in HAPPENINGS.items():
            noting = _noting(name, getattr(where, function), has_happened, found)
            stack.enter_context(patch.object(where, function, noting))
        yield found


def _noting(
    name: str,
    function: Callable[..., Any],
    has_happened: Callable[[Any, Any], bool],
    found: Counter[str],
) -> Callable[..., Any]:
    def noting(self: Any, *arguments: Any, **named: Any) -> Any:
        result = function(self, *arguments, **named)
        found[name] += bool(has_happened(self, result))
        return result

    return noting
