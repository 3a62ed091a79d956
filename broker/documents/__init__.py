"""Documents: named, numbered and durable before anyone is told that they were accepted.

What comes in is given a key (`keys`) and an event time, compared with what is there already
(`dedup`), numbered (`ingest`) and written (`spool`, of files that `segment` reads and writes).
`ingest_thread` does this for many callers at once, `recorded` for files of document lines.

Invariant: a document that was acknowledged is on the disk, and document numbers have no gaps.

Begin with `ingest`, which is the way in, and `spool`, which is what everything else reads.
"""
