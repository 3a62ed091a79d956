"""The store: what executors read and write, in a directory or an object store.

`objects` are bytes under names, at an address that `address` reads; `runs` are tables and values of
one run of shards, `packs` the documents and plans that tasks of evaluation read.  `frames` shows
what shards remember to whoever uses Spark.

Invariants: everything here can be made again from the spool and the registry; a name is told to
others only when its object is there, whole, and no object ever changes.

Begin with `objects`.
"""
