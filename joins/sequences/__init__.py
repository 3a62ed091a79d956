"""Decisions: what NEXT, UNLESS and NOT give, once, at a document number that documents determine.

    clock       the steps of the newest event time: which document settles a time
    timeline    what stands under a key, by end, in columns: the first behind a time, the last
                before it, all between two; whatever reads instances in order can use it
    waiting     what waits until a time is settled: rows, and elements one by one
    planning    a room: all decisions by number, which streams are read for what, what is asked
    contenders  tuples of operands, as rows of numbers
    conditions  what is asked of rows, in columns
    pairs       the pairs of NEXT and of FOLLOWED BY ... UNLESS
    decidedtuples
                what is decided, as rows of numbers
    served      how far lefts are served, where not all rights compete
    steps       what a right serves where thresholds or windows are data
    absence     which decided tuples are taken away, and for which data
    takenvalues the values for which they are
    evaluation  all of this, batch by batch
    processor   a join with decisions among its classes

and the runs of `+` beside them (`docs/repetition.md`):

    runparts    tuples of operands, and runs as far as they have come
    runconditions
                what a repetition asks of what stands before, and of each element
    repeated    a room: one repetition, batch by batch, and what stands before several
    counting    a room: runs that are counted, or drawn as graphs, and never listed
    chained     a room: runs over a whole chain under MATCH
    absentunits what UNLESS takes runs away for
    runrows     runs as instances of the join
    runevaluations
                what finds the runs of a decision: which of several does it
    rowreaders  who takes which rows: as columns, one by one, or later
    deferred    rows that wait for who cannot find anything yet
    awake       who of these has something to decide in a batch
    repetitions all of them, by class

Invariant: what is decided at positions up to a document depends on the documents up to it, never on
batches.  `docs/decided.md` has the theory.

Begin with `evaluation`.
"""
