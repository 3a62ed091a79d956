"""The default engine: pairs of instances are looked up by their witness shapes and equal values.

`candidates` finds the pairs by anchors, `pair` computes the signature of each, many of them by a
compiled loop (`kernels`), and `view` has the tuples of every signature that has occurred;
`docs/signatures.md` says why that is exact.

Invariant: the tuples are those of a nested loop over all instances and classes.

Begin with `engine`.
"""
