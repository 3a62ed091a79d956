"""What the join remembers of instances: their rows, times and values, and for how long.

Times and hashes of values lie in columns that grow at the end and shrink at the front
(`remembered`, `instancetable`, `column`); whole rows are spilled to files once they take too much
memory (`spill`).  An instance is kept for the widest window that it can fill, and then let go
(`eviction`).

Invariant: an instance is remembered for as long as some class can still use it; that it is
remembered longer changes cost, never tuples.

Begin with `remembered`.
"""
