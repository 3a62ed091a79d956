"""Operations: what an operator sees and does, from logs and metrics to backups and the doctor.

`log` writes what happens, `metrics` and `figures` count it, `checkup` looks at the machine for
`xscl doctor`, and `backup` copies the data of a running broker.

Invariant: no line of the log holds a secret.  A backup holds what the data directory holds: the
keys that webhooks are signed with, and hashes of tokens.

Begin with `log` and `metrics`.
"""
