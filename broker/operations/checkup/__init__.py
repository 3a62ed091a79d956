"""What `xscl doctor` looks at: this machine, and what the broker reaches from it.

Each look gives findings (`finding`): what was looked at, what was found, and a remedy where it is
not as it should be.

Invariant: looking changes nothing, and needs no running broker.

Begin with `machine`; `cluster` looks at the settings of Spark, `network` at the mail server and the
feeds, `store` at what executors read, where it leaves nothing behind.
"""
