"""The budget of a document: its pairs are counted before they are made.

In one process the index of values says how many pairs a document makes.  The driver of shards has
no such index: a frequency sketch tells it which documents to count in the shards.

Invariant: the uses that are stopped depend on documents and classes alone, never on batches or
shards.

Begin with `pairs`.
"""
