"""The memory of the join: rows, times and values of instances, and for how long they are kept.

Rows live in arrays that grow at the end and are dropped at the front (`remembered`,
`instancetable`); strings go to files when they are many (`spill`).  `retention` says for how long
an instance is kept, and `eviction` drops it.  Values are looked up in sorted runs (`valueindexes`,
`valuelookup`), many of them by compiled loops (`kernels`).

Invariant: an instance is remembered for as long as some class can still use it; remembering it for
longer changes cost, never tuples.

Begin with `remembered`.
"""
