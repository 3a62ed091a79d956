"""What the word at a place means, and of names how many documents have them."""

from __future__ import annotations

from dataclasses import dataclass

from xscl.editing.completion import Vocabulary
from xscl.editing.mentions import Mention, Mentions, mentions_of
from xscl.editing.wording import FUNCTIONS, WORDS
from xscl.lexer import Token, tokenise
from xscl.path import Span
from xscl.report import Report

__all__ = ["Hover", "hover"]


@dataclass(frozen=True, slots=True)
class Hover:
    """What is said of a place, in Markdown."""

    span: Span
    text: str


_NOTHING_KNOWN = Vocabulary()
_STEPS = frozenset({"/", "//", "@", "::", "["})
_STREAMS_MAX = 3


def hover(text: str, offset: int, vocabulary: Vocabulary = _NOTHING_KNOWN) -> Hover | None:
    """Return what the word at a place means; of a variable, the block that binds it.

    Of a stream, an element or an attribute that recent documents have, how many of them do.
    """
    mentions = mentions_of(text)
    mention = mentions.at(offset)
    if mention is not None:
        return Hover(mention.span, _of_name(text, mention, mentions, vocabulary))
    tokens, _ = tokenise(text, Report("", None))
    for index, token in enumerate(tokens):
        if token.kind == "name" and token.start <= offset <= token.end:
            return _of_step(tokens, index, vocabulary) or _of_word(tokens, index)
    return None


def _of_step(tokens: list[Token], index: int, vocabulary: Vocabulary) -> Hover | None:
    """Return how many recent documents have the name of a step, stream by stream."""
    token, before = tokens[index], tokens[index - 1].kind if index else ""
    prefix, _, local = token.text.rpartition(":")
    name = f"{'@' if before == '@' else ''}{'*:' if prefix else ''}{local}"
    if before not in _STEPS:
        return None
    having = {stream: names[name] for stream, names in vocabulary.names.items() if name in names}
    if not having:
        return None
    most = sorted(having, key=lambda stream: (-having[stream], stream))[:_STREAMS_MAX]
    said = [
        f"{having[stream]:,} of {vocabulary.streams[stream]:,} of `{stream}`" for stream in most
    ]
    return Hover(token.span, f"`{name}`: in recent documents, {', '.join(said)}")


def _of_name(text: str, mention: Mention, mentions: Mentions, vocabulary: Vocabulary) -> str:
    if mention in mentions.streams:
        readers = sum(not each.is_binding for each in mentions.same(mention))
        published = any(each.is_binding for each in mentions.same(mention))
        origin = "published here" if published else "of documents from outside"
        recent = sum(vocabulary.streams.values())
        share = f"{vocabulary.streams.get(mention.name, 0):,} of {recent:,} recent documents"
        known = f"; {share}" if recent else ""
        return f"stream `{mention.name}`, {origin}, read by {_counted(readers, 'block')}{known}"
    bindings = [each for each in mentions.same(mention) if each.is_binding]
    for _, block in mentions.blocks:
        if bindings and block.span.start <= bindings[0].span.start <= block.span.end:
            return f"variable of `{text[block.span.start : block.span.end]}`"
    return f"`{mention.name}`, which no block binds" if not bindings else "a value of FOLD"


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _of_word(tokens: list[Token], index: int) -> Hover | None:
    token = tokens[index]
    if tokens[index + 1].kind == "(" and token.text in FUNCTIONS:
        return Hover(token.span, f"`{token.text}(...)`: {FUNCTIONS[token.text]}")
    for first in range(max(0, index - 2), index + 1):
        for last in range(min(index + 3, len(tokens) - 1), index, -1):
            phrase = " ".join(each.text for each in tokens[first:last]).upper()
            if phrase in WORDS:
                span = Span(tokens[first].start, tokens[last - 1].end)
                return Hover(span, f"`{phrase}`: {WORDS[phrase]}")
    return None
