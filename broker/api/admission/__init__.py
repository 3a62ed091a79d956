"""Admission: how many callers the API has, how fast they ask, and who they say that they are.

`connections` bounds how many are open, `limits` the requests of each caller, and `sessions` are
what browsers have instead of a token; `browsers` has what these are for.  Which token may do what
is in `broker.api.access`.

Invariant: all of it is in memory and bounded; a restart begins anew.

Begin with `limits`.
"""
