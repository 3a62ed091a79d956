"""Matching: witnesses in, matches out, without a clock, a disk or a network.

A batch of witnesses becomes instances of the join (`absorption`).  The tuples that the join finds
fan out to the queries that share a query class (`fanout`), by looking up what subscriptions ask of
them (`boxes`).  What is found stays in columns (`hits`) until a line is spelled: tuples become
instances that further operators read (`innertuples`), documents that queries publish
(`publications`), and matches (`rendering`), once tables allow it (`rules`).  `queries` holds the
queries in force, `costs` what each of them may cost.

Invariant: matches depend on documents and queries alone, not on batches, caches or other queries.
Only a bound on what all queries together remember may pause a query because of others.

Begin with `engine`.
"""
