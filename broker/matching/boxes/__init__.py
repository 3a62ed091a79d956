"""Boxes: which subscriptions admit a tuple, found without a look at each of them.

A tuple is a point: its values at the places that are tested, its span, its smallest docid
(`points`, of `operands` in columns).  What a subscription asks of it is a box (`index`), and boxes
that test the same places have one form (`form`, `forms`).  docs/tuples.md has the theory.

Invariants: what is found does not depend on the order in which boxes came, nor on which others
there are; what a tuple costs does not grow with the boxes that do not admit it.

Begin with `index`.
"""
