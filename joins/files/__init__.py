"""Witnesses that outlive a process: their files, and the names of the variables in them.

`witnessfile` is the format; `variablenames` names variables, whose numbers mean nothing in another
process.

Invariant: a file that was written whole is read whole, or refused with what is wrong in it.

Begin with `witnessfile`.
"""
