"""Repetitions whose runs are listed, found one by one or in match graphs.

    lefts       what stands before repetitions, kept once for all that look it up alike
    ownlefts    of that, what one repetition has no head for
    elements    the elements of repetitions, kept once for all that look them up alike
    readers     who reads these, and where something stands
    shared      both sides of all repetitions
    runsteps    whether a run may take an element, and what it becomes
    runs        one repetition, batch by batch
    rungraph    runs under ANY as the paths of a graph: counted, then listed
    graphruns   one repetition in such graphs

Invariant: which lefts have a head, and whom an element wakes, changes what repetitions cost, never
their runs.

Begin with `runs`.
"""
