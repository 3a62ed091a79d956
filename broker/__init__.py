"""The running service: registry, spool, Spark pipeline, outbox, delivery, command line."""
