"""Asking about queries: what they become, cost, share and match, and why documents do not match.

`questions` is about one query, `plans` about all that are evaluated together.  `dryruns` starts a
process that looks what a query would have matched.

Invariant: nothing here changes anything.

Begin with `questions`.
"""
