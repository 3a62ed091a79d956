"""The queries in force: they come and go while documents flow, and nothing is rebuilt for it.

`registration` says what is registered and what changes.  A query becomes a `member`, compiled once;
what its operators hand on to each other, for all its assignments, is in `handedon`.  Many at once
are taken in without a look for cycles of objects (`collecting`).  `members` has
all of them, to be asked; `classuses` tells the join and the fan-out which classes they use.

Invariant: removing a query undoes exactly what adding it did.

Begin with `queryset`.
"""
