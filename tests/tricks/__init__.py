"""The web's tricks on pollers of feeds.

After the rules of the Feed Reader Behavior Project and the complaints of feed publishers.  Each
trick is a function that lets a poller loose on the server and returns what it did wrong.  The
clock is moved by hand, so that days pass in milliseconds.
"""

from __future__ import annotations

import inspect
from types import ModuleType

from tricks import bodies, conditional, pace, places
from tricks.stage import Play, Trick

__all__ = ["TRICKS", "Play", "Trick"]


def _of(module: ModuleType) -> list[Trick]:
    """Return every coroutine function of a module."""
    return [each for each in vars(module).values() if inspect.iscoroutinefunction(each)]


TRICKS: list[Trick] = [
    trick for module in (conditional, pace, places, bodies) for trick in _of(module)
]
