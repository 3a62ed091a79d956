"""Chains: runs over a whole chain under MATCH, from its first document to its last.

    chains      under NEXT, PARTITION and STRICT: from one document to any that may come next
    anychains   under ANY: back from what completes them
    chainelements  what both read, and counted chains too, and elements that wait
    chainsteps  what a step asks of a run and an element, compiled
    neighbours  what two elements that stand next to each other say of themselves
    chainparts  runs as far as they have come

Invariant: which runs there are up to a position depends on the documents up to it, not on batches.

Begin with `chains`.
"""
