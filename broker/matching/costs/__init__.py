"""Costs: what each query has made, by document and by block, and which one is stopped for it.

`budget` has the bounds and counts against them, over `blocks` of documents; `spending` keeps what
each query has spent, `accounts` also what all of them remember.  Tuples that many queries share are
counted in columns (`commoncounts`), and `holders` tells the join which pairs are whose.

Invariant: where a query is stopped depends on it and the documents alone, not on what it shares
with others, nor on batches.

Begin with `budget`.
"""
