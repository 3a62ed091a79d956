"""The join over N processes: instances are routed to shards by value, shards answer orders.

`driver` routes instances (`routing`), writes them into immutable pieces (`pieces`) and gives orders
(`orders`); `shard` answers them, with the tuples that it owns (`ownership`).

Invariant: each tuple is given out by one shard, and a shard's answer depends on its pieces and its
order alone.

Begin with `driver`.
"""
