"""Runs over chains that step on together, in columns, by compiled loops.

    layout       how elements, heads and programs stand in arrays
    statements   chains of one table, and their programs (`templates.chaincode`)
    batchrows    rows of all streams of a chain, of one batch
    elements     such rows as columns of numbers
    loops        the loops, a room of their own
    charges      what a tuple would be charged for them
    parts        elements as parts of runs
    keptlines    lines: elements under one key, by end
    keptelements elements in columns, until no run can take them
    completeruns runs that are complete in a batch, by their last heads
    runtable     all chains whose elements are alike, batch by batch
    columnchains each of them
    growing      arrays with room behind what they hold
    forgetting   what is left of columns when elements are forgotten
    followed     complete runs, from their last heads back
    found        runs that are complete, of which is made what is asked
    folds        values of FOLD of these, for those who show them
    ends         runs that are complete, and only counted
    compilation  has the loops compiled
    sample       what they are compiled for

Invariant: what is found is what `chained.chains` finds, which does what is no program.

Begin with `runtable`.
"""
