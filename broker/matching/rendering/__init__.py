"""Rendering: what is found of a query becomes its matches, with ids, outputs and final lines.

Tuples of one match are grouped in columns (`matchrows`), by where a query has its nodes (`form`),
and what they compare is spelled for many at once (`witnesstexts`).  A match is a row whose line is
put together from fragments (`lines`): of documents (`leaf`, read from their `trees`), of queries,
of assignments; an output is made once for all who ask for the same (`outputs`).  `matchlines` says
a line to people.

Invariant: a line and an id depend on the match alone, not on what is rendered beside it.

Begin with `matches`.
"""
