"""The sizes at which the driver of shards writes, merges and asks.

They decide what the join costs in time and memory, never what it finds; tests set them so small
that a few documents reach each of them.
"""

from __future__ import annotations

from dataclasses import dataclass

from joins.signature.limits import DEFAULT_LIMITS, SignatureLimits

__all__ = ["DEFAULT_SHARD_LIMITS", "ShardLimits"]


@dataclass(frozen=True, slots=True)
class ShardLimits:
    """The limits of a join over shards."""

    shard: SignatureLimits = DEFAULT_LIMITS
    """Those of each shard; the driver's where it does what an engine does in one process."""

    pending_rows: int = 20_000
    """Instances that wait to be written while nothing is asked, by shard: worth a file."""

    pending_bytes: int = 256 << 20
    """And so many bytes of them wait at most in all, beside those of one call."""

    compacted_pieces: int = 8
    """Pieces that are written anew at a time, as one, for what is left of them."""

    pieces: int = 24
    """Small pieces of a shard; then the newest are merged, so a row is merged a few times."""

    piece_rows: int = 500_000
    """Rows of a merged piece, at most; with more than half of them it is not small: some 200 MB are
    in memory at once where pieces are merged or read."""

    looked_every: int = 1_000
    """Instances after which it is looked again which are of use no more: it costs by the shape."""

    unasked_rows: int = 50_000
    """Instances for each shard that come while nothing is asked, as where all is remembered anew;
    then shards take them on, so that the next batch does not wait for all: a quarter of a second's
    work.  With a tenth of them Spark's own part of each order takes more than the shards'."""

    taken_on_rows: int = 65_536
    """Earlier instances that a shard takes on in one task while nothing is asked, a fifth of a
    second's work: tasks of the stream wait for such tasks."""

    warm_rounds: int = 8
    """Rounds of tasks in which no instance is missing, behind which all processes have them: of
    two, which Spark gives tasks as it comes, one has not been asked in one case of a hundred."""

    first_asked: int = 16
    """New instances of which shards are asked at once whether they go over the budget, then four
    times as many, and so on: the first of them closes a class that explodes, and most do not."""

    counted_instances: int = 20_000
    """Neighbouring counts are put together up to so many instances: few are left of any number."""

    finished_bytes: int = 256 << 20
    """Bytes of lines that all shards together make of a batch at most; where one of them has more
    than its share, the driver makes them, in sub-batches.  Spark takes a gigabyte of results."""

    pair_tuples: int = 100
    """Tuples of one pair in a class up to which a batch is joined whole."""

    listed_tuples: int = 1_000_000
    """Tuples that a sub-batch has at most, unless one instance alone has more: some 200 MB of
    rows."""


DEFAULT_SHARD_LIMITS = ShardLimits()
