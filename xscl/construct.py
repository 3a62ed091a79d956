"""Evaluates element constructors: XPath 2.0 in braces.

A variable, and names of nodes below it, are looked up in the documents (`plainpaths`); all else is
evaluated by elementpath, for which a document has to be made of its nodes first.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from operator import itemgetter
from typing import Any

import elementpath
from elementpath.datatypes import DateTime10, DayTimeDuration
from lxml import etree

from xscl.constructor import Attribute, ConstructedElement, Enclosed, read_constructor
from xscl.enclosed import translate, xpath_variable
from xscl.fragments import CLOCKS, Written, compiled_fragments
from xscl.meter import STEP_BYTES, ExhaustedError, Meter, size
from xscl.namespaces import KNOWN_PREFIXES
from xscl.nodes import AttributeNode, Node, NumberedTree, TextNode, text_within
from xscl.numerals import spell_decimal, spell_double
from xscl.plainpaths import PlainPath, plain_path
from xscl.query import Constructor
from xscl.splicing import Copy, spliced
from xscl.writing import TextContent, TreeContent, add_run, attribute_text, is_bare, tagged
from xscl.xpath2 import MeteredContext, XPath2Parser
from xscl.xpathnodes import xpath_node

__all__ = ["ConstructionError", "compiled_expression", "construct", "xpath2_expressions"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


CONSTRUCTOR_BYTES = 5_000
"""What a constructor costs before it goes through anything: a tenth of a millisecond."""


class ConstructionError(ValueError):
    """A constructor fails on these documents: a cast, a call, a number where there is none."""


Bound = Sequence[tuple[int, NumberedTree, Node]]
"""The nodes of a variable, each with the place of its document and the document's tree."""


def construct(
    select: Constructor,
    bound: Mapping[str, Bound],
    start_us: int,
    end_us: int,
    parameters: Mapping[str, str | float | int],
    meter: Meter,
    row: Mapping[str, Any] | None = None,
) -> str:
    """Return the constructed element as text; raise `ConstructionError` where it fails.

    `bound` has the nodes of variables, in the order of their documents; a variable of an
    alternative that is not there is the empty sequence.  `row` are values by the names of XPath
    variables.
    """
    constructor = _compiled(select.text, select.namespaces, select.variables)
    written = _in_fragments(constructor, bound, start_us, end_us)
    if written is not None and meter.allows(cost := CONSTRUCTOR_BYTES + written.cost):
        meter.spend(cost)
        return written.text
    meter.spend(CONSTRUCTOR_BYTES)
    nodes = {xpath_variable(name): bound.get(name, ()) for name in (*select.variables, *bound)}
    values: dict[str, Any] = {"xscl.confidence": 1.0}
    if "xscl.start" in constructor.clocks:
        values["xscl.start"] = _date_time(start_us)
    if "xscl.end" in constructor.clocks:
        values["xscl.end"] = _date_time(end_us)
    if "xscl.dur" in constructor.clocks:
        values["xscl.dur"] = _duration(end_us - start_us)
    values |= row or {}
    for name, value in parameters.items():
        # Numbers are floats, windows whole microseconds.
        shown = _duration(value) if isinstance(value, int) else value
        values.setdefault(xpath_variable(name), shown)
    return _Construction(constructor, nodes, values, meter).text(select.is_list)


def _in_fragments(
    constructor: _Compiled, bound: Mapping[str, Bound], start_us: int, end_us: int
) -> Written | None:
    """Return a constructed element as its fragments give it; None where they do not say."""
    if constructor.fragments is None:
        return None
    nodes: dict[str, Sequence[Node]] = {}
    for name, own in constructor.names.items():
        found = bound.get(name, ())
        if any(one[0] > other[0] for one, other in pairwise(found)):
            return None
        nodes[own] = [node for _, _, node in found]
    return constructor.fragments.written(nodes, start_us, end_us)


def _date_time(time_us: int) -> DateTime10:
    moment = _EPOCH + timedelta(microseconds=time_us)
    return DateTime10.fromstring(moment.isoformat().replace("+00:00", "Z"))


def _duration(length_us: float) -> DayTimeDuration:
    return DayTimeDuration(seconds=Decimal(length_us) / 1_000_000)


class _Compiled:
    """A constructor's tree, and its expressions by their place in its text.

    `plain` are those of them that need no XPath 2.0, mostly, and `others` the texts of those that
    do; `clocks` are the variables of times that are asked for.  What `is_bare` has no namespaces.
    """

    def __init__(
        self, text: str, namespaces: tuple[tuple[str, str], ...], known: tuple[str, ...]
    ) -> None:
        self.element = read_constructor(text)
        self.namespaces = dict(namespaces)
        self.expressions: dict[int, Any] = {}
        self.plain: dict[int, PlainPath] = {}
        self.others: list[str] = []
        self.clocks: set[str] = set()
        self.is_bare = "" not in self.namespaces and is_bare(self.element)
        self._compile(self.element, self.namespaces, known)
        self.names = {name: xpath_variable(name) for name in known}
        of_nodes = frozenset(self.names.values())
        self.fragments = (
            compiled_fragments(self.element, self.plain, of_nodes)
            if self.is_bare and not self.others
            else None
        )

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
                self.clocks |= {each for each in CLOCKS if f"${each}" in translated.text}
                plain = None if "" in scope else plain_path(translated.text)
                if plain is None:
                    self.others.append(part.expression.strip())
                else:
                    self.plain[part.start] = plain
            elif isinstance(part, ConstructedElement):
                self._compile(part, scope, known)


_compiled = functools.lru_cache(maxsize=1024)(_Compiled)


def xpath2_expressions(select: Constructor) -> Sequence[str]:
    """Return the expressions that are evaluated as XPath 2.0, for each output, as written."""
    return tuple(_compiled(select.text, select.namespaces, tuple(select.variables)).others)


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
    """One evaluation of a constructor: `nodes` and `values` are by the names of XPath variables."""

    def __init__(
        self,
        compiled: _Compiled,
        nodes: Mapping[str, Bound],
        values: Mapping[str, Any],
        meter: Meter,
    ) -> None:
        self.compiled = compiled
        self.nodes = nodes
        self.values = values
        self.meter = meter

    def text(self, is_list: bool) -> str:
        compiled = self.compiled
        try:
            if compiled.is_bare:
                text = self.written(compiled.element)
            else:
                scope = {**KNOWN_PREFIXES, **compiled.namespaces}
                if is_list:
                    scope.pop("", None)
                copies: list[Copy] = []
                element = self.element(compiled.element, scope, None, copies)
                text = spliced(element, copies, list(compiled.namespaces))
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

    def written(self, syntax: ConstructedElement) -> str:
        """Return an element in no namespace as text."""
        attributes = [
            f' {each.name}="{attribute_text(self.attribute(each))}"' for each in syntax.attributes
        ]
        content = TextContent(self.meter, list(self.compiled.namespaces))
        for part in syntax.content:
            if isinstance(part, ConstructedElement):
                content.parts.append(self.written(part))
            elif isinstance(part, Enclosed):
                self.add_sequence(content, part)
            else:
                content.add_text(part)
        return tagged(syntax.name, attributes, content.parts)

    def element(
        self,
        syntax: ConstructedElement,
        scope: Mapping[str, str],
        parent: Any,
        copies: list[Copy],
    ) -> Any:
        """Return an element as a tree, with marks for `copies`."""
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
            value = self.attribute(attribute)
            made.set(_expanded(attribute.name, scope, is_element=False), value)
        content = TreeContent(self.meter, made, copies)
        for part in syntax.content:
            if isinstance(part, ConstructedElement):
                self.element(part, scope, made, copies)
            elif isinstance(part, Enclosed):
                self.add_sequence(content, part)
            else:
                content.add_text(part)
        return made

    def attribute(self, attribute: Attribute) -> str:
        """Return the value of an attribute."""
        return "".join(
            [
                part if isinstance(part, str) else " ".join(map(_text, self.evaluate(part)))
                for part in attribute.parts
            ]
        )

    def add_sequence(self, content: TextContent | TreeContent, part: Enclosed) -> None:
        """Add copies of nodes and the text of atomic values, spaces between adjacent values."""
        run: list[str] = []
        after_value = False
        for item in self.evaluate(part):
            is_node = isinstance(item, _NODES)
            if not is_node:
                run.append(f"{' ' if after_value else ''}{_text(item)}")
            elif isinstance(item, TextNode):
                run.append(item.value)
            else:
                add_run(content, run)
                if not isinstance(item, elementpath.XPathNode):
                    content.add_copy(item)
            if run:
                self.meter.spend(size(run[-1]))
            after_value = not is_node
        add_run(content, run)

    # -- expressions ---------------------------------------------------------------------------

    def evaluate(self, part: Enclosed) -> Iterable[Any]:
        """Return the items of an expression: atomic values, and nodes of ours."""
        plain = self.compiled.plain.get(part.start)
        found = None if plain is None else self.look_up(plain)
        return self.select(part) if found is None else found

    def look_up(self, path: PlainPath) -> Sequence[Any] | None:
        """Return what a path finds; None where it is not of nodes, or elementpath has to say."""
        nodes = self.nodes.get(path.variable)
        if nodes is None:
            value = self.values.get(path.variable)
            return [value] if isinstance(value, _ATOMIC) and not path.steps else None
        self.meter.spend(STEP_BYTES * len(nodes))
        if not path.steps:
            return [node for _, _, node in nodes]
        return path.below([node for _, _, node in sorted(nodes, key=itemgetter(0))], self.meter)

    def select(self, part: Enclosed) -> Iterator[Any]:
        """Yield the items of an expression as elementpath evaluates it."""
        expression = self.compiled.expressions[part.start]
        root = elementpath.get_node_tree(etree.Element("none"), fragment=True)
        context = MeteredContext(self.meter, root=root, variables=dict(self.variables))
        for item in expression.select(context):
            yield _own_node(item) if isinstance(item, elementpath.XPathNode) else item

    @cached_property
    def variables(self) -> Mapping[str, Any]:
        """The variables as elementpath has them."""
        variables = dict(self.values)
        for name, bound in self.nodes.items():
            found = [xpath_node(tree, place, node) for place, tree, node in bound]
            variables[name] = found[0] if len(found) == 1 else found
        return variables


_NODES = (etree._Element, AttributeNode, TextNode, elementpath.XPathNode)
_ATOMIC = (str, bool, int, float, Decimal, DateTime10, DayTimeDuration)


def _own_node(item: Any) -> Any:
    """Return our node for one of elementpath's; itself for a namespace, which is never copied."""
    kind = item.node_kind
    if kind == "text":
        return TextNode(None, 0, item.string_value)
    if kind == "attribute":
        return AttributeNode(None, item.name, item.string_value)
    if kind == "element":
        return item.elem
    return item.document.getroot() if kind == "document" else item


def _expanded(name: str, scope: Mapping[str, str], is_element: bool) -> str:
    prefix, colon, local = name.rpartition(":")
    uri = scope.get(prefix) if colon or is_element else None
    return f"{{{uri}}}{local}" if uri else local


def _text(item: Any) -> str:
    """Return the text of an atomic value, or the string value of a node."""
    if isinstance(item, (AttributeNode, TextNode)):
        return item.value
    if isinstance(item, etree._Element):
        return text_within(item)
    if isinstance(item, elementpath.XPathNode):
        return str(item.string_value)
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, float):
        return spell_double(item)
    if isinstance(item, Decimal):
        return spell_decimal(item)
    return str(item)
