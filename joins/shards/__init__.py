"""The join over N processes: instances are routed to shards by value, shards answer orders.

`driver` routes and asks, `pieces` are the files in which instances go to a shard, `orders` what a
shard is asked, `shard` answers.

Invariant: a tuple is found by exactly one shard, and a shard's answer depends on its files and
its order alone.

Begin with `driver`.
"""
