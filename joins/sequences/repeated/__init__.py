"""Repetitions whose runs are listed, found one by one or in match graphs.

    lefts       what stands before repetitions, kept once for all that look it up alike
    sharedlefts all of that, and what one repetition has no head for
    runsteps    whether a run may take an element, and what it becomes
    runs        one repetition, batch by batch
    rungraph    runs under ANY as the paths of a graph: counted, then listed
    graphruns   one repetition in such graphs

Invariant: which lefts have a head changes what a repetition costs, never its runs.

Begin with `runs`.
"""
