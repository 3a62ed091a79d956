"""The registry: what was asked for, and by whom.

Queries with the history of their versions (`queries`), subscriptions with the values of their
parameters (`subscriptions`), tokens and streams.

Invariant: a change holds from a document number on; what was in force at a document can be told
for as long as the document is retained.

Begin with `queries`.
"""
