"""XSCL for Pygments: documentation and terminals highlight queries (`pygmentize -l xscl`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from pygments.lexer import RegexLexer, words
from pygments.lexer import bygroups as untyped_bygroups
from pygments.token import (
    Comment,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

from xscl.lexer import NAME
from xscl.signatures import DERIVING_FUNCTIONS, SEQUENCE_FUNCTIONS, TERM_FUNCTIONS

__all__ = ["XsclLexer"]

bygroups: Callable[..., Any] = untyped_bygroups

_CLAUSES = (
    r"FOLLOWED\s+BY_?|JOIN_?|SELECT|FROM|PUBLISH|DECLARE|DEFAULT|ELEMENT|NAMESPACE|AS|AND|OR|INF"
)
_SEQUENCES = (
    r"NEXT_?|NOT\s+FOLLOWED\s+BY_?|NOT\s+JOIN_?|UNLESS|WHILE|FOLD|THEN|WITHIN|WHERE|GRACE|CONFIDENCE"
    r"|LOSS|DELAY|WINDOW|HAVING|LIMIT|PER|BY|MATCH\s+(?:ANY|NEXT|PARTITION|STRICT)"
    r"|ON\s+MATCH|SET|DELETE|CREATE\s+TABLE|KEY|DISJOINT|COMPRESSED"
)
_BEFORE_BRACKETS = r"FROM|AND|OR|HAVING|SAME|NEXT_?|JOIN_?|BY_?|UNLESS|WHERE"
_FUNCTIONS = sorted(
    DERIVING_FUNCTIONS
    | TERM_FUNCTIONS
    | SEQUENCE_FUNCTIONS
    | {"not", "position", "string-length", "if", "uniform", "exp", "cdf"},
    key=len,
    reverse=True,
)


_PARTS: list[object] = [
    (r"\s+", Whitespace),
    (r"\(:", Comment.Multiline, "comment"),
    (r"--(?=\s|$)[^\n]*", Comment.Single),
    (r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", String),
    (rf"(->)(\s*)({NAME}'*)", bygroups(Operator, Whitespace, Name.Variable)),
    (rf"\$\s*{NAME}'*", Name.Variable.Global),
    (r"(?<=\()distinct(?=\s+\w)", Keyword),
    (words(_FUNCTIONS, suffix=r"(?=\s*\()"), Name.Function),
    (rf"@(?:{NAME}:)?(?:{NAME}|\*)", Name.Attribute),
    (
        r"(\d+(?:\.\d*)?|\.\d+)(\s*)(us|ms|s|sec|m|min|h|hr|d|w|microseconds?|milliseconds?"
        r"|seconds?|minutes?|hours?|days?|weeks?)\b",
        bygroups(Number, Whitespace, Keyword.Type),
    ),
    (r"P(?:\d+[WD])*(?:T(?:[\d.]+[HMS])+)?(?=\s*\})", Number),
    (r"\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+", Number),
    (rf"(?:{NAME}|\*):(?:{NAME}|\*)", Name.Tag),
    (rf"{NAME}'*", Name),
    (r"//|::|\.\.|!=|<=|>=|[/.=<>+*|-]", Operator),
    (r"[\[\](){},:;@]", Punctuation),
    (r".", Text),
]


class XsclLexer(RegexLexer):
    """Highlights XSCL queries."""

    name = "XSCL"
    aliases: ClassVar[list[str]] = ["xscl"]
    filenames: ClassVar[list[str]] = ["*.xscl"]
    mimetypes: ClassVar[list[str]] = ["text/x-xscl"]
    version_added = ""

    tokens: ClassVar[dict[str, list[object]]] = {
        "root": [
            (
                r"(?i)\b(SELECT(?:\s+DISJOINT)?)(\s+)(?=<[\w])",
                bygroups(Keyword, Whitespace),
                "constructor",
            ),
            (rf"(?i)\b(?:{_BEFORE_BRACKETS})\b(?=\s*\()", Keyword),
            (
                rf"(?i)(?<![/.@\w-])(AS)(\s+)({NAME}'*)",
                bygroups(Keyword, Whitespace, Name.Variable),
            ),
            (r"(?<![/.@\w-])(?:then|else|div|mod)(?=\s+[\w$'\"(-])", Keyword),
            (rf"(?i)\b(?:{_CLAUSES})\b(?!\s*[:(])", Keyword),
            (r"(?<![/.@\w-])(DELAY)(\s+)(learned)\b", bygroups(Keyword, Whitespace, Keyword)),
            (rf"(?<![/.@\w-])(?:{_SEQUENCES})\b(?!\s*[:(/])", Keyword),
            *_PARTS,
        ],
        "comment": [
            (r"\(:", Comment.Multiline, "#push"),
            (r":\)", Comment.Multiline, "#pop"),
            (r"[^(:]+|[(:]", Comment.Multiline),
        ],
        "constructor": [
            (r"<!--.*?-->", Comment.Multiline),
            (rf"(</?)({NAME}(?::{NAME})?)", bygroups(Punctuation, Name.Tag)),
            (rf"({NAME}(?::{NAME})?)(\s*)(=)", bygroups(Name.Attribute, Whitespace, Operator)),
            (r"\{\{|\}\}", String.Escape),
            (r"\{", Punctuation, "enclosed"),
            (r"&[^;\s]+;", Name.Entity),
            (r"\s+(?=(?i:FROM|PUBLISH)\b)", Whitespace, "#pop"),
            (r";", Punctuation, "#pop"),
            (r"/?>", Punctuation),
            (r"['\"]", String),
            (r"[^<>{}&'\"=;\s]+|\s+|.", Text),
        ],
        "enclosed": [
            (r"\}", Punctuation, "#pop"),
            *_PARTS,
        ],
    }
