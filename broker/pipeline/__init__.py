"""The pipeline: from the spool to the outbox, exactly once, on Spark or in this process.

Each batch of documents is evaluated (`evaluation`), joined (`joinstate`) and committed in one
transaction (`outbox`).  `spark` is the only module that knows Spark.

Invariant: the outbox's transaction is the commit; what remembers (state, snapshots, checkpoints)
may lag it and never leads it.

Begin with `steps`.
"""
