"""Stage 2: remembers witnesses of documents, and joins new ones with them for all queries at once.

A query class (`classes`) is what queries share; an engine (`engines`) absorbs instances, probes for
tuples of all classes, and evicts what no class can use any more.

Its parts, in the order of the imports, with `files` for witnesses of a later process beside them:

    shards > engines > signature > sql > budget > classes > memory

Invariant: every engine finds the same tuples, in whatever batches instances come.  Nothing here
knows the language: relations and conjunctive queries are all there is.

Begin with `classes`, then `signature`.
"""
