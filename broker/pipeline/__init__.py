"""The pipeline: from the spool to the outbox, exactly once, on Spark or in this process.

Each batch of documents is evaluated (`evaluation`), joined by the engine in use (`joinstate`) and
committed in one transaction (`outbox`).  Only `spark` and `spoolsource` know Spark, whose
Python workers are begun by `workers` or `shardworkers`, and have `pythonpath` on their path;
`lookback` runs the same steps over documents that are there already.

Invariant: the outbox's transaction is the commit.  What is remembered beside it, as the join's
state and its snapshot, lags it and never leads it; Spark's checkpoint decides nothing.

Begin with `steps`.
"""
