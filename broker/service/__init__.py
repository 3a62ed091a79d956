"""The service: starts, connects and stops what a running broker consists of.

`lifecycle` holds the whole; `planning`, `pausing`, `polling` and `maintenance` are what it does
beside the pipeline, `startup` what it does before.

Invariant: what was started is stopped, in the opposite order, whatever fails in between.

Begin with `lifecycle`.
"""
