"""The loops that step runs over their elements, compiled (`templates.compiling`).

Each does for many runs what `chained.chains` does for one by one, which is the judge.

    lines       elements that count from a document of the batch on come into lines, by end
    beginning   which elements begin a run of which statement
    conditions  whether a run may take an element
    heads       a run that has one element more
    contiguous  what a run takes in the next documents: STRICT, PARTITION
    nearest     what it takes under NEXT
    stepping    runs go on as far as they go; runs are kept that are before others

What the four that are called from outside call is a part of them: of an array that is handed on, or
read out of a tuple, it is counted otherwise who has it, which costs more than a step.
"""
