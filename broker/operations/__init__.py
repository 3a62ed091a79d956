"""Operations: what an operator sees and does, from logs and metrics to backups and the doctor.

`log` writes what happens, `metrics` and `figures` count it, `checkup` looks at the machine for
`xscl doctor`, `backup` copies the data of a running broker, and `restore` puts a copy in its place.

Invariant: no line of the log holds a secret.  A copy is as secret as the data directory: it has the
keys that webhooks are signed with, the passwords of feeds, and hashes of tokens.

Begin with `log` and `metrics`.
"""
