"""The page for people: shows what runs, what was found and what fails, and has forms to change it.

`pages` answers requests with templates (`rendering`); `pagedata` makes the values that these show,
which are bounded, newest or worst first; `historypages` and `historydata` do so for what was.
`livepage` tells pages when to ask again.  `planpages` and `planpicture` draw what is evaluated.
`editpages` has the pages on which queries are written, `forms` does what forms ask for, as the API
would.  `coloured` has queries and XML as markup.

In `assets/`, `codemirror.js` and `xscl.js` are made: by `editors/page/` and `editors/grammars.py`.
`editor.js` is an editor for any page, the other scripts are of one page each.

Invariants: what others have written is text on every page, no page asks for anything elsewhere, and
each can be read and its forms sent without scripts.

Begin with `pages`.
"""
