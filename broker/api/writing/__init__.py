"""Writing: help for whoever writes a query, in the page's editor or with a program.

`language` answers what `xscl.editing` says of a text; `vocabulary` has the names that recent
documents have, which it proposes.  `trials` has a process look what a text would match.

Invariant: nothing here changes anything, and what a text says is found out in bounded time.

Begin with `language`.
"""
