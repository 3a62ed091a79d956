"""The registry: what was asked for, and by whom.

Queries with the history of their versions (`queries`), subscriptions with the values of their
parameters (`subscriptions`) and when they want to be told (`cadence`), access tokens (`tokens`),
and who changed what (`audit`) are kept here; `registered` reads the texts as queries and makes
engines of them, `streams` says what there is of each stream.

Invariant: a change of queries or subscriptions is one revision, holds from a document number on,
and the registry can be read as it was at any revision.

Begin with `queries`.
"""
