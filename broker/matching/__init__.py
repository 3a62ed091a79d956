"""Matching: witnesses in, matches out, without a clock, a disk or a network.

A batch of witnesses becomes instances of the join (`instances`); the tuples that the join finds
fan out to the queries that share a class (`fanout`) and become matches (`matches`) and published
documents (`publications`).  `queryset` holds the queries in force, `budget` and `accounts` what
each of them may cost.

Invariant: matches depend on documents and queries alone, not on batches, caches or other queries.

Begin with `engine`.
"""
