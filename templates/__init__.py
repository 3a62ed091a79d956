"""What queries have in common: from a query to its clauses, query classes and templates.

`plain` takes out of a query what is sugar over joins: units, SAME (`keys`), WITHIN, WHERE
(`predicates`). `compiler` makes clauses of what is left (`clause`), with `clausecompiler` for what
is joined (`tuplestreams`: what it hands on), and `decisioncompiler` for what is decided (`ordered`,
`decision`; `founddata` and `helddata`: in what subscriptions may differ there).  A clause has a
query class (`queryclass`), and what is the query's own: data that its tuples are tested against,
the `box`.  A class starts as a join graph, whose minor (`joingraph`) has a form, the template
(`template`); engines evaluate that as conjunctive queries (`conjunctive`).
The sets of words that a class compares are made of many texts at once (`wordcolumns`), with the
extra `fast` by compiled loops (`wordkernels`); `compiling` says how loops are compiled, also those
of `joins`, and `compilation` by whom.  What clauses have in common is one object (`heldonce`).

Invariant: what is compiled depends on the query, its registration point, the variables of the
catalog, and the streams that are published; on no other query.

Begin with `compiler`.
"""
