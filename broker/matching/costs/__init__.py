"""Costs: what each query has made, by document and by block, and which one is stopped for it.

`budget` has the bounds and counts against them, over `blocks` of documents.  `accounts` are those
of one batch: `spending` keeps what each query has spent in it, `charges` say who has to be asked,
and tuples that many queries share are counted in columns (`commoncounts`).  `balances` go on from
batch to batch, with what is `begun`, and pause queries while all of them remember too much.
`holders` tells the join which pairs are whose.

Invariant: where a query is stopped depends on it and the documents alone, not on what it shares
with others, nor on batches.

Begin with `budget`.
"""
