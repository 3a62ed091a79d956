"""Documents: named, numbered and durable before anyone is told that they were accepted.

A document that comes in gets a number and an event time (`ingest`), and a key (`keys`) unless it
repeats one that is there already (`acceptedkeys`, `dedup`).  It is written to the `spool`, whose
files `segment` reads and writes; which there are says `listing`, by the `head` of each.
`ingest_thread` does this for many callers at once, `recorded` for files of document lines.
`wellformed` reads XML for whoever shows or searches it.

Invariant: a document that was acknowledged is on the disk, and document numbers have no gaps.

Begin with `ingest`, which is the way in, and `spool`, which is what everything else reads.
"""
