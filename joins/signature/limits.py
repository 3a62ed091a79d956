"""The sizes at which the default engine works in pieces, forgets, and chooses anew.

They decide what the join costs in time and memory, never what it finds; tests set them so small
that a few documents reach each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from joins.memory.limits import DEFAULT_MEMORY_LIMITS, MemoryLimits

__all__ = ["DEFAULT_LIMITS", "SignatureLimits"]


@dataclass(frozen=True, slots=True)
class SignatureLimits:
    """The limits of one process: of a join, or of a shard."""

    memory: MemoryLimits = DEFAULT_MEMORY_LIMITS
    """Those of what it remembers."""

    pairs: int = 32_000
    """Pairs that are worked on at once: what describes them then stays in a core's cache.  On
    recorded news, 57 pairs a document, 20,000 to 80,000 take the same time, and 8,000 a tenth
    more."""

    found: int = 1_000_000
    """Partners that are listed at once (25 MB), where one value alone does not have more."""

    listed_hits: int = 4
    """Instances with a value that are listed without a look which of them are in time: to look
    costs what it costs to list as many."""

    tuples: int = 100_000
    """Tuples that pairs are expanded into at once, unless one pair alone has more: as many are
    found in vain when a class is asked for no more."""

    few_pairs: int = 100
    """Up to so many pairs are compared in one list: a call costs what a hundred pairs cost."""

    compiled_pairs: int = 5_000
    """Pairs that are compared at once from which on a compiled loop does it, where it can: array
    operations take some 10 ms for as many, and to read the loop takes half a second, once."""

    wide: int = 4_096
    """From more combinations of a left slot and a right one on, values are sorted instead."""

    sorted_slots: int = 1_000_000
    """Slots whose values are sorted at once, unless one pair alone has more."""

    listed_slots: int = 4_096
    """Equal pairs of slots that are listed one by one for a pair; more are named by value."""

    repeats: int = 64
    """Values of an instance under one variable from which on repeated ones are looked for: an
    instance with n equal values would otherwise be found n times by each of n equal ones."""

    entries: int = 200_000
    """Entries that the view keeps; then all are dropped and found again.  6,636 real pairs that
    share a category had 1,417 signatures."""

    entry_rows: int = 2_000_000
    """Tuples and equal pairs of all its entries together, some 250 MB; then the same.  Documents
    with many equal values have few signatures in common, and long ones."""

    assigned: int = 64
    """Rows of equal nodes, and classes that may hold, up to which a signature's tuples are found
    without a statement, in 3 to 10 µs a class, on the way to a class its square of tuples.  A
    statement a template takes milliseconds, and is faster for classes by the hundred."""

    step_tables: int = 12
    """Tables that a statement joins in one step: 64 value joins take as long with 8 to 16."""

    sample_instances: int = 4_000
    """Instances in the sample that anchors are chosen by, about: with a value that one in 1,000 has
    they make 16 pairs."""

    first_look: int = 128
    """New instances after which anchors are looked at again when classes have changed; then twice
    as many, and so on."""

    looks_apart: int = 8_192
    """New instances between two looks in the long run: one takes some 3 ms for 25 variables."""

    looked_at: int = 512
    """Anchors that are gone through at a time, some 20 ms, and no more than there are new
    instances: 50,000 different queries have thousands, and all of them at once took 0.7 s."""

    also_equal: int = 256
    """Pairs of one anchor that are held against what else its classes join by: to ask costs a
    tenth of a millisecond, and a pair that goes on a microsecond."""

    anchor_change: int = 4
    """An anchor is changed for one that makes this many times fewer pairs, not for less."""

    compiled_sets: int = 1_000
    """Sets of one variable's values from which on compiled loops look for similar ones, where they
    can: they take two seconds to be read, as long as array operations for a thousand documents."""


DEFAULT_LIMITS = SignatureLimits()
