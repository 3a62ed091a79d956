"""What a document may cost the join: pairs are counted before they are made.

Where an index says how many pairs an instance makes the count is exact; elsewhere a frequency
sketch says which instances have to be counted.  What would not fit into memory at a time is joined
in sub-batches.

Invariant: which uses of a class are stopped, and where, depends on the documents and on these uses
alone, not on batches, shards or the engine.

Begin with `pairs`.
"""
