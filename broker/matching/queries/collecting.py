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
from dataclasses import dataclass

__all__ = ["take_back", "without_collecting"]

_MANY = 100_000
"""Objects that are put aside together; 500 queries have as many."""


@dataclass
class _PutAside:
    """Whether queries have been put aside since cycles were last looked for among all objects."""

    some: bool = False


_put_aside = _PutAside()


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
                _put_aside.some = True
            gc.enable()


def take_back() -> None:
    """Look for cycles among all objects, where queries have been put aside."""
    if _put_aside.some:
        _put_aside.some = False
        gc.unfreeze()
        gc.collect()
        gc.freeze()
