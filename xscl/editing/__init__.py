"""Help for editors: what may stand here, what a word means, where a variable is bound.

`mentions` has the names of a text with their places: variables, and streams that are published and
read; renaming and going to a definition are questions to it.  `completion` says what may stand at a
place, `hover` what a word means, `fixes` which edits would mend a diagnostic, `colours` which parts
of a text are what.  `server` speaks of all this in the Language Server Protocol (`xscl lsp`).

Invariants: nothing here raises, whatever the text; offsets are characters of the text; every
answer but the server's is a function of texts, so editors and the web page have one source.

Begin with `mentions`.
"""
