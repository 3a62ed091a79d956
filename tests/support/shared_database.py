"""One DuckDB for the signature views of a test process: opening takes 25 ms, attaching 1 ms.

A test makes many joins, each with a view of its own.  Engines in SQL, and all that runs in a
process of its own, open a database each, as a broker does.
"""

from __future__ import annotations

import itertools
import os
import weakref
from collections.abc import Iterator
from functools import cache

import joins.signature.view
from joins.sql import rows, schema

__all__ = ["share_databases"]

_NUMBERS = itertools.count(1)
_GONE: list[str] = []
"""Databases whose views are gone.  They are detached with the next one that is attached: views end
whenever they are collected, also in the middle of a statement."""


def share_databases() -> Iterator[None]:
    """Have all signature views of this process share an instance, until it is asked to go on."""
    joins.signature.view.connect = _attached
    yield
    joins.signature.view.connect = rows.connect
    _instance.cache_clear()


@cache
def _instance(process: int, threads: int) -> rows.Database:
    return rows.connect(threads=threads)


def _attached(*, threads: int) -> rows.Database:
    instance = _instance(os.getpid(), threads)
    name = f"view{next(_NUMBERS)}"
    db = instance.cursor()
    while _GONE:
        rows.run(db, f"DETACH {_GONE.pop()}")
    rows.run(db, f"ATTACH ':memory:' AS {name}")
    rows.run(db, f"USE {name}")
    for table, columns in schema.TABLES.items():
        rows.run(db, f"CREATE TABLE {table} ({columns})")
    weakref.finalize(db, _GONE.append, name).atexit = False
    return db
