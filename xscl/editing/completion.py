"""What may stand at a place of a text: streams, names of elements, variables, functions, words.

The place is judged by the tokens before it, so that a text which cannot be parsed yet is helped
with.  Names of elements come from a `Vocabulary`, most frequent first; without one, from the blocks
of the text itself.
"""

from __future__ import annotations

import enum
import itertools
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xscl.editing.mentions import Mentions, mentions_of, parts
from xscl.editing.wording import FUNCTIONS, WORDS
from xscl.lexer import NAME, Token, tokenise
from xscl.path import Span
from xscl.report import Report
from xscl.syntax import BlockSyntax, StepSyntax

__all__ = ["Completion", "CompletionKind", "Vocabulary", "complete"]

_MISSING = "_"
_PART = re.compile(rf"(?:@?{NAME})?'*$")
_PATH = frozenset({"/", "//", "@", "::", "."})
_OPENS = {"[": "]", "(": ")", "{": "}"}
_LEADS = _PATH | {"->", "[", "="}
_OPERATORS = frozenset({"=", "!=", "<", "<=", ">", ">=", "("})
_BEFORE_A_BLOCK = frozenset({"from", "by", "join", "next", "unless"})


class CompletionKind(enum.Enum):
    """What a completion is."""

    STREAM = "stream"
    ELEMENT = "element"
    ATTRIBUTE = "attribute"
    VARIABLE = "variable"
    FUNCTION = "function"
    WORD = "word"


@dataclass(frozen=True, slots=True)
class Completion:
    """A text that may stand at `span`, what it is, and a line about it."""

    text: str
    kind: CompletionKind
    span: Span
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """What documents have: streams, and by stream the names of elements and of attributes (`@x`).

    Each counts how many recent documents have it.
    """

    streams: Mapping[str, int] = field(default_factory=dict)
    names: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


def complete(text: str, offset: int, vocabulary: Vocabulary | None = None) -> list[Completion]:
    """Return what may stand at a place, the likeliest first; the begun word is replaced."""
    begun = _PART.search(text, 0, offset)
    assert begun is not None  # it fits no characters too
    before, _ = tokenise(text[: begun.start()], Report("", None))
    tokens, _ = tokenise(text, Report("", None))
    span = Span(begun.start(), offset)
    # A name where one is missing: the parser leaves out less.
    whole = text if begun.group() else f"{text[:offset]}{_MISSING}{text[offset:]}"
    place = _Place(span, before[:-1], tokens, mentions_of(whole), vocabulary or Vocabulary())
    fitting = begun.group().lower()
    return [each for each in place.candidates() if each.text.lower().startswith(fitting)]


@dataclass(frozen=True, slots=True)
class _Place:
    span: Span
    before: Sequence[Token]
    tokens: Sequence[Token]
    mentions: Mentions
    vocabulary: Vocabulary

    def candidates(self) -> list[Completion]:
        last = self.before[-1] if self.before else None
        if last is not None and last.kind == "->":
            return []
        if last is not None and last.kind in _PATH:
            return self.elements(self.stream_of_path())
        opened = self.opened()
        if opened is not None and opened.kind == "[":
            return [*self.elements(self.stream_of_block()), *self.functions()]
        in_braces = opened is not None and opened.kind == "{"
        if in_braces or self.is_behind("where", "having", "set"):
            return [*self.variables(), *self.functions(), *self.words({"AND", "OR"})]
        if last is None or last.kind in (";", "(", "|") or last.text.lower() in _BEFORE_A_BLOCK:
            return [*self.streams(), *self.words({"SELECT", "FROM", "CREATE TABLE"})]
        if last.kind == "}":
            return [*self.streams(), *self.words(set(WORDS))]
        if last.kind == "name" and last.text.lower() in ("select", "by"):
            return self.variables()
        return self.words(set(WORDS))

    def opened(self) -> Token | None:
        """Return the bracket that is open here."""
        depth = 0
        for token in reversed(self.before):
            if token.kind in _OPENS.values():
                depth += 1
            elif token.kind in _OPENS:
                if depth == 0:
                    return token
                depth -= 1
        return None

    def is_behind(self, *words: str) -> bool:
        """Whether the nearest word of the language before this place is one of these."""
        for token in reversed(self.before):
            if token.kind == "name" and token.text.upper() in _SINGLE:
                return token.text.lower() in words
            if token.kind == ";":
                return False
        return False

    def stream_of_path(self) -> str | None:
        """Return the stream whose elements the path in hand is of, behind a variable or a block."""
        opened = self.opened()
        if opened is not None and opened.kind == "[":
            return self.stream_of_block()
        head = len(self.before) - 1
        while head >= 0 and self.before[head].kind in _PATH:
            head -= 1
            if head >= 1 and self.before[head - 1].kind in _PATH:
                head -= 1
        if head < 0 or self.before[head].kind != "name":
            return self.stream_of_block()
        name = self.before[head].text
        for index, token in enumerate(self.tokens):
            if index and token.text == name and self.tokens[index - 1].kind == "->":
                return _stream(self.tokens, index - 1)
        return name

    def stream_of_block(self) -> str | None:
        """Return the stream of the block that this place is in."""
        return _stream(self.before, len(self.before))

    def elements(self, stream: str | None) -> list[Completion]:
        counts = Counter(self.vocabulary.names.get(stream or "", {}))
        if not counts:
            blocks = [block for mention, block in self.mentions.blocks if mention.name == stream]
            counts = Counter(name for block in blocks for name in _names(block, self.span))
        is_attribute = bool(self.before) and self.before[-1].kind == "@"
        found = []
        for name, _ in counts.most_common():
            kind = CompletionKind.ATTRIBUTE if name.startswith("@") else CompletionKind.ELEMENT
            if is_attribute and kind is CompletionKind.ELEMENT:
                continue
            shown = name.removeprefix("@") if is_attribute else name
            found.append(Completion(shown, kind, self.span, f"{kind.value} of {stream}"))
        return found

    def streams(self) -> list[Completion]:
        counts = Counter(self.vocabulary.streams)
        elsewhere = (m for m in self.mentions.streams if not _is_at(m.span, self.span))
        counts.update(mention.name for mention in elsewhere)
        return [
            Completion(name, CompletionKind.STREAM, self.span, "stream")
            for name, _ in counts.most_common()
        ]

    def variables(self) -> list[Completion]:
        tokens = [token for token in self.tokens if token.kind != "end"]
        first = max((t.end for t in self.before if t.kind == ";"), default=0)
        last = min((t.start for t in tokens if t.kind == ";" and t.start >= first), default=None)
        names = {
            token.text: None
            for arrow, token in itertools.pairwise(tokens)
            if arrow.kind == "->" and first <= token.start and (last is None or token.end <= last)
        }
        return [Completion(name, CompletionKind.VARIABLE, self.span, "variable") for name in names]

    def functions(self) -> list[Completion]:
        return [
            Completion(name, CompletionKind.FUNCTION, self.span, says)
            for name, says in FUNCTIONS.items()
        ]

    def words(self, wanted: set[str]) -> list[Completion]:
        return [
            Completion(word, CompletionKind.WORD, self.span, says)
            for word, says in WORDS.items()
            if word in wanted
        ]


_SINGLE = frozenset(word for words in WORDS for word in words.split())


def _stream(tokens: Sequence[Token], end: int) -> str | None:
    """Return the stream of the block that the tokens before `end` are of."""
    depth = 0
    for index in range(end - 1, -1, -1):
        token = tokens[index]
        if token.kind in _OPENS.values():
            depth += 1
        elif token.kind in _OPENS:
            depth = max(0, depth - 1)
        elif depth == 0 and token.kind == "name":
            ahead = tokens[index - 1].kind if index else ""
            behind = tokens[index + 1].kind if index + 1 < len(tokens) else ""
            if ahead not in _LEADS and behind not in _OPERATORS:
                return token.text
    return None


def _is_at(span: Span, here: Span) -> bool:
    return span.start <= here.start <= span.end


def _names(block: BlockSyntax, here: Span) -> list[str]:
    """Return the names of elements and attributes that a block's path mentions elsewhere."""
    tests = [step for step in parts(block, StepSyntax) if not _is_at(step.test.span, here)]
    return [
        f"@{step.test.name}" if step.axis == "attribute" else step.test.name
        for step in tests
        if step.test.kind == "name" and step.test.name not in ("*", _MISSING)
    ]
