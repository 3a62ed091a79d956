"""The grammar of TextMate, from the rules of `xscl.highlight`: VS Code and others colour by it.

Such a grammar is matched line by line: a rule sees one line and no other.  So what may go over
lines is a pair of a beginning and an end: comments, constructors, strings, and SELECT at the end
of a line before a constructor.  Each state also keeps what Pygments gives no colour, so that the
next rule always fits where the last one ended, as there.  What differs: words of one keyword on
two lines, a number and its unit, an arrow and its variable; and a string that does not end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pygments.token import Token

from xscl.highlight import XsclLexer

__all__ = ["SCOPES", "grammar"]

SCOPES = {
    Token.Comment.Multiline: "comment.block",
    Token.Comment.Single: "comment.line.double-dash",
    Token.Keyword: "keyword.control",
    Token.Keyword.Type: "keyword.other.unit",
    Token.Literal.Number: "constant.numeric",
    Token.Literal.String: "string.quoted",
    Token.Literal.String.Escape: "constant.character.escape",
    Token.Name: "entity.name.tag",
    Token.Name.Attribute: "entity.other.attribute-name",
    Token.Name.Entity: "constant.character.entity",
    Token.Name.Function: "support.function",
    Token.Name.Tag: "entity.name.tag.qualified",
    Token.Name.Variable: "variable.other",
    Token.Name.Variable.Global: "variable.parameter",
    Token.Operator: "keyword.operator",
    Token.Punctuation: "punctuation",
}
"""What themes call the kinds of Pygments; themes know beginnings of these."""


def grammar() -> dict[str, Any]:
    """Return the grammar, as JSON has it."""
    states: dict[str, list[tuple[Any, Any, Any]]] = XsclLexer()._tokens
    return {
        "name": "XSCL",
        "scopeName": "source.xscl",
        "fileTypes": ["xscl"],
        "patterns": [{"include": "#root"}],
        "repository": {
            name: {"patterns": list(_patterns(states, name, rules))}
            for name, rules in states.items()
        },
    }


def _patterns(states: Any, name: str, rules: Any) -> Iterator[dict[str, Any]]:
    for match, action, then in rules:
        source = match.__self__.pattern.replace(r"\u00b7", "\u00b7")
        if source.startswith("'(?:[^']"):
            yield from map(_string, "'\"")
        elif isinstance(then, int):
            continue  # It is the end of what entered the state.
        elif then is None:
            yield {"match": source, **_named(action, "name", "captures")}
        else:
            yield from _entering(states, source, action, name if then == "#push" else then[0])


def _string(quote: str) -> dict[str, Any]:
    return {
        "begin": quote,
        "end": f"{quote}(?!{quote})",
        "name": _scope(Token.Literal.String),
        "patterns": [{"match": f"{quote}{quote}|[^{quote}]+"}],
    }


def _entering(states: Any, source: str, action: Any, state: str) -> Iterator[dict[str, Any]]:
    """Yield the rules that enter a state; the rules that leave it are their end."""
    leaving = [(match.__self__.pattern, kind) for match, kind, then in states[state] if then == -1]
    inner = {
        "end": "|".join(re.sub(r"^\\s\+", _AT_A_WORD, end) for end, _ in leaving),
        "endCaptures": {"0": {"name": _scope(leaving[-1][1])}},
        "patterns": [{"include": f"#{state}"}],
    }
    kinds = _named(action, "name", "beginCaptures")
    whole = {"beginCaptures": {"0": kinds}} if "name" in kinds else kinds
    if source.endswith(_BEFORE_A_TAG):
        yield {
            "begin": source.removesuffix(_BEFORE_A_TAG) + r"\s*$",
            **whole,
            "end": r"(?=[^\s<]|<\W)",
            "patterns": [{"begin": r"(?=<\w)", **inner}, {"match": r"\s+"}],
        }
    yield {"begin": source, **whole, **inner}


_BEFORE_A_TAG = r"(\s+)(?=<[\w])"
_AT_A_WORD = r"(?:^|(?<=\\s))\\s*"
"""For white space that a word must follow: its beginning may be on the line before."""


def _named(action: Any, whole: str, groups: str) -> dict[str, Any]:
    """Return the scope of what a rule matches, or those of its groups; none of text and space."""
    if action in SCOPES:
        return {whole: _scope(action)}
    if not callable(action):
        return {}
    (kinds,) = (cell.cell_contents for cell in action.__closure__)
    found = {str(at): {"name": _scope(kind)} for at, kind in enumerate(kinds, 1) if kind in SCOPES}
    return {groups: found}


def _scope(kind: Any) -> str:
    return f"{SCOPES[kind]}.xscl"
