"""The service: starts, connects and stops what a running broker consists of.

`lifecycle` holds the whole.  Beside the pipeline it plans the next segment (`planning`), polls
feeds (`polling`), tells of queries that are paused (`pausing`) and keeps the spool small
(`maintenance`); `streaming` is its Spark, and `startup` lets a stop overtake a start.

Invariant: what was started is stopped, in the opposite order, whatever fails in between.

Begin with `lifecycle`.
"""
