"""The engines of the paper: templates as conjunctive queries in SQL, run by DuckDB.

They are there for reference: for `xscl replay`, tests and benchmarks.

Invariant: equal tuples to those of the signature engine.

Begin with `engine`.
"""
