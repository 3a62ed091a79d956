"""Finishing: what a shard makes of tuples where it finds them, up to the lines of matches.

`readers` are those for whom it does, chosen by the driver and sent to all shards.  The `finisher`
of a shard fans its tuples out to them, and makes their matches (`rendering`).  What queries are to
be charged with for it is noted in a `bill`.

Invariant: the driver takes all that shards have made for a batch, and it is what itself would have
made; or it takes nothing of it, and is given the tuples.

Begin with `readers`.
"""
