"""Evaluates element constructors: XPath 2.0 in braces, through elementpath."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import elementpath
from elementpath.datatypes import DateTime10, DayTimeDuration
from lxml import etree

from xscl.constructor import ConstructedElement, Enclosed, read_constructor
from xscl.enclosed import translate, xpath_variable
from xscl.meter import ExhaustedError, Meter, size
from xscl.namespaces import KNOWN_PREFIXES
from xscl.nodes import AttributeNode, Node, NumberedTree, copy_of
from xscl.numerals import spell_decimal, spell_double
from xscl.query import Constructor
from xscl.splicing import mark, spliced
from xscl.xpath2 import MeteredContext, XPath2Parser
from xscl.xpathnodes import xpath_node

__all__ = ["ConstructionError", "compiled_expression", "construct"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


CONSTRUCTOR_BYTES = 5_000
"""What a constructor costs before it goes through anything: a tenth of a millisecond."""


class ConstructionError(ValueError):
    """A constructor fails on these documents: a cast, a call, a number where there is none."""


def construct(
    select: Constructor,
    bound: Mapping[str, Sequence[tuple[int, NumberedTree, Node]]],
    start_us: int,
    end_us: int,
    parameters: Mapping[str, str | float | int],
    meter: Meter,
    row: Mapping[str, Any] | None = None,
) -> str:
    """Return the constructed element as text; raise `ConstructionError` where it fails.

    `bound` has for each node of a variable the place of its document, its tree, and the node; a
    variable of an alternative that is not there is the empty sequence.
    `row` are values by the names of XPath variables.
    """
    meter.spend(CONSTRUCTOR_BYTES)
    constructor = _compiled(select.text, select.namespaces, tuple(select.variables))
    variables: dict[str, Any] = {
        "xscl.start": _date_time(start_us),
        "xscl.end": _date_time(end_us),
        "xscl.dur": DayTimeDuration(seconds=Decimal(end_us - start_us) / 1_000_000),
        "xscl.confidence": 1.0,
    }
    variables.update(row or {})
    for name, nodes in bound.items():
        found = [xpath_node(tree, place, node) for place, tree, node in nodes]
        variables[xpath_variable(name)] = found[0] if len(found) == 1 else found
    for name in select.variables:
        variables.setdefault(xpath_variable(name), [])
    for name, value in parameters.items():
        is_duration = isinstance(value, int)  # numbers are floats, windows whole microseconds
        shown = DayTimeDuration(seconds=Decimal(value) / 1_000_000) if is_duration else value
        variables.setdefault(xpath_variable(name), shown)
    return _Construction(constructor, variables, meter).text(select.is_list)


def _date_time(time_us: int) -> DateTime10:
    moment = _EPOCH + timedelta(microseconds=time_us)
    return DateTime10.fromstring(moment.isoformat().replace("+00:00", "Z"))


class _Compiled:
    """A constructor's tree, and its expressions by their place in its text."""

    def __init__(
        self, text: str, namespaces: tuple[tuple[str, str], ...], known: tuple[str, ...]
    ) -> None:
        self.element = read_constructor(text)
        self.namespaces = dict(namespaces)
        self.expressions: dict[int, Any] = {}
        self._compile(self.element, self.namespaces, known)

    def _compile(
        self, element: ConstructedElement, scope: dict[str, str], known: tuple[str, ...]
    ) -> None:
        scope = {**scope, **dict(element.namespaces)}
        pairs = tuple(sorted(scope.items()))
        parts = [part for each in element.attributes for part in each.parts]
        for part in (*parts, *element.content):
            if isinstance(part, Enclosed):
                translated = translate(part.expression, known)
                self.expressions[part.start] = compiled_expression(translated.text, pairs)
            elif isinstance(part, ConstructedElement):
                self._compile(part, scope, known)


_compiled = functools.lru_cache(maxsize=1024)(_Compiled)


@functools.lru_cache(maxsize=4096)
def compiled_expression(text: str, namespaces: tuple[tuple[str, str], ...]) -> Any:
    """Return an XPath 2.0 expression ready to evaluate."""
    prefixes = {**KNOWN_PREFIXES, **dict(namespaces)}
    default = prefixes.pop("", "")
    try:
        parser = XPath2Parser(namespaces=prefixes, default_namespace=default)
        return parser.parse(text)
    except Exception as error:  # it evaluates what is constant, and Python's errors come through
        raise ConstructionError(_message(error)) from error


_POSITION = re.compile(r"(?:.* )?(?:at line \d+, column \d+: )?\[err:\w+\] ", re.DOTALL)
"""What elementpath says first: where in its own text, and the code of the error."""


def _message(error: BaseException) -> str:
    text = _POSITION.sub("", str(error), count=1) or type(error).__name__
    return " ".join(text.split())[:300]


class _Construction:
    """One evaluation of a constructor."""

    def __init__(self, compiled: _Compiled, variables: dict[str, Any], meter: Meter) -> None:
        self.compiled = compiled
        self.variables = variables
        self.meter = meter
        self.copies: list[Any] = []

    def text(self, is_list: bool) -> str:
        declared = self.compiled.namespaces
        scope = {**KNOWN_PREFIXES, **declared}
        if is_list:
            scope.pop("", None)
        try:
            element = self.element(self.compiled.element, scope, None)
            text = spliced(element, self.copies, list(declared))
            self.meter.spend(size(text))
            return text
        except ConstructionError:
            raise
        except Exception as error:
            if self.meter.is_exhausted:
                raise ExhaustedError from error
            # elementpath lets Python's own errors through (ZeroDivisionError, ValueError,
            # decimal's); whichever it is, the match must not be lost.
            raise ConstructionError(_message(error)) from error

    def element(self, syntax: ConstructedElement, scope: Mapping[str, str], parent: Any) -> Any:
        declared = dict(syntax.namespaces)
        scope = {**scope, **declared}
        name = _expanded(syntax.name, scope, is_element=True)
        wanted: dict[Any, str] = {prefix or None: uri for prefix, uri in declared.items() if uri}
        prefix = syntax.name.partition(":")[0] if ":" in syntax.name else ""
        if scope.get(prefix):
            wanted.setdefault(prefix or None, scope[prefix])
        made = (
            etree.Element(name, nsmap=wanted)
            if parent is None
            else etree.SubElement(parent, name, nsmap=wanted)
        )
        for attribute in syntax.attributes:
            value = "".join(map(self.attribute_text, attribute.parts))
            made.set(_expanded(attribute.name, scope, is_element=False), value)
        for part in syntax.content:
            if isinstance(part, ConstructedElement):
                self.element(part, scope, made)
            elif isinstance(part, Enclosed):
                self.add_sequence(made, part)
            else:
                _add_text(made, part)
        return made

    def attribute_text(self, part: str | Enclosed) -> str:
        if isinstance(part, str):
            return part
        return " ".join(_atomic_text(item) for item in self.evaluate(part))

    def add_sequence(self, parent: Any, part: Enclosed) -> None:
        """Add copies of nodes and the text of atomic values, spaces between adjacent values."""
        run: list[str] = []
        after_value = False
        for item in self.evaluate(part):
            is_node = isinstance(item, elementpath.XPathNode)
            if not is_node:
                run.append(f"{' ' if after_value else ''}{_atomic_text(item)}")
            elif item.node_kind == "text":
                run.append(item.string_value)
            else:
                self.add_run(parent, run)
                self.add_node(parent, item)
            if run:
                self.meter.spend(size(run[-1]))
            after_value = not is_node
        self.add_run(parent, run)

    def add_run(self, parent: Any, run: list[str]) -> None:
        """Add adjacent texts at once: a text costs its whole length whenever it grows."""
        if run:
            _add_text(parent, "".join(run))
            run.clear()

    def add_node(self, parent: Any, item: Any) -> None:
        """Add a copy of an attribute or an element; one of a large element is paid for first."""
        kind = item.node_kind
        if kind == "attribute":
            self.add_copy(parent, AttributeNode(None, item.name, item.string_value))
        elif kind in ("element", "document"):
            element = item.elem if kind == "element" else item.document.getroot()
            self.meter.spend(size(etree.tostring(element, encoding="unicode", with_tail=False)))
            self.add_copy(parent, element)

    def add_copy(self, parent: Any, node: Node) -> None:
        """Keep a place for a copy, which is written by itself."""
        parent.append(mark(len(self.copies)))
        self.copies.append(copy_of(node))

    def evaluate(self, part: Enclosed) -> Iterator[Any]:
        expression = self.compiled.expressions[part.start]
        root = elementpath.get_node_tree(etree.Element("none"), fragment=True)
        context = MeteredContext(self.meter, root=root, variables=dict(self.variables))
        yield from expression.select(context)


def _expanded(name: str, scope: Mapping[str, str], is_element: bool) -> str:
    prefix, colon, local = name.rpartition(":")
    uri = scope.get(prefix) if colon or is_element else None
    return f"{{{uri}}}{local}" if uri else local


def _add_text(parent: Any, text: str) -> None:
    if len(parent):
        parent[-1].tail = (parent[-1].tail or "") + text
    else:
        parent.text = (parent.text or "") + text


def _atomic_text(item: Any) -> str:
    if isinstance(item, elementpath.XPathNode):
        return str(item.string_value)
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, float):
        return spell_double(item)
    if isinstance(item, Decimal):
        return spell_decimal(item)
    return str(item)
