"""The default engine: pairs of instances looked up by their witness shapes and equal values.

`candidates` finds the pairs by anchors, `pair` says which of their slots have equal values, and
`view` keeps for each such signature the tuples of all classes, which `tuples` filters pair by pair;
docs/signatures.md says why that is exact.

Invariant: the tuples are those of a nested loop over all instances and classes.

Begin with `engine`.
"""
