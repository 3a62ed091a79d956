"""The default engine: pairs of instances looked up by their witness shapes and equal values.

`candidates` finds the pairs by anchors, `pairsignature` computes what a pair's equalities mean for
all classes at once, `signatureview` remembers the answers; `docs/signatures.md` says why that is
exact.

Invariant: equal tuples to those of a nested loop over all instances and classes.

Begin with `engine`.
"""
