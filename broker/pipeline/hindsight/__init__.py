"""Hindsight: what a text would have matched and just missed, told while it is typed.

`trial` has a query and its loosenings go over the newest documents, which `keptdocuments` has
parsed once.

Invariant: nothing here writes, and it runs in a process beside the broker.

Begin with `trial`.
"""
