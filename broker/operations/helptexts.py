"""What each figure of `/metrics` is, in the words of docs/operations.md."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["HELP"]

HELP: Mapping[str, str] = {
    "build_info": "1, with the versions of the broker and of what it runs on",
    "process_resident_bytes": (
        "resident memory: of the broker, of Spark's java and of its Python workers; pages that "
        "processes share are counted in each"
    ),
    "process_cpu_seconds_total": "processor time of the same",
    "process_open_files": "files and connections that the broker has open",
    "process_open_files_max": "how many it may have",
    "query_matches_total": (
        "matches of a query since the start; for the fifty queries with most of them"
    ),
    "query_budget_spent_ratio": (
        "how much of its budget a query has used, as above; for the fifty queries that have used "
        "most"
    ),
    "late_documents_total": (
        "documents that came too late to be joined with anything, since the start; for the "
        "hundred streams with most of them"
    ),
    "settled_documents_total": (
        "documents that came after their time was settled for a query with NEXT, UNLESS or NOT, "
        "which may have answered without them, since the start; for the hundred streams with most "
        "of them"
    ),
    "ready": "1 where documents are taken and evaluated, else 0, as /readyz says it",
    "uptime_seconds": "how long the process has run",
    "documents_evaluated_total": "documents evaluated; ticks of the clock are none",
    "documents_waiting": "the lag in documents: accepted and not yet evaluated",
    "lag_seconds": "the lag in time: how long ago the oldest of these arrived",
    "matches_total": "matches found",
    "budget_pauses_total": "queries that were paused because they went over their budget",
    "budget_spent_ratio": (
        "how much of budget.matches_per_1000_documents, or of "
        "budget.output_bytes_per_1000_documents, the query has used that has used most; 1 is "
        "where it is paused"
    ),
    "dead_letters_total": "documents that could not be evaluated, since the start",
    "dead_letters": "the same, all that are kept",
    "segments_accepted": "the number of the newest segment on the disk",
    "segments_committed": "the number of the last segment that is done",
    "spool_segments": "files of the spool",
    "spool_bytes": "what they take of the disk",
    "dedup_entries": "documents that would be recognised if they were sent again",
    "dedup_bytes": "the memory that this takes, 28 bytes each",
    "ingest_commit_seconds": "to write a group of documents to the disk",
    "spool_wait_seconds": "from a document's arrival until its batch is taken up",
    "evaluation_seconds": "to evaluate a batch",
    "raw_shape_hits_total": "evaluated documents whose structure a worker knew",
    "raw_shape_misses_total": (
        "those whose structure it did not know: only these go through the automaton"
    ),
    "raw_shape_evictions_total": "structures that were forgotten because a worker's cache was full",
    "witness_shape_hits_total": "evaluated documents whose witnesses were known, up to values",
    "witness_shape_misses_total": (
        "those of which they were worked out: new structures, and new outcomes of conditions on "
        "text"
    ),
    "witness_shape_evictions_total": "outcomes that were forgotten because a cache was full",
    "automaton_states": "the states of the automaton, in the worker that has most",
    "automaton_evictions_total": "states that were forgotten because there were too many",
    "join_seconds": "to join it",
    "join_documents": (
        "documents that the join remembers, up to twice those that a query can use and 16,384 "
        "more, with those that queries publish and tuples of inner operators"
    ),
    "join_evicted_total": "those that it has forgotten, because no query could join them any more",
    "join_values": "their values that queries compare",
    "join_shapes": "their witness shapes",
    "join_layouts": "the same, by what was compared when they came",
    "join_signatures": "pair signatures whose matching queries are known",
    "join_signature_hits_total": "looked-up signatures that were known",
    "join_signature_misses_total": "those that the templates' queries were asked for",
    "join_memory_bytes": (
        "the memory that all this takes; 200 to 250 bytes a document of five values, and 256 MB"
    ),
    "join_decisions": "decisions that its queries ask for: what is next, what is absent",
    "join_undecided": "tuples of operands that wait until the clock settles them",
    "join_spilled_bytes": (
        "what of it is in files, in spill/ of the data directory; of shards, where the system "
        "has its temporary files"
    ),
    "commit_seconds": "to commit what was found",
    "ingest_to_outbox_seconds": "a document's whole way, from its arrival to the commit",
    "outbox_to_delivery_seconds": (
        "from the commit of a match until its receiver has it; digests wait on purpose"
    ),
    "deliveries_held": "1 where the broker is a copy and delivers nothing, else 0",
    "feeds_waiting": "feeds that were never checked",
    "feeds_ok": "feeds that are as they should be",
    "feeds_quiet": "feeds with nothing new for unusually long",
    "feeds_failing": "feeds that cannot be read at present",
    "feeds_gone": "feeds that are no more",
    "feeds_paused": "feeds that are not checked",
    "feed_items_total": "entries taken in from the feeds that are subscribed",
    "feed_revisions_total": "edits of entries that were seen",
}
"""By the name of the metric, without `xscl_`."""
