"""What the join remembers of instances: their rows, times and values, and for how long.

Rows live in arrays that grow and are let go from the old end (`remembered`, `instancetable`);
long values are spilled to files (`spill`); `retention` says for how long an instance is kept, and
`eviction` lets it go.

Invariant: an instance is remembered for as long as some class can still use it; that it is
remembered longer changes cost, never tuples.

Begin with `remembered`.
"""
