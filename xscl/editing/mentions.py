"""The names of a text and where they stand: variables by statement, and streams.

A variable is bound behind an arrow (or carried by FOLD) and mentioned where a path begins with it:
between braces, in clauses, in SELECT.  Inside a block names are those of elements.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from xscl.constructor import ConstructorError, read_constructor
from xscl.lexer import NAME
from xscl.parser import parse_file
from xscl.path import Span
from xscl.report import Report
from xscl.selects import enclosed_in
from xscl.statement import ConstructorSyntax, FoldSyntax, KeySyntax, SelectSyntax, Statement
from xscl.syntax import BlockSyntax, PathExpression, StepSyntax

__all__ = ["Mention", "Mentions", "mentions_of", "parts"]

_VARIABLE = re.compile(
    rf"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(?<![\w@/:.-])\$?({NAME}'*)(?!\s*[(:])"
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A name at a place; `statement` is the number of its statement in the text, from 0."""

    name: str
    span: Span
    statement: int
    is_binding: bool


@dataclass(frozen=True, slots=True)
class Mentions:
    """The variables of a text, the streams that it reads (its blocks), and those it publishes."""

    variables: tuple[Mention, ...]
    streams: tuple[Mention, ...]
    blocks: tuple[tuple[Mention, BlockSyntax], ...]

    def at(self, offset: int) -> Mention | None:
        """Return the variable or stream at a place, its end included."""
        for mention in (*self.variables, *self.streams):
            if mention.span.start <= offset <= mention.span.end:
                return mention
        return None

    def same(self, mention: Mention) -> list[Mention]:
        """Return all that a name is, in order: a variable's of its statement, a stream's of all."""
        if mention in self.streams:
            return [each for each in self.streams if each.name == mention.name]
        of = (mention.name, mention.statement)
        return [each for each in self.variables if (each.name, each.statement) == of]


@functools.lru_cache(maxsize=64)
def mentions_of(text: str) -> Mentions:
    """Return the names of a text, as far as it can be read."""
    statements, _ = parse_file(text, Report(text, None))
    variables: list[Mention] = []
    streams: list[Mention] = []
    blocks: list[tuple[Mention, BlockSyntax]] = []
    for number, statement in enumerate(statements):
        for block in parts(statement, BlockSyntax):
            if block.stream_span.end > block.stream_span.start:
                read = Mention(block.stream, block.stream_span, number, is_binding=False)
                streams.append(read)
                blocks.append((read, block))
        if statement.publish is not None:
            span = _last(text, statement.publish.name, statement.publish.span)
            streams.append(Mention(statement.publish.name, span, number, is_binding=True))
        variables += _variables(statement, number)
    order = sorted(set(variables), key=lambda mention: mention.span)
    return Mentions(tuple(order), tuple(streams), tuple(blocks))


def _last(text: str, name: str, span: Span) -> Span:
    end = text.rfind(name, span.start, span.end)
    return span if end < 0 else Span(end, end + len(name))


def _variables(statement: Statement, number: int) -> Iterator[Mention]:
    bound = set()
    for block in parts(statement, BlockSyntax):
        for holder in (block, *parts(block, StepSyntax)):
            if holder.variable is not None and holder.variable_span is not None:
                bound.add(holder.variable)
                yield Mention(holder.variable, holder.variable_span, number, is_binding=True)
    for fold in parts(statement, FoldSyntax):
        bound.add(fold.name)
        yield Mention(fold.name, fold.name_span, number, is_binding=True)
    for path in parts(statement, PathExpression, BlockSyntax, KeySyntax):
        if path.steps and not path.is_absolute and path.start is None:
            test = path.steps[0].test
            if test.kind == "name" and test.prefix is None and path.steps[0].axis == "child":
                yield Mention(test.name, test.span, number, is_binding=False)
    for select in parts(statement, SelectSyntax):
        if select.constructor is not None:
            yield from _enclosed(select.constructor, bound, number)


def parts(node: Any, kind: type[Any], *passed_over: type[Any]) -> Iterator[Any]:
    """Yield the parts of a syntax tree of one kind, but nothing below what is passed over."""
    if isinstance(node, passed_over):
        return
    if isinstance(node, kind):
        yield node
    if isinstance(node, list):
        for each in node:
            yield from parts(each, kind, *passed_over)
    elif dataclasses.is_dataclass(node) and not isinstance(node, Span):
        for name in (each.name for each in dataclasses.fields(node)):
            yield from parts(getattr(node, name), kind, *passed_over)


def _enclosed(constructor: ConstructorSyntax, bound: set[str], number: int) -> Iterator[Mention]:
    try:
        element = read_constructor(constructor.text)
    except ConstructorError:
        return
    for part in enclosed_in(element):
        start = constructor.span.start + part.start
        for found in _VARIABLE.finditer(part.expression):
            if found[1] in bound:
                span = Span(start + found.start(1), start + found.end(1))
                yield Mention(found[1], span, number, is_binding=False)
