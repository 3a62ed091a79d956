"""Conditions of XPath 1.0 that are asked of many elements of one tree, as sets of these.

`following-sibling::item/price < 5` looks at `n` siblings from each of `n`.  Here it goes back from
the prices below 5, once: to their items, and from all of these together to what stands before the
last.  Each step back takes as long as the tree is, so a condition does, from wherever it is asked
(Gottlob, Koch, Pichler 2005).  It has paths that nothing counts on, compared with a number or a
string, and what `and`, `or` and `not` make of them; of others there is no set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from lxml import etree

from xscl.arithmetic import COMPARE
from xscl.cursor import UnreadableError
from xscl.expressions import ExpressionParser
from xscl.nodes import text_within
from xscl.path import ANY, NodeTest, matches_name
from xscl.report import Report
from xscl.syntax import (
    TURNED,
    Binary,
    Expression,
    FunctionCall,
    Junction,
    Negative,
    NumberLiteral,
    PathExpression,
    StepSyntax,
    StringLiteral,
)
from xscl.xpath1numbers import as_number, number_of_text

__all__ = ["TreeSets"]

_DOCUMENT = -1

_Set = frozenset[int]
_Passes = Callable[[str], bool]


class _NoSetError(Exception):
    """A condition is none of those that are sets here."""


class TreeSets:
    """The elements of a tree for which conditions hold, by number; the document node has one, too.

    >>> tree = etree.XML("<a><b>1</b><c/><b>7</b><c/></a>")
    >>> sets = TreeSets(tree)
    >>> [sets.has("following-sibling::b > 5", (), each) for each in tree]
    [True, True, False, False]
    >>> sets.has("following-sibling::b[1] > 5", (), tree) is None
    True
    """

    def __init__(self, root: etree._Element) -> None:
        self._elements = [*root.iter("*")]
        numbers = {each: i for i, each in enumerate(self._elements)}
        self._numbers = numbers
        above = (each.getparent() for each in self._elements)
        self._parents = [_DOCUMENT if e is None else numbers[e] for e in above]
        self._children: dict[int, list[int]] = {}
        self._ends = [i + 1 for i in range(len(self._elements))]
        for i, parent in enumerate(self._parents):
            self._children.setdefault(parent, []).append(i)
        for i in reversed(range(1, len(self._elements))):
            parent = self._parents[i]
            self._ends[parent] = max(self._ends[parent], self._ends[i])
        self._all = frozenset(range(_DOCUMENT, len(self._elements)))
        self._texts: dict[int, str] = {}
        self._known: dict[str, bytes | None] = {}

    def has(
        self, expression: str, namespaces: tuple[tuple[str, str], ...], element: etree._Element
    ) -> bool | None:
        """Return whether a condition holds at an element; None where there is no set of it."""
        if expression not in self._known:
            if len(self._known) * len(self._elements) >= _KNOWN_MAX:
                return None
            try:
                found = self._packed(self._holding(_parsed(expression), dict(namespaces)))
            except _NoSetError:
                found = None
            self._known[expression] = found
        known, number = self._known[expression], self._numbers[element]
        return None if known is None else bool(known[number >> 3] >> (number & 7) & 1)

    def _packed(self, nodes: _Set) -> bytes:
        """Return the elements among nodes as bits."""
        bits = bytearray((len(self._elements) + 7) >> 3)
        for node in nodes:
            if node >= 0:
                bits[node >> 3] |= 1 << (node & 7)
        return bytes(bits)

    def _holding(self, asked: Expression, names: dict[str, str]) -> _Set:
        """Return the nodes at which an expression is true."""
        match asked:
            case Junction(word, terms):
                sets = [self._holding(each, names) for each in terms]
                both = word == "and"
                return frozenset.intersection(*sets) if both else frozenset.union(*sets)
            case FunctionCall(name="not", arguments=[inner]):
                return self._all - self._holding(inner, names)
            case FunctionCall(name="boolean", arguments=[inner]):
                return self._holding(inner, names)
            case PathExpression():
                return self._from(asked, names, None)
            case Binary(operator, PathExpression() as path, constant) if operator in COMPARE:
                return self._from(path, names, _passes(operator, constant))
            case Binary(operator, constant, PathExpression() as path) if operator in COMPARE:
                return self._from(path, names, _passes(TURNED[operator], constant))
        raise _NoSetError

    def _from(self, path: PathExpression, names: dict[str, str], passes: _Passes | None) -> _Set:
        """Return the nodes from which a path selects some node, one whose text passes a test."""
        if path.start is not None:
            raise _NoSetError
        found, last = self._all, len(path.steps) - 1
        if last < 0 and passes is not None:
            raise _NoSetError
        for i in reversed(range(last + 1)):
            step, wanted = path.steps[i], passes if i == last else None
            if step.is_deep and step.axis not in ("child", "descendant", "attribute"):
                raise _NoSetError  # texts are among what it begins at
            if step.axis == "attribute" and i == last:
                found = self._owners(step, names, wanted)
            else:
                tested = self._tested(step, names, found)
                if wanted is not None:
                    tested = frozenset(n for n in tested if wanted(self._text(n)))
                found = self._back(step.axis, tested)
            if step.is_deep:
                found = self._back("descendant-or-self", found)
        if path.is_absolute:
            return self._all if _DOCUMENT in found else frozenset()
        return found

    def _tested(self, step: StepSyntax, names: dict[str, str], nodes: _Set) -> _Set:
        """Return which nodes pass the node test and the predicates of a step."""
        match step.test.kind:
            case "name":
                test, elements = _name_test(step, names), self._elements
                nodes = frozenset(
                    n for n in nodes if n >= 0 and matches_name(test, str(elements[n].tag))
                )
            case "node":
                # Texts are nodes as well: elements are all where only these can be selected.
                if step.axis not in ("self", "parent", "ancestor", "ancestor-or-self"):
                    raise _NoSetError
            case _:
                raise _NoSetError
        for each in step.predicates:
            nodes &= self._holding(each, names)
        return nodes

    def _owners(self, step: StepSyntax, names: dict[str, str], passes: _Passes | None) -> _Set:
        """Return the elements with an attribute, one that passes a test."""
        if step.test.kind != "name" or step.predicates:
            raise _NoSetError
        test = _name_test(step, names)
        return frozenset(
            number
            for number, element in enumerate(self._elements)
            if any(
                matches_name(test, str(name)) and (passes is None or passes(str(value)))
                for name, value in element.attrib.items()
            )
        )

    def _text(self, node: int) -> str:
        text = self._texts.get(node)
        if text is None:
            text = text_within(self._elements[max(node, 0)])
            self._texts[node] = text
        return text

    def _back(self, axis: str, nodes: _Set) -> _Set:
        """Return the nodes from which an axis leads to some of others."""
        match axis:
            case "self":
                return nodes
            case "child":
                return frozenset(self._parents[n] for n in nodes if n >= 0)
            case "parent":
                return frozenset(c for n in nodes for c in self._children.get(n, ()))
            case "descendant":
                return self._above(nodes)
            case "descendant-or-self":
                return nodes | self._above(nodes)
            case "ancestor":
                return self._below(nodes)
            case "ancestor-or-self":
                return nodes | self._below(nodes)
            case "following-sibling" | "preceding-sibling":
                return frozenset(self._beside(nodes, is_before=axis == "following-sibling"))
            case "following":
                last = max(nodes, default=_DOCUMENT)
                return frozenset(n for n, end in enumerate(self._ends) if end <= last)
            case "preceding":
                first = min((self._ends[n] for n in nodes if n >= 0), default=len(self._ends))
                return frozenset(range(first, len(self._ends)))
        raise _NoSetError

    def _above(self, nodes: _Set) -> _Set:
        found: set[int] = set()
        for node in nodes:
            while node != _DOCUMENT:
                node = self._parents[node]
                if node in found:
                    break
                found.add(node)
        return frozenset(found)

    def _below(self, nodes: _Set) -> _Set:
        if _DOCUMENT in nodes:
            return self._all - {_DOCUMENT}
        found: list[int] = []
        end = 0
        for node in sorted(nodes):
            found += range(max(node + 1, end), self._ends[node])
            end = max(end, self._ends[node])
        return frozenset(found)

    def _beside(self, nodes: _Set, *, is_before: bool) -> Iterable[int]:
        """Yield the elements that have some of others for siblings behind, or before."""
        ends: dict[int, int] = {}
        choose = max if is_before else min
        for node in nodes:
            if node > 0:
                parent = self._parents[node]
                ends[parent] = choose(ends.get(parent, node), node)
        for parent, end in ends.items():
            for child in self._children[parent]:
                if child < end if is_before else child > end:
                    yield child


_KNOWN_MAX = 1 << 28
"""So many bits are kept of one tree, one for each element and condition; others are asked there."""


@lru_cache(maxsize=1_024)
def _parsed(expression: str) -> Expression:
    report = Report(expression)
    parser = ExpressionParser(expression, report)
    try:
        found = parser.expression()
    except UnreadableError as error:
        raise _NoSetError from error
    if report.errors or parser.token.kind != "end":
        raise _NoSetError
    return found


def _name_test(step: StepSyntax, names: dict[str, str]) -> NodeTest:
    """Return what the name test of a step asks of expanded names."""
    prefix, name = step.test.prefix, step.test.name
    if prefix is None:
        return NodeTest(name, ANY if name == ANY else None)
    if prefix not in names:
        raise _NoSetError
    return NodeTest(name, names[prefix])


def _passes(operator: str, constant: Expression) -> _Passes:
    """Return what tells whether a node with a text passes a comparison with a constant."""
    compare = COMPARE[operator]
    match constant:
        case StringLiteral(value=text) if operator in ("=", "!="):
            return lambda own: (own == text) is (operator == "=")
        case StringLiteral(value=text):
            number = number_of_text(text)
        case NumberLiteral(value=given):
            number = as_number(given)
        case Negative(NumberLiteral(value=given)):
            number = -as_number(given)
        case _:
            raise _NoSetError
    return lambda own: compare(number_of_text(own), number)
