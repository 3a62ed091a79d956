"""A real broker that is killed at random moments, beside all that it is used for.

    traffic   publishers, registrations, subscriptions, copies: what they were told is the journal
    lives     the processes that are killed, and how
    verdict   what must be so in the end: by the journal, by the oracle, by what the receiver got

`executors` kills those of a Spark cluster instead, below a pipeline alone.

Begin with `__main__`: `python -m kills --minutes 60 --seed 7`, in `tests/`.
"""
