"""Settings: what `xscl.toml` says, and how a SQLite database of the broker is opened.

Invariant: a setting that cannot work is refused when it is read, with its place in the file.

Begin with `config`.
"""
