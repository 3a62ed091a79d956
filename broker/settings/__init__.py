"""Settings: what `xscl.toml` says, and how a broker's data directory and its databases are opened.

`config` is the table of what may be set, and `reader` fills it from the file; `feeds` makes feeds
of its tables, `directory` keeps the data private and one broker's, and `database` brings a database
to the format of this release.

Invariants: a setting that cannot work is refused when it is read, with its place in the file; a
database of a later format is refused, and left as it is.

Begin with `config`.
"""
