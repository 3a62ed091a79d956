"""The page for people: shows what runs, what was found and what fails, and changes nothing.

`pages` answers requests with templates; `pagedata` makes the values that these show, which are
bounded, newest or worst first.

Invariant: what others have written is text on every page, and no page asks for anything elsewhere.

Begin with `pages`.
"""
