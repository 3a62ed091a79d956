"""Planning: all decisions by number, with what is read for them and what is asked of it.

    plan     decisions and their rules, as they come and go
    seats    a stream in an operand of a decision, and what its rows are asked
    names    streams by number, looked up many at a time
    asked    the rules, in columns
    terms    which values rows have, and where
    ascents  in what steps lefts are served
    readers  the seats of a stratum by the streams that they read
    outputs  what classes hand on of decisions

Invariant: a number is never given twice.

Begin with `plan`.
"""
