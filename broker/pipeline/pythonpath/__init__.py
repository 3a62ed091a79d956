"""Python's path in Spark's processes: what they run first, before any module of Spark.

Nothing imports this package: its directory is on their path (`broker/pipeline/jvm.py`), where
Python finds `sitecustomize`.

Invariant: without it everything does the same, and takes more memory.

Begin with `sitecustomize`.
"""
