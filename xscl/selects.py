"""SELECT clauses: from syntax to `Select` values, with every expression checked."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from xscl.aggregates import AggregateCall, take_aggregates, with_keys
from xscl.canonical import render_expression
from xscl.conditions import ParameterUse
from xscl.constructor import (
    Attribute,
    ConstructedElement,
    ConstructorError,
    Content,
    Enclosed,
    read_constructor,
)
from xscl.enclosed import Translation, translate
from xscl.namespaces import Namespaces, declare_hint
from xscl.path import Span
from xscl.query import ROW_VALUE, Constructor, Select, SelectAll, SelectNodes
from xscl.report import Report
from xscl.scopes import Names, Scope
from xscl.spelling import did_you_mean
from xscl.statement import SelectSyntax
from xscl.syntax import Expression, ParameterRef, PathExpression

__all__ = ["Selectable", "build_select", "item_text"]


_ROW = re.compile(r"[\w.-]+\s*\[[^\]]*\]\s*\.\s*\w")
"""A cell of a table, as conditions have it: `worker[x].status`."""

_OF_RUNS = re.compile(r"\b(?:first|last|prev)\(\s*\$")
"""A function of runs, as conditions have it: `first(p)`."""

_OF_NODES = "a repeated variable is all its nodes here: write `p[1]` or `p[last()]`"
_OF_ROWS = "`count()` is of a row: `WINDOW 6 h BY x/author` makes rows; of one match, `count(x)`"
_COUNT = re.compile(r"\bcount\(\s*\)")
_OF_DOCUMENTS = re.compile(r"\b(time|revision)\(\s*\$")
"""A function of documents, as conditions have it: `time(x)`."""

_OF_TIMES = "it stands in conditions; of a match there are `start()`, `end()` and `dur()` here"
_UNDECLARED = re.compile(r"prefix '([^']+)' is not declared")


@dataclass(frozen=True, slots=True)
class Selectable:
    """What a SELECT clause may mention: names in a scope.

    `keys` are the texts of what rows of WINDOW are grouped by, `None` where there are no rows;
    `aggregate` returns the number, among the values of a row, of an aggregate that is given as its
    text and offset, None after an error in it.
    """

    names: Names
    scope: Scope
    keys: tuple[str, ...] | None = None
    aggregate: Callable[[str, int], int | None] = lambda text, offset: None

    def known(self) -> dict[str, frozenset[int]]:
        """Return the author's names that may be mentioned."""
        blocks = self.scope.blocks
        found = self.names.blocks.items()
        return {name: bound & blocks for name, bound in found if "/" not in name and bound & blocks}


def build_select(
    syntax: SelectSyntax,
    selectable: Selectable,
    namespaces: Namespaces,
    report: Report,
    parameters: list[ParameterUse],
) -> Select:
    """Return what a SELECT clause asks for; report what is wrong in it."""
    if syntax.constructor is None and not syntax.items:
        return SelectAll()
    checker = _Checker(selectable, namespaces, report, parameters)
    if syntax.constructor is not None:
        return checker.constructor(syntax.constructor.text, syntax.constructor.span.start)
    return checker.items(syntax)


def item_text(item: Expression) -> str:
    """Return the canonical text of an item of a SELECT list."""
    variable = _single_variable(item)
    return variable if variable is not None else render_expression(item, 3)


def _single_variable(item: Expression) -> str | None:
    """Return the name that an item is, if it is no more than that."""
    if not isinstance(item, PathExpression) or item.is_absolute or item.start is not None:
        return None
    step = item.steps[0]
    is_name = step.axis == "child" and step.test.kind == "name" and step.test.prefix is None
    if len(item.steps) > 1 or not is_name or step.predicates or step.variable is not None:
        return None
    return step.test.name


class _Checker:
    def __init__(
        self,
        selectable: Selectable,
        namespaces: Namespaces,
        report: Report,
        parameters: list[ParameterUse],
    ) -> None:
        self.selectable = selectable
        self.variables = selectable.known()
        self.namespaces = namespaces
        self.report = report
        self.parameters = parameters

    def items(self, syntax: SelectSyntax) -> Select:
        names: list[str] = []
        mentioned: list[str] = []
        for item in syntax.items:
            name = _single_variable(item)
            if isinstance(item, ParameterRef) and item.name in self.variables:
                name = item.name
            text = item_text(item)
            if not self.binds(item):
                mentioned += self.expression(text, item.span.start, whole=item.span)
            if name is not None and name not in self.selectable.names.folds:
                names.append(name)
        is_of_rows = self.selectable.keys is not None
        if len(names) == len(syntax.items) == len(set(names)) and not is_of_rows:
            return SelectNodes(tuple(names))
        shown = [self.of_row(item_text(item)) for item in syntax.items]
        text = "<match>" + "".join(f"{{{each}}}" for each in shown) + "</match>"
        variables = tuple(dict.fromkeys(mentioned))
        return Constructor(text, variables, self.namespaces.pairs(), is_list=True)

    def binds(self, item: Expression) -> bool:
        """Report what stands in a list under a name, as SQL has it."""
        step = item.steps[-1] if isinstance(item, PathExpression) and item.steps else None
        if step is None or step.variable_span is None:
            return False
        name, shown = step.variable, item_text(item).removesuffix(f"->{step.variable}")
        self.report.error(
            "XS309",
            step.variable_span,
            f"`{name}` cannot be bound in SELECT",
            f"build an element: `SELECT <{name}>{{{shown}}}</{name}>`",
        )
        return True

    def constructor(self, text: str, offset: int) -> Select:
        try:
            element = read_constructor(text)
        except ConstructorError:  # reported when it was read
            return SelectAll()
        mentioned = list(self.element(element, offset, dict(self.namespaces.pairs())))
        pieces: list[str] = []
        last = 0
        for part in enclosed_in(element):
            pieces += [text[last : part.start], self.of_row(part.expression)]
            last = part.start + len(part.expression)
        text = "".join([*pieces, text[last:]])
        return Constructor(text, tuple(dict.fromkeys(mentioned)), self.namespaces.pairs())

    def element(
        self, element: ConstructedElement, offset: int, outer: Mapping[str, str]
    ) -> Iterator[str]:
        """Check an element of a constructor; yield the variables that it mentions."""
        scope = {**outer, **dict(element.namespaces)}
        self.prefixes(element, offset, scope)
        parts: list[Content] = [p for each in element.attributes for p in each.parts]
        for part in (*parts, *element.content):
            if isinstance(part, Enclosed):
                start = offset + part.start
                yield from self.expression(part.expression, start, scope=scope)
            elif isinstance(part, ConstructedElement):
                yield from self.element(part, offset, scope)

    def prefixes(self, element: ConstructedElement, offset: int, scope: Mapping[str, str]) -> None:
        """Report prefixes in constructed names that stand for nothing."""
        start = offset + element.start + 1
        names: list[ConstructedElement | Attribute] = [element, *element.attributes]
        for each in names:
            prefix, colon, _ = each.name.partition(":")
            if colon and prefix not in scope:
                self.namespaces.uri(prefix, Span(start, start + len(element.name)))

    def expression(
        self,
        text: str,
        offset: int,
        whole: Span | None = None,
        scope: Mapping[str, str] | None = None,
    ) -> list[str]:
        """Check one expression and return the variables that it mentions."""
        if self.selectable.keys is not None:
            return self.row_expression(text, offset, whole, scope)
        translation = self.translation(text, offset, whole, scope)
        return [v for v in translation.variables if v not in self.selectable.names.folds]

    def row_expression(
        self, text: str, offset: int, whole: Span | None, scope: Mapping[str, str] | None
    ) -> list[str]:
        """Check an expression over a row of WINDOW: aggregates, and what it is grouped by."""
        rest, calls = take_aggregates(text)
        keys = self.selectable.keys or ()
        whole = whole or Span(offset, offset + len(text))
        translation = self.translation(with_keys(rest, keys, ROW_VALUE), offset, whole, scope)
        for name in translation.variables:
            written = re.search(rf"(?<![\w.-]){re.escape(name)}(?:/+@?[\w.:-]+)*", rest)
            path = written[0] if written else name
            self.report.error(
                "XS902",
                whole,
                f"a row is made of many matches, and `{name}` is of one",
                f"name it behind BY, or write `max({path})`, `collect({path})`, ...",
            )
        return [name for call in calls for name in self.aggregated(call, offset, whole, scope)]

    def aggregated(
        self, call: AggregateCall, offset: int, whole: Span, scope: Mapping[str, str] | None
    ) -> list[str]:
        """Check an aggregate, and return the variables that it mentions."""
        errors = self.report.errors
        mentioned: list[str] = []
        for argument, start in call.arguments:
            found = self.translation(argument, offset + start, whole, scope, is_aggregated=True)
            mentioned += found.variables
        if self.report.errors == errors:
            self.selectable.aggregate(call.text, offset + call.offset)
        return mentioned

    def of_row(self, text: str) -> str:
        """Return an expression with variables for the values of a row; as it is behind errors."""
        keys = self.selectable.keys
        if keys is None or self.report.errors:
            return text
        rest, calls = take_aggregates(text)
        for call in reversed(calls):
            variable = f"${ROW_VALUE}{self.selectable.aggregate(call.text, 0)}"
            end = call.offset + len(call.text)
            rest = rest[: call.offset] + variable + rest[end:]
        return with_keys(rest, keys, ROW_VALUE)

    def translation(
        self,
        text: str,
        offset: int,
        whole: Span | None,
        scope: Mapping[str, str] | None,
        *,
        is_aggregated: bool = False,
    ) -> Translation:
        """Return an expression as XPath 2.0, checked; what is aggregated may be `time(x)`."""
        translation = translate(text, self.variables)
        for mention in translation.unknown:
            start = offset + mention.offset
            span = whole or Span(start, start + len(mention.name))
            if _ROW.match(text, mention.offset):
                hint = "tables are read behind WHERE and HAVING, and in SET"
                message = f"the table `{mention.name}` cannot be read in SELECT"
                self.report.error("XS901", span, message, hint)
            else:
                self.unknown(mention.name, span)
        for mention in translation.parameters:
            if mention.name.startswith(ROW_VALUE):
                continue
            start = offset + mention.offset
            span = whole or Span(start, start + len(mention.name) + 1)
            self.parameters.append(ParameterUse(mention.name, "any", span))
        if not translation.unknown:
            pairs = self.namespaces.pairs() if scope is None else tuple(sorted(scope.items()))
            span = whole or Span(offset, offset + len(text))
            self.check_xpath(translation, span, pairs, is_aggregated=is_aggregated)
        return translation

    def unknown(self, name: str, span: Span) -> None:
        names = self.selectable.names
        if name in names.guessed:
            return
        if names.blocks.get(name, frozenset()) and name not in self.variables:
            names.find(name, span, self.selectable.scope)
            return
        self.report.error(
            "XS201",
            span,
            f"no block binds the variable `{name}`",
            did_you_mean(name, self.variables)
            or "an expression begins with a variable: write `x1/title`, with `S//item->x1`",
        )

    def check_xpath(
        self,
        translation: Translation,
        span: Span,
        namespaces: tuple[tuple[str, str], ...],
        *,
        is_aggregated: bool,
    ) -> None:
        if _is_plain_path(translation.text):
            return
        if self.selectable.names.guessed and _COUNT.search(translation.text):
            return  # perhaps of a row, of a WINDOW that could not be read
        from xscl.output import expression_error

        # A function that is called as a type is would be taken for it.
        of_documents = None if is_aggregated else _OF_DOCUMENTS.search(translation.text)
        wrong = expression_error(translation.text, namespaces)
        if of_documents is not None:
            wrong = f"unknown function '{of_documents[1]}'"
        if wrong is not None:
            message = f"not an XPath 2.0 expression: {wrong}"
            self.report.error("XS310", span, message, _xpath_hint(translation.text, wrong))


def enclosed_in(element: ConstructedElement) -> Iterator[Enclosed]:
    """Yield what stands in braces in an element, in the order of the text."""
    for attribute in element.attributes:
        yield from (part for part in attribute.parts if isinstance(part, Enclosed))
    for part in element.content:
        if isinstance(part, Enclosed):
            yield part
        elif isinstance(part, ConstructedElement):
            yield from enclosed_in(part)


def _xpath_hint(text: str, wrong: str) -> str | None:
    if _OF_RUNS.search(text):
        return _OF_NODES
    if _COUNT.search(text):
        return _OF_ROWS
    if _OF_DOCUMENTS.search(text):
        return _OF_TIMES
    undeclared = _UNDECLARED.search(wrong)
    return declare_hint(undeclared[1]) if undeclared else None


def _is_plain_path(text: str) -> bool:
    """Whether the text is a variable with simple steps, which needs no parser to be right."""
    parts = text.replace("//", "/").replace("/@", "/").split("/")
    return parts[0][:1] == "$" and all(_is_name(part) for part in (parts[0][1:], *parts[1:]))


def _is_name(text: str) -> bool:
    return text[:1].isalpha() and text.replace("-", "").replace("_", "").replace(".", "").isalnum()
