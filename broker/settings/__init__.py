"""Settings: what `xscl.toml` says, and how a SQLite database of the broker is opened.

`config` reads the file, `feeds` makes feeds of its tables, and `database` brings a database to the
format of this release.

Invariants: a setting that cannot work is refused when it is read, with its place in the file; a
database of a later format is refused, and left as it is.

Begin with `config`.
"""
