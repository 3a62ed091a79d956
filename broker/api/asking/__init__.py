"""Asking about queries: what they become, cost, share and match, and why documents do not match.

`questions` answers of one query, `plans` of all that are evaluated together.  `dryruns` has a
process look what a query would have matched.

Invariant: nothing here changes anything.

Begin with `questions`.
"""
