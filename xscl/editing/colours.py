"""Which parts of a text are what, for editors that colour by meaning: as Pygments has it.

One lexer (`xscl.highlight`) says it to terminals, documentation, the web page and editors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pygments.token import Comment, Keyword, Name, Number, Operator, String, _TokenType

from xscl.highlight import XsclLexer
from xscl.path import Span

__all__ = ["COLOURS", "coloured"]

COLOURS: dict[_TokenType, str] = {
    Keyword: "keyword",
    Keyword.Type: "type",
    Name: "property",
    Name.Function: "function",
    Name.Variable: "variable",
    Name.Variable.Global: "parameter",
    String: "string",
    Name.Entity: "string",
    Number: "number",
    Operator: "operator",
    Comment: "comment",
}
"""How the Language Server Protocol calls kinds of tokens; others are as their parents."""


def coloured(text: str) -> Iterator[tuple[Span, str]]:
    """Yield the parts of a text that have a colour, in order; none goes over the end of a line.

    >>> text = "news//item->a -- all"
    >>> [(text[span.start:span.end], colour) for span, colour in coloured(text)][-2:]
    [('a', 'variable'), ('-- all', 'comment')]
    """
    for at, kind, value in XsclLexer().get_tokens_unprocessed(text):
        colour = next((COLOURS[each] for each in reversed(kind.split()) if each in COLOURS), None)
        if colour is not None:
            for line in re.finditer(r"[^\r\n]+", value):
                yield Span(at + line.start(), at + line.end()), colour
