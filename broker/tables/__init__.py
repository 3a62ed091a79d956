"""Tables: rows that matches write and ask, and the transactions in which they do.

    store         rows and, within a batch, their versions
    locks         what a transaction reads and may write; which transactions wait for which
    actions       what ON MATCH does, compiled
    groups        which statements run together, behind which stratum
    users         the statements of a set that use tables, as they come and go
    transactions  runs candidates in order, wave by wave

Invariant: what transactions leave depends on their order and on the rows before, never on waves.
`docs/rules.md` has the theory.

Begin with `transactions`.
"""
