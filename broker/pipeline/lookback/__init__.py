"""Looking back: queries over documents that are there already, recorded or in the spool.

`replay` runs queries over files of document lines, through the pipeline of `replayrun`; `filling`
puts the lines into its spool, with Spark in a process of its own (`fillingprocess`).  `backfill`
finds what a query that is registered to look back matches among documents from before; `dryrun`
what one would have matched, in a process of its own, also at other `thresholds`.

Invariant: a broker would have found the same matches as the documents came.

Begin with `replay`.
"""
