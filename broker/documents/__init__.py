"""Documents: named, numbered and durable before anyone is told that they were accepted.

What comes in is given a key and an event time (`ingest`, `keys`), compared with what is there
(`dedup`), numbered and written (`spool`, of files that `segment` reads and writes).

Invariant: a document that was acknowledged is on the disk, and document numbers have no gaps.

Begin with `ingest`, which is the way in, and `spool`, which is what everything else reads.
"""
