"""Decisions: what NEXT, UNLESS and NOT give, once, at a document number that documents determine.

    clock       the steps of the newest event time: which document settles a time
    contender   a tuple of an operand, with its rows
    timeline    contenders by key and end
    conditions  what rows must have in common, and what is tested of them
    evaluation  one decision over its timelines
    processor   a join with decisions among its classes

Invariant: what is decided at positions up to a document depends on the documents up to it, never on
batches.  `docs/decided.md` has the theory.

Begin with `evaluation`.
"""
