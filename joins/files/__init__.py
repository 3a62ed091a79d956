"""Witnesses that outlive a process: their files, and the names of the variables in them.

Invariant: a file that was written whole is read whole, or refused with what is wrong in it.

Begin with `witnessfile`.
"""
