"""The loops that step runs over their elements, compiled (`templates.compiling`).

They do for many runs what `chained.chains` does for them one by one.

    lines       elements that count from a document of the batch on come into lines, by end
    beginning   which elements begin a run of which statement
    conditions  whether a run may take an element
    heads       a run that has one element more
    contiguous  what a run takes in the next documents: STRICT, PARTITION
    nearest     what it takes under NEXT
    stepping    runs go on as far as they go; runs are kept that are before others

What the four that are called from outside call is a part of them: of an array that is handed on, or
read out of a tuple, it is counted otherwise who has it, which costs more than a step.

Invariant: a run goes on to what `chained.chains` finds for it, whatever order runs are stepped in.

Begin with `stepping`.
"""
