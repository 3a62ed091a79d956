"""What a query becomes, for people and programs: `survey` finds it out, the rest prints it.

`model` holds what was found; `text` (of a query) and `overview` (of all) print it for
people, `data` for programs, and `graphs` draws it.

Invariant: a query is compiled as the engine compiles it, and nothing is evaluated or kept.

Begin with `survey`.
"""
