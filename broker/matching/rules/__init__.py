"""Rules: candidates of queries that use tables, and the transactions in which they become matches.

    candidate   tuples that are a match, if what they ask of tables holds
    candidates  those of a batch, and their turns in transactions
    judged      statements with rows or limits: what is given of their matches in a transaction
    acting      runs the transactions of a batch as the strata are probed

Invariant: a candidate is a match, and acts, in the transaction of its position and end, or never.

Begin with `acting`.
"""
