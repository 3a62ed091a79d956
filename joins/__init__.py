"""Stage 2: remembers witnesses of documents, and joins new ones with them for all queries at once.

    memory      instances, remembered: rows, times, values, and for how long
    classes     query classes: queries that differ only in data share one evaluation
    budget      the cost of a document: pairs are counted before they are made
    sql         the engines of the paper, for reference, and the templates' conjunctive queries
    similarity  pairs of texts that have enough words in common
    signature   the default engine
    engines     all engines by name, behind one interface
    sequences   what is decided once: next, absence
    shards      the default engine over N processes
    files       witnesses that outlive a process

Invariant: tuples depend on instances and classes alone, never on the engine, on batches, on shards
or on what is still remembered.

This module is the package's face: a user of the package needs its names, `joins.shards` and
`joins.files`.  A name is imported when it is used first, so that verbs of the command line that
join nothing start without NumPy, Arrow and DuckDB.

Begin with `engines`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from joins.budget.limits import DEFAULT_RUN_LIMITS, RunLimits
    from joins.budget.pairs import Overrun
    from joins.classes import ClassRegistry, Positions, UseKind
    from joins.engines import DEFAULT_ENGINE, ENGINES, EngineName, Processor, make_processor
    from joins.memory.durations import UNBOUNDED, Durations, Largest
    from joins.memory.instance import INSTANCE_SCHEMA, Instance, read_instances, rows_in_sub_batches
    from joins.memory.instancetable import hash_values
    from joins.memory.slots import ranges
    from joins.memory.tupletable import ClassTuple, TuplePosition, TupleTable, in_tables
    from joins.sequences.processor import DecidingProcessor
    from joins.sequences.runends import CountedEnds
    from joins.sequences.takenvalues import ALL_BUT, hashes_in
    from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits
    from joins.sql.render import template_sql
    from templates.queryclass import QueryClass

__all__ = [
    "ALL_BUT",
    "DEFAULT_ENGINE",
    "DEFAULT_LIMITS",
    "DEFAULT_RUN_LIMITS",
    "ENGINES",
    "INSTANCE_SCHEMA",
    "UNBOUNDED",
    "ClassRegistry",
    "ClassTuple",
    "CountedEnds",
    "DecidingProcessor",
    "Durations",
    "EngineName",
    "Instance",
    "Largest",
    "Overrun",
    "Positions",
    "Processor",
    "QueryClass",
    "RunLimits",
    "SignatureLimits",
    "TuplePosition",
    "TupleTable",
    "UseKind",
    "hash_values",
    "hashes_in",
    "in_tables",
    "make_processor",
    "ranges",
    "read_instances",
    "rows_in_sub_batches",
    "template_sql",
]

_HOMES = {
    "joins.budget.pairs": ("Overrun",),
    "joins.budget.limits": ("DEFAULT_RUN_LIMITS", "RunLimits"),
    "joins.classes": ("ClassRegistry", "Positions", "UseKind"),
    "joins.engines": ("DEFAULT_ENGINE", "ENGINES", "EngineName", "Processor", "make_processor"),
    "joins.memory.durations": ("UNBOUNDED", "Durations", "Largest"),
    "joins.memory.instance": (
        "INSTANCE_SCHEMA",
        "Instance",
        "read_instances",
        "rows_in_sub_batches",
    ),
    "joins.memory.instancetable": ("hash_values",),
    "joins.memory.slots": ("ranges",),
    "joins.memory.tupletable": ("ClassTuple", "TuplePosition", "TupleTable", "in_tables"),
    "joins.sequences.processor": ("DecidingProcessor",),
    "joins.sequences.runends": ("CountedEnds",),
    "joins.sequences.takenvalues": ("ALL_BUT", "hashes_in"),
    "joins.signature.limits": ("DEFAULT_LIMITS", "SignatureLimits"),
    "joins.sql.render": ("template_sql",),
    "templates.queryclass": ("QueryClass",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value
