"""What a document may cost the join: pairs are counted before they are made.

Where an index says how many pairs a document makes the count is exact; elsewhere a frequency
sketch says what has to be counted.

Invariant: what is stopped depends on documents and classes alone, not on batches or on the engine.

Begin with `pairs`.
"""
