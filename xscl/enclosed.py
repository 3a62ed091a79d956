"""Expressions of a SELECT clause: XPath 2.0 in which a leading variable may stand without `$`.

`translate` gives the XPath 2.0 text that elementpath reads, and what the expression mentions.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field

from xscl.lexer import NAME

__all__ = ["MentionedName", "Translation", "translate", "xpath_variable"]

MATCH_FUNCTIONS = {
    "start": "xscl.start",
    "end": "xscl.end",
    "dur": "xscl.dur",
    "confidence": "xscl.confidence",
}
"""Functions of the whole match, and the XPath variables that hold their values."""

_TOKEN = re.compile(
    rf"""
    (?P<space>[ \t\r\n]+)
  | (?P<comment>\(:)
  | (?P<string>'(?:[^']|'')*'|"(?:[^"]|"")*")
  | (?P<variable>\$[ ]*{NAME}(?::{NAME})?'*)
  | (?P<name>{NAME}(?::(?!:)(?:{NAME}|\*))?'*)
  | (?P<number>\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+)
  | (?P<punctuation>\*:{NAME}|//|::|\.\.|!=|<=|>=|<<|>>|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_STEP_LEADERS = frozenset({"/", "//", "::", "@"})
_CONTEXT_STARTS = frozenset({"/", "//", ".", "..", "@"})
_NODE_TYPES = frozenset({"text", "node", "comment", "processing-instruction", "element"})
_TYPES = frozenset({"instance", "treat", "castable", "cast"})


@dataclass(frozen=True, slots=True)
class MentionedName:
    """A name at an offset of the expression."""

    name: str
    offset: int


@dataclass(slots=True)
class Translation:
    """An expression as XPath 2.0.

    `variables` and `parameters` are what it mentions, once each, in order; `unknown` are names
    that stand where only a variable can and are none.
    """

    text: str = ""
    variables: list[str] = field(default_factory=list)
    parameters: list[MentionedName] = field(default_factory=list)
    unknown: list[MentionedName] = field(default_factory=list)


def xpath_variable(name: str) -> str:
    """Return the name of an XPath variable for one of ours: primes are spelled out.

    >>> xpath_variable("x4'")
    'x4.prime'
    """
    stem = name.rstrip("'")
    return stem + ".prime" * (len(name) - len(stem))


def translate(expression: str, known: Collection[str]) -> Translation:
    """Return an expression of a SELECT clause as XPath 2.0 over the `known` variables."""
    return _Translator(expression, known).run()


class _Translator:
    """Goes through the tokens once; `brackets` has an entry for each open bracket.

    An entry is true where the bracket has a context item: inside `[...]`, and inside `(...)`
    behind a slash.
    """

    def __init__(self, expression: str, known: Collection[str]) -> None:
        self.expression = expression
        self.known = known
        self.result = Translation()
        self.local: set[str] = set()
        self.brackets: list[bool] = []
        self.last = ""
        self.expects_operand = True
        self.expects_type = False

    def run(self) -> Translation:
        pieces: list[str] = []
        position = 0
        while position < len(self.expression):
            found = _TOKEN.match(self.expression, position)
            assert found is not None  # the last alternative takes any character
            kind = found.lastgroup
            if kind == "comment":
                position = self.comment_end(position)
                continue
            position = found.end()
            text = found.group()
            if kind == "name":
                piece, position = self.name(text, found.start())
            elif kind == "variable":
                piece, position = self.variable(text, found.start())
            else:
                piece = text
                self.other(kind or "", text, found.start())
            pieces.append(piece)
        self.result.text = "".join(pieces).strip()
        return self.result

    def comment_end(self, start: int) -> int:
        depth = 0
        for edge in re.compile(r"\(:|:\)").finditer(self.expression, start):
            depth += 1 if edge.group() == "(:" else -1
            if depth == 0:
                return edge.end()
        return len(self.expression)

    def other(self, kind: str, text: str, start: int) -> None:
        if kind == "space":
            return
        # Where an operand can stand `*` is a step, else a multiplication.
        is_any = text[0] == "*" and self.expects_operand
        if (is_any or text in _CONTEXT_STARTS) and self.expects_operand and not self.has_context():
            self.result.unknown.append(MentionedName(text, start))
        if text in ("(", "["):
            self.brackets.append(text == "[" or self.in_context() or (self.last in _STEP_LEADERS))
            self.expects_operand = True
        elif text in (")", "]"):
            if self.brackets:
                self.brackets.pop()
            self.expects_operand = False
        else:
            is_operand = is_any or kind in ("string", "number") or text in (".", "..")
            self.expects_operand = not is_operand
        self.last = text

    def has_context(self) -> bool:
        return self.in_context() or self.last in _STEP_LEADERS

    def in_context(self) -> bool:
        return bool(self.brackets) and self.brackets[-1]

    def following(self, position: int) -> str:
        rest = self.expression[position:].lstrip()
        return rest[:2] if rest[:2] in ("::",) else rest[:1]

    def name(self, text: str, start: int) -> tuple[str, int]:
        text, end = self.with_primes(text, start)
        before, self.last = self.last, text
        if self.expects_type:
            self.expects_type = text in ("of", "as")
            return text, end
        if not self.expects_operand and before not in _STEP_LEADERS:
            self.expects_type = text in _TYPES
            self.expects_operand = True
            return text, end
        follows = self.following(end)
        if before in _STEP_LEADERS or follows == "::":
            self.expects_operand = False
            return text, end
        if follows == "(":
            return self.call(text, end)
        if text in ("for", "some", "every") and follows == "$":
            self.declare_locals(end)
            return text, end
        self.expects_operand = False
        if self.in_context():
            return text, end
        return self.leading(text, start), end

    def leading(self, text: str, start: int) -> str:
        """Return a name that begins an expression without context item: a variable."""
        if text not in self.known:
            self.result.unknown.append(MentionedName(text, start))
            return f"${xpath_variable(text)}"
        self.mention(text)
        return f"${xpath_variable(text)}"

    def call(self, text: str, end: int) -> tuple[str, int]:
        clock = MATCH_FUNCTIONS.get(text)
        empty = re.compile(r"\s*\(\s*\)").match(self.expression, end)
        if clock is not None and empty is not None:
            self.expects_operand = False
            self.last = ")"
            return f"${clock}", empty.end()
        if text in _NODE_TYPES and not self.in_context():
            self.result.unknown.append(MentionedName(text, end - len(text)))
        self.expects_operand = True
        return text, end

    def variable(self, text: str, start: int) -> tuple[str, int]:
        text, end = self.with_primes(text, start)
        name = text[1:].strip()
        self.last, self.expects_operand = name, False
        if name in self.local:
            return f"${name}", end
        if name in self.known:
            self.mention(name)
        elif all(each.name != name for each in self.result.parameters):
            self.result.parameters.append(MentionedName(name, start))
        return f"${xpath_variable(name)}", end

    def with_primes(self, text: str, start: int) -> tuple[str, int]:
        """Return a name with its primes if that is a variable, else without: a string begins."""
        name = text.lstrip("$ ")
        if text[-1] == "'" and name not in self.known and not self.closes_nothing(start, text):
            text = text.rstrip("'")
        return text, start + len(text)

    def closes_nothing(self, start: int, text: str) -> bool:
        """Whether no string can begin at the primes: none of them has a partner behind it."""
        return "'" not in self.expression[start + len(text) :]

    def mention(self, name: str) -> None:
        if name not in self.result.variables:
            self.result.variables.append(name)

    def declare_locals(self, position: int) -> None:
        """Note `$v in ..., $w in ...` of a `for`, `some` or `every`."""
        for found in re.compile(rf"\$\s*({NAME})\s+in\b").finditer(self.expression, position):
            self.local.add(found[1])
