"""Alerts people can live with: which matches go in one message, and which messages are sent.

A lane whose subscription has a key or a throttle, or only collects, makes *messages* of its
matches: each match goes into the message of its key that waits and has room, or begins one
(`plan`).  A message is a delivery row, due when the subscription's cadence says
(`broker.registry.cadence`).  When its turn comes it is begun, or kept without being sent, with the
reason.  `key` reads the key of a match, `messages` does this in the file of deliveries.

Invariants: each match that the cursor has passed is in one delivery row; what was begun never
changes; what is decided depends on rows in the file and the time alone, so a restart changes
nothing.

Begin with `plan`.
"""
