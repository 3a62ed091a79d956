"""Rules: candidates of queries that use tables, and the transactions in which they become matches.

    candidates  matches but for what they ask tables
    acting      runs the transactions of a batch as the strata are probed

Invariant: a candidate is a match, and acts, in the transaction of its position and end, or never.

Begin with `acting`.
"""
