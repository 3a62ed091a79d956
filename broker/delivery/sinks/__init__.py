"""Matches for other programs: as rows of a table, messages of a bus, or records of a log.

`sink` says what is asked of each: `duckdb`, `postgresql`, `nats`, `mqtt`, `kafka`.  `channel` keeps
their connections and makes outcomes of what they raise; `dialling` is the guard before each
connection, `tls` what proves a name behind it; `rows` and `records` are what tables and buses have
of a match.

Invariants: `write` returns when the server has said that it has all matches; each is known by an id
that depends on its subscription and itself alone, so what is written again can be told, and in a
table is there once.  No error has a password in it.

Begin with `channel`.
"""
