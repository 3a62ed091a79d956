"""Runs over chains that step on together, in columns, by compiled loops.

    layout       how elements, heads and programs stand in arrays
    statements   chains of one table, and their programs (`templates.chainprograms`)
    batchrows    rows of all streams of a chain, of one batch
    elements     such rows as columns of numbers
    kernels      the loops
    parts        elements as parts of runs
    runtable     all chains that read the same elements, batch by batch
    found        runs that are complete, of which is made what is asked
    compilation  has the loops compiled
    sample       what they are compiled for

Invariant: what is found is what `chained.chains` finds, which does what is no program.

Begin with `runtable`.
"""
