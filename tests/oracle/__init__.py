"""The slow, obvious broker that judges the fast one.

Every query is run by itself over every document, by nested loops, as the semantics read: no
sharing, no index, nothing incremental.  It takes queries in normal form from `xscl` and builds
outputs with it, and takes what a document and a match are, and a match's id, from `broker`; paths,
values, operators, numbering, positions and lateness it does by itself.
"""

from __future__ import annotations

from oracle.matching import matches, matches_and_rows, matches_of
from oracle.numbering import number_documents
from oracle.transactions import InForce

__all__ = ["InForce", "matches", "matches_and_rows", "matches_of", "number_documents"]
