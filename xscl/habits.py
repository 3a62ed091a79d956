"""What to write here in place of what SQL, EPL and other languages have."""

from __future__ import annotations

__all__ = [
    "AFTER_OPERAND",
    "CHARACTERS",
    "COMPARISON_WORDS",
    "CURLY_QUOTES",
    "LIST_HINT",
    "NO_NOW",
    "WORD_PLACES",
]

LIST_HINT = "compare with one value at a time: `x = 'a' or x = 'b'`, `x != 'a' and x != 'b'`"
"""For who writes `x in ('a', 'b')` or `x = ('a', 'b')`."""

NO_NOW = "a query knows the times of documents only: `time(x)`, `start()`, `end()`, `dur()`"
"""For who writes `now()`."""

_BEHIND = "it stands behind the last operand; a stream of this name needs a path"
_OUTER_JOIN = "what has no partner is found by `NOT JOIN {...}` or `NOT FOLLOWED BY {...}`"

AFTER_OPERAND = {
    "AND": "conditions stand on steps, in an operator's braces, or behind WHERE",
    "CROSS": "two blocks are combined with `JOIN {...}`",
    "FILTER": "conditions stand on steps, in an operator's braces, or behind WHERE",
    "FULL": _OUTER_JOIN,
    "GROUP": "rows for each value are made by `WINDOW duration BY key`, behind the from",
    "INTO": "a table is written by `ON MATCH SET t[x].c = 1`, or filled by `xscl table load`",
    "INNER": "two blocks are combined with `JOIN {...}`",
    "LEFT": _OUTER_JOIN,
    "OR": "alternatives are written `(S//a | T//b)`; conditions stand behind WHERE",
    "ORDER": "nothing is sorted: each match comes as soon as it is found",
    "OUTER": _OUTER_JOIN,
    "RIGHT": _OUTER_JOIN,
    "THEN": "a document behind another is found by `FOLLOWED BY {...}` or `NEXT {...}`",
    "UNION": "write a query for each, separated by `;`, or alternatives: `(S//a | T//b)`",
}
"""By words that stand behind an operand elsewhere."""

COMPARISON_WORDS = {
    "BETWEEN": "write two comparisons: `x >= 3 AND x <= 5`",
    "ILIKE": "write `contains(lower-case(x), 'part')`",
    "IN": LIST_HINT,
    "IS": "write `empty(x)` where nothing is there, `exists(x)` where something is",
    "LIKE": "write `contains(x, 'part')`, `starts-with(x, 'part')` or `matches(x, 'pattern')`",
}
"""By words that compare elsewhere."""

WORD_PLACES = {
    "CONFIDENCE": _BEHIND,
    "FOLD": "it stands behind a repetition, as in `S//b->y+ FOLD {n = 0 THEN n + y}`",
    "HAVING": "it stands behind WINDOW, as in `WINDOW 6 h BY x/author HAVING count() > 3`",
    "GRACE": _BEHIND,
    "LIMIT": _BEHIND,
    "LOSS": "it stands behind a block, as in `S//b->y LOSS 0.1 DELAY exp(1 h)`",
    "MATCH": _BEHIND,
    "NOT": "it stands between operands, as in `S//a NOT FOLLOWED BY {, 1 h} T//b`",
    "SAME": _BEHIND,
    "WHERE": _BEHIND,
    "WHILE": "it stands behind a repetition, as in `S//b->y+ WHILE {y > prev(y)}`",
    "WINDOW": _BEHIND,
    "WITHIN": _BEHIND,
}
"""By words of the language that stand behind something else than an operand."""

CURLY_QUOTES = {"“": "”", "„": "”“", "‘": "’", "‚": "’‘", "«": "»", "”": "”", "’": "’"}
"""By quotes that open a string elsewhere, the ones that close it."""

_QUOTES = "strings stand between plain ' or \" quotes"
_DASH = "write a plain `-`; a variable is bound with `->`"

CHARACTERS = {
    "&": "write `and`",
    "!": "write `!=` or `not(...)`",
    "#": "comments are `(: ... :)` or `-- ` to the end of the line",
    "%": "write the part as a number, `0.8` for 80 %; the remainder of a division is `mod`",
    "`": "names stand without quotes, strings between plain ' or \" quotes",
    "?": "nothing is optional: write alternatives, `(a | b)`, or a query for each case",
    "→": "write `->`",
    "–": _DASH,
    "—": _DASH,
    "−": _DASH,
    "≠": "write `!=`",
    "≤": "write `<=`",
    "≥": "write `>=`",
} | dict.fromkeys("“”„‘’‚«»", _QUOTES)
"""By characters that have no meaning in XSCL."""
