"""Counting: runs, and chains under MATCH ANY, that are counted or drawn as graphs, never listed.

    lanes      elements that one run may have, each with the elements that may come next
    ways       the ways to an element that came last, counted without drawing them
    drawing    runs that have been found, as a graph of documents
    drawnruns  runs of one repetition as such graphs, or as a number
    sums       exact sums of what stands below a number, for elements that come and go
    spread     ways between elements that need no step between any two
    window     a window in columns, whose ways a compiled loop counts (`kernels`, `compilation`)
    plain      a lane whose runs are counted so
    plainruns  such lanes by the values of SAME
    inorder    elements that come in order, rows of the join until they are numbers
               (`rowelements`)
    found      what is found: graphs, or ends of runs in columns
    counted    one repetition, batch by batch
    chaingraph elements of a chain under MATCH ANY at their steps, with the edges between them
    chainreading  what is read of such elements, one by one or in columns
    chaincolumns  those that come in order, rows of the join until they are numbers
    chainpaths its paths that are matches
    chainways  how many of them end with an element, as numbers (`chainsums`, `chaintriples`)
    chainkeys  by what value of the last element they are told apart
    chains     one such chain, batch by batch

Invariant: each match is counted once, with the last of its places that enters.

Begin with `counted`.
"""
