"""The join over N processes: instances go to shards by their values, and shards carry out orders.

`driver` routes instances and gives orders; `judging` stops uses that go over the budget; `pieces`
are the files in which instances go to a shard; `orders` has the values that pass between them;
`shard` carries orders out.

Invariant: a tuple is found by exactly one shard, and a shard's answer depends on its files and its
order alone.

Begin with `driver`.
"""
