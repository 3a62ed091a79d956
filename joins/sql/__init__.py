"""The engines of the paper: templates as conjunctive queries in SQL, run by DuckDB.

`schema` has the relations, `render` writes conjunctive queries as SQL, `viewcache` keeps slices of
the state by string value.  The default engine asks them for what a signature maps to.

Invariant: the tuples are those of the default engine.

Begin with `engine`.
"""
