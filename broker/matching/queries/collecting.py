"""Many queries at once, for which nobody looks for cycles of objects.

What a query is made of stays, and hardly any of it is in a cycle.  A quarter of the time of
registering ten thousand went into looking through all that came before, again and again.  Behind
them the batches paid: all queries are looked through three times before Python takes them for old,
and a look took 1.4 s.  So in a process that has put aside what it began with (`set_up_process`),
many that have come at once are put aside, too.  What is put aside goes when nobody refers to it
any more, like everything, and queries leave no cycles behind; an engine does, so `take_back` comes
before another is made.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["take_back", "without_collecting"]

_MANY = 100_000
"""Objects that are put aside together; 500 queries have as many."""


@contextmanager
def without_collecting() -> Iterator[None]:
    """Look for no cycles of objects in this block, whichever thread makes them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # What is put aside is counted one by one, so that is asked last.
            if gc.get_count()[0] >= _MANY and gc.get_freeze_count():
                gc.freeze()
            gc.enable()


def take_back() -> None:
    """Look for cycles among all objects, those that have been put aside included."""
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
        gc.freeze()
