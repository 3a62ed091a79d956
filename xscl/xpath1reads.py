"""What a condition of XPath 1.0 reads of a document, whatever its predicates say.

More than it reads does no harm: steps along axes that we do not have are ones that select more.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xscl.namespaces import Namespaces
from xscl.path import ANY, DECLARATIONS, Axis, Excerpt, NodeTest, Path, Step, node_test
from xscl.syntax import (
    Binary,
    Expression,
    Filter,
    FunctionCall,
    Junction,
    Negative,
    PathExpression,
    StepSyntax,
)

__all__ = ["excerpt_read_by_xpath"]

_Places = tuple[tuple[Step, ...], ...]
"""The nodes at which something is asked, each by a path of names from where all begins."""

_OF_CONTEXT = frozenset({"string", "number", "string-length", "normalize-space"})
"""Functions that without an argument read the text of the context node."""

_OF_NAMES = frozenset({"count", "name", "local-name", "namespace-uri", "boolean", "not"})
"""Functions that read no text of the nodes that are their argument."""

_ANY = node_test(ANY, ANY)
_TEXT = node_test("", None, True)
_DOCUMENT = Step(Axis.DOCUMENT, _ANY)
_PARENT = Step(Axis.PARENT, _ANY)
_BELOW = Step(Axis.SELF, _ANY, is_deep=True)
_LANGUAGE = (
    Step(Axis.ANCESTOR, _ANY),
    Step(Axis.ATTRIBUTE, node_test("lang", "http://www.w3.org/XML/1998/namespace")),
)


def excerpt_read_by_xpath(expression: Expression, namespaces: Namespaces) -> Excerpt:
    """Return what an expression reads of the document."""
    reading = _ReadByXPath(namespaces)
    reading.ask(expression, ((),))
    return Excerpt(tuple(reading.paths), tuple(reading.texts))


@dataclass(slots=True)
class _ReadByXPath:
    """What is gathered while an expression is looked through."""

    namespaces: Namespaces
    paths: set[Path] = field(default_factory=set)
    texts: set[Path] = field(default_factory=set)

    def ask(self, expression: Expression, at: _Places) -> _Places:
        """Gather what an expression reads, but for the text of nodes that it selects."""
        match expression:
            case PathExpression():
                return self._path(expression, at)
            case Filter(primary=primary, predicates=predicates):
                found = self.ask(primary, at)
                self._filter(predicates, found)
                return found
            case Binary(operator="|", left=left, right=right):
                return (*self.ask(left, at), *self.ask(right, at))
            case Binary(left=left, right=right):
                self._read(left, at)
                self._read(right, at)
            case Negative(operand=operand):
                self._read(operand, at)
            case Junction(terms=terms):
                for each in terms:
                    self.ask(each, at)
            case FunctionCall(name="lang", arguments=arguments):
                self.paths.update(Path((*each, *_LANGUAGE)) for each in at)
                for each in arguments:
                    self._read(each, at)
            case FunctionCall(name=name, arguments=[]) if name in _OF_CONTEXT:
                self.texts.update(map(Path, at))
            case FunctionCall(name=name, arguments=arguments):
                for each in arguments:
                    (self.ask if name in _OF_NAMES else self._read)(each, at)
        return ()

    def _read(self, expression: Expression, at: _Places) -> None:
        """Gather what an expression reads, the text of nodes too."""
        self.texts.update(map(Path, self.ask(expression, at)))

    def _path(self, path: PathExpression, at: _Places) -> _Places:
        if path.is_absolute:
            at = ((_DOCUMENT,),)
        if path.start is not None:
            at = self.ask(path.start, at)
        for step in path.steps:
            tests = self._steps(step)
            if tests and tests[0][:1] == (_DOCUMENT,):
                at = ((),)
            at = tuple((*above, *each) for above in at for each in tests)
            self.paths.update(map(Path, at))
            self._filter(step.predicates, at)
        return at

    def _filter(self, predicates: Iterable[Expression], at: _Places) -> None:
        for each in predicates:
            self.ask(each, at)

    def _steps(self, step: StepSyntax) -> list[tuple[Step, ...]]:
        """Return paths that select all that a step does, more than one where it is of two kinds."""
        is_deep = step.is_deep or step.axis in ("descendant", "descendant-or-self")
        from_all = (_BELOW,) if is_deep else ()
        match step.axis:
            case "attribute":
                kind = step.test.kind
                test = _ANY if kind == "node" else self._name(step) if kind == "name" else None
                return [] if test is None else [(Step(Axis.ATTRIBUTE, test, is_deep),)]
            case "child" | "descendant":
                return [(Step(Axis.CHILD, each, is_deep),) for each in self._children(step)]
            case "self" | "descendant-or-self":
                return [from_all]
            case "parent":
                return [(*from_all, _PARENT)]
            case "ancestor" | "ancestor-or-self":
                is_named = step.test.kind == "name"
                return [(*from_all, Step(Axis.ANCESTOR, self._name(step) if is_named else _ANY))]
            case "following-sibling" | "preceding-sibling":
                return [
                    (*from_all, _PARENT, Step(Axis.CHILD, each)) for each in self._children(step)
                ]
            case "following" | "preceding":
                return [(_DOCUMENT, Step(Axis.CHILD, e, True)) for e in self._children(step)]
        assert step.axis == "namespace"
        return [(Step(Axis.ATTRIBUTE, DECLARATIONS, is_deep),)]

    def _children(self, step: StepSyntax) -> list[NodeTest]:
        match step.test.kind:
            case "name":
                return [self._name(step)]
            case "text":
                return [_TEXT]
            case "node":
                return [_ANY, _TEXT]
        return []

    def _name(self, step: StepSyntax) -> NodeTest:
        test = step.test
        if test.prefix == "*":
            return node_test(test.name, ANY)
        if test.prefix is not None:
            return node_test(test.name, self.namespaces.uri(test.prefix, test.span))
        if test.name == ANY:
            return _ANY
        return node_test(test.name, None if step.axis == "attribute" else self.namespaces.default)
