"""The demonstration: a small world of feeds around a real broker, on loopback.

`world` starts feeds, receivers and the broker; `play` is what happens in it, `screen` shows it.

Invariant: the broker is the one that users run, in a process of its own; only its world is made up.

Begin with `play`.
"""
