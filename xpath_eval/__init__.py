"""Stage 1: every tree pattern of every query in one automaton; a document becomes its witnesses.

Queries are registered in a `catalog`, which makes a plan of their patterns, edges and values.  An
`evaluator` runs a plan over documents: the `automaton` over a document's structure, once for each
that it has not met, conditions and values over its text (`walk`).  `stage` does so for Arrow
batches of documents, `columns` for a batch that one plan after another is tried on.

Invariant: a document's witnesses depend on the document and the plan alone; what an evaluator has
met before changes their cost.

Begin with `stage`.
"""
