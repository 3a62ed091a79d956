"""From a block to its tree pattern: what becomes a node of it, what a test, what a filter.

`xscl.pattern` says what tree patterns are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NamedTuple

from xscl.constants import (
    Given,
    admitted_constant,
    tested_excerpt,
    tested_parameter,
    tested_position,
    tested_step,
)
from xscl.disjunctions import DataForm
from xscl.functions import to_double
from xscl.hoisting import hoist
from xscl.path import (
    ANY,
    And,
    Axis,
    Comparison,
    Condition,
    Exists,
    FunctionValue,
    Literal,
    NodeTest,
    Parameter,
    Path,
    PathValue,
    Step,
    StringTest,
    Value,
    XPathValue,
    binding_paths,
    condition_parameters,
    conjuncts,
    counts_positions,
    node_test,
    value_paths,
)
from xscl.pattern import (
    DOCUMENT,
    DataTest,
    PatternNode,
    TreePattern,
    derivation,
    term_variable,
)
from xscl.prefilters import Admitted, Prefilter, Values, ValuesKind, spell_number
from xscl.query import Block, Derived, PathFrom, ValuesFrom
from xscl.query import Call as DerivedCall
from xscl.rewriting import strip_variables, without_predicates
from xscl.texttests import text_test

__all__ = ["tree_pattern"]

Filters = tuple[Condition, ...]


def tree_pattern(
    block: Block,
    needed: Collection[str],
    derived: Iterable[tuple[str, DerivedCall | PathFrom | ValuesFrom]] = (),
    dropped: Collection[str] = (),
    texts: Collection[str] = (),
    *,
    shares_constants: bool = False,
) -> TreePattern:
    """Return a block's pattern with the needed variables and derived terms as nodes.

    `derived` gives each derived term's name and its function of one variable of the block, or
    the optional path from one.
    Predicates that bind a variable in `dropped` are left out, as if they had not been written.
    `texts` are the parameters that stand for strings.
    With `shares_constants` numbers and words that are written out are data where they can be.
    The block root is always a node.
    """
    derived = tuple(derived)
    shown = wanted = frozenset((*needed, block.root))
    if derived:
        wanted = shown.union([term_variable(call) for _, call in derived])
    builder = _Builder(wanted, shown, texts, shares_constants)
    path = without_predicates(block.path, frozenset(dropped)) if dropped else block.path
    builder.add_path(DOCUMENT, path)
    for name, path in block.keys:
        if name in shown:
            builder.add_path(DOCUMENT, binding(path, name))
    for term, call in derived:
        builder.add_derived(term, call)
    return TreePattern(block.stream, builder.pattern_nodes())


def binding(path: Path, variable: str) -> Path:
    """Return a path whose last step binds a variable."""
    return Path((*path.steps[:-1], path.steps[-1].named(variable)))


@lru_cache(maxsize=4_096)
def _alone(variable: str) -> tuple[str, ...]:
    """Return the terms of a node that has one; equal ones are one object, in many patterns."""
    return (variable,)


@lru_cache(maxsize=16_384)
def _bare_node(
    parent: int,
    axis: Axis,
    is_deep: bool,
    term: str | None,
    name: str,
    namespace: str | None,
    is_text: bool,
) -> PatternNode:
    """Return a node of which nothing is asked; equal ones are one object, in many patterns.

    A node test is known by what it is made of: to look that up takes half the time.
    """
    test = node_test(name, namespace, is_text)
    return PatternNode(parent, axis, test, is_deep, terms=() if term is None else _alone(term))


@dataclass(slots=True)
class _Node:
    """A node of a pattern that is being built."""

    parent: int
    axis: Axis
    test: NodeTest
    is_deep: bool = False
    filters: tuple[Condition, ...] = ()
    terms: tuple[str, ...] = ()
    tests: tuple[DataTest, ...] = ()
    derivation: Derived | PathFrom | Values | None = None
    admitted: tuple[Admitted, ...] = ()
    given: tuple[Given, ...] = ()

    def made(self) -> PatternNode:
        """Return the node as it is now."""
        test, own = self.test, (self.parent, self.axis, self.test, self.is_deep)
        if not (self.filters or self.tests or self.derivation or self.admitted or self.terms[1:]):
            term = self.terms[0] if self.terms else None
            named = test.name, test.namespace, test.is_text
            return _bare_node(self.parent, self.axis, self.is_deep, term, *named)
        prefilters = {prefilter for prefilter, _ in self.admitted} if self.admitted else ()
        return PatternNode(
            *own,
            self.filters,
            self.terms,
            self.tests,
            self.derivation,
            tuple(sorted(prefilters, key=repr)),
            self.admitted,
        )

    def values(self, index: int) -> Iterator[_Node]:
        """Yield a node below this one, at an index, for each kind of values that are tested."""
        tests: dict[Values, list[DataTest]] = {}
        for prefilter, data in sorted((*self.admitted, *self.given), key=repr):
            form = _data_form(prefilter)
            if form is DataForm.SPELLED and isinstance(data, (str, float)):
                data = spell_number(to_double(data))
            for values, operator in prefilter.tested:
                test = DataTest(operator, data, values.is_of_several, form)
                tests.setdefault(values, []).append(test)
        for values, own in tests.items():
            distinct = tuple(dict.fromkeys(own))
            yield _Node(index, Axis.SELF, NodeTest(ANY), tests=distinct, derivation=values)


def _data_form(prefilter: Prefilter) -> DataForm:
    """Return what data are held against the values of a prefilter as."""
    if prefilter.values.kind is ValuesKind.ONLY:
        return DataForm.SPELLED
    operand = prefilter.operands[0]
    is_number = isinstance(operand, XPathValue) and not operand.is_text
    if prefilter.chain is None and not is_number:
        return DataForm.PLAIN
    # What is no number passes no bound, and fails none.
    return DataForm.XPATH_NUMBER_ONLY if prefilter.holds_of_none else DataForm.XPATH_NUMBER


class _Split(NamedTuple):
    """A step's filters, its branches, the tests of its own value, and those of its values.

    The latter have constants, which are `admitted`, or are `given` parameters.
    """

    filters: Filters = ()
    branches: tuple[Condition, ...] = ()
    tests: tuple[DataTest, ...] = ()
    admitted: tuple[Admitted, ...] = ()
    given: tuple[Given, ...] = ()


_NOTHING = _Split()


@dataclass(slots=True)
class _Builder:
    """`wanted` are the variables whose nodes must be there, `shown` variables that are terms.

    Of some nodes more is asked than their name: they are `own` ones of the pattern.
    """

    wanted: frozenset[str]
    shown: frozenset[str]
    texts: Collection[str]
    shares_constants: bool
    nodes: list[PatternNode] = field(default_factory=list)
    own: dict[int, _Node] = field(default_factory=dict)
    node_by_variable: dict[str, int] = field(default_factory=dict)

    def pattern_nodes(self) -> tuple[PatternNode, ...]:
        """Return the nodes as they are now, those of tested values last."""
        for i, own in sorted(self.own.items()) if self.own else ():
            self.nodes[i] = own.made()
            if own.admitted or own.given:
                self.nodes += [each.made() for each in own.values(i)]
        return tuple(self.nodes)

    def add_path(self, parent: int, path: Path) -> int:
        if not self.shares_constants:
            for step in path.steps:
                parent = self.add_step(parent, step, shares_constants=False)
            return parent
        # What stands above a node that a tuple shows is one node, unless `//` is between them.
        are_one: list[bool] = []
        is_above = False
        for step in reversed(path.steps):
            is_one = is_above or step.variable in self.shown
            are_one.append(is_one)
            is_above = is_one and not step.is_deep
        for step, is_one in zip(path.steps, reversed(are_one), strict=True):
            parent = self.add_step(parent, step, shares_constants=is_one)
        return parent

    def add_step(self, parent: int, step: Step, *, shares_constants: bool) -> int:
        """Add a step; constants of its node are data only if a tuple has one such node."""
        if step.axis is not Axis.SELF and (paths := self._bare_paths(step.predicates)) is not None:
            return self._add_bare(parent, step, paths)
        is_split = bool(step.predicates)
        split = self.split(step, shares_constants=shares_constants) if is_split else _NOTHING
        filters = split.filters
        if step.axis is Axis.SELF and not step.is_deep and parent != DOCUMENT:
            index = self._refine(parent, filters)
        else:
            index = len(self.nodes)
            node = _Node(parent, step.axis, step.test, step.is_deep, filters)
            self.nodes.append(node.made())
            self.own[index] = node
        if step.variable in self.wanted:
            self._bind(index, step.variable)
        self._add_tests(index, split.tests)
        if split.admitted or split.given:
            self._own(index).admitted += split.admitted
            self._own(index).given += split.given
        for branch in split.branches:
            if isinstance(branch, Exists):
                self.add_path(index, self._up_to_bound(branch.path))
            else:
                self._add_compared(index, branch)
        return index

    def _bare_paths(self, predicates: tuple[Condition, ...]) -> list[tuple[Step, ...]] | None:
        """Return the paths if all ask for names alone, and each ends where one is wanted."""
        wanted, found = self.wanted, list[tuple[Step, ...]]()
        for predicate in predicates:
            if not isinstance(predicate, Exists):
                return None
            steps = predicate.path.steps
            if not steps or steps[-1].variable not in wanted:
                return None
            for step in steps:
                if step.predicates or step.axis is Axis.SELF:
                    return None
            found.append(steps)
        return found

    def _add_bare(self, parent: int, first: Step, paths: Sequence[tuple[Step, ...]]) -> int:
        """Add a step and the paths below it, of which names are asked, as in patterns of others."""
        nodes, wanted, shown = self.nodes, self.wanted, self.shown
        index = at = len(nodes)
        for steps in ((first,), *paths):
            for step in steps:
                term, test = step.variable, step.test
                if term is not None and term in wanted:
                    self.node_by_variable[term] = at
                if term not in shown:
                    term = None
                bare = _bare_node(
                    parent, step.axis, step.is_deep, term, test.name, test.namespace, test.is_text
                )
                nodes.append(bare)
                parent, at = at, at + 1
            parent = index
        return index

    def _own(self, index: int) -> _Node:
        """Return a node of which more is asked than its name."""
        own = self.own.get(index)
        if own is None:
            bare = self.nodes[index]
            own = _Node(bare.parent, bare.axis, bare.test, bare.is_deep, terms=bare.terms)
            self.own[index] = own
        return own

    def _refine(self, index: int, filters: tuple[Condition, ...]) -> int:
        """A self step asks more of the node before it, as filters that follow those it has."""
        node = self._own(index)
        if any(map(counts_positions, filters)):
            # It selects one node: positions in it are not those among the nodes of that step.
            alone = Step(Axis.SELF, NodeTest(ANY, ANY), predicates=filters)
            filters = (Exists(Path((alone,))),)
        node.filters += filters
        return index

    def _bind(self, index: int, variable: str | None) -> None:
        assert variable is not None
        self.node_by_variable[variable] = index
        if variable in self.shown:
            node = self._own(index)
            node.terms = (*node.terms, variable) if node.terms else _alone(variable)

    def _add_tests(self, index: int, tests: tuple[DataTest, ...]) -> None:
        if tests:
            node = self._own(index)
            node.tests = tuple(dict.fromkeys((*node.tests, *tests)))

    def _add_compared(self, index: int, branch: Condition) -> None:
        match branch:
            case Comparison(PathValue(path)) | StringTest(value=PathValue(path)):
                test = self._test(branch)
                assert test is not None
                self._add_tests(self.add_path(index, path), (test,))
            case _:  # pragma: no cover - `split` makes no other branches
                raise AssertionError(branch)

    def add_derived(self, term: str, call: DerivedCall | PathFrom | ValuesFrom) -> None:
        base = self.node_by_variable[term_variable(call)]
        own = derivation(call)
        node = PatternNode(base, Axis.SELF, NodeTest("*"), terms=(term,), derivation=own)
        self.nodes.append(node)

    def split(self, step: Step, *, shares_constants: bool) -> _Split:
        """Return the parts of a step that has predicates; no data without `shares_constants`."""
        paths = [p for p in step.predicates if isinstance(p, Exists) and self._binds(p.path)]
        if len(paths) == len(step.predicates):  # as mostly
            return _Split(branches=step.predicates)
        held = tested_position(step, self.texts)
        predicates = tuple(conjuncts(step.predicates[held is not None :]))
        counting = 0
        for i, predicate in enumerate(predicates, 1):
            if counts_positions(predicate):
                counting = i
        counted = tuple(strip_variables(p) for p in predicates[:counting])
        branches = [b for p in predicates[:counting] for b in self._binding_branches(p)]
        uncounted: list[Condition] = []
        tests: list[DataTest] = []
        admitted: list[Admitted] = []
        given: list[Given] = [] if held is None else [held]
        if (whole := tested_step(replace(step, predicates=counted), self.texts)) is not None:
            given.append(whole)
            counted = ()
        for predicate in predicates[counting:]:
            if isinstance(predicate, Exists) and self._binds(predicate.path):
                branches.append(predicate)
                continue
            is_binding = any(map(self._binds, binding_paths(predicate)))
            asked = predicate if is_binding else hoist(strip_variables(predicate))
            test = self._test(asked)
            whole = self._excerpt(predicate, asked)
            if shares_constants and (found := self._admitted(asked)) is not None:
                admitted.append(found)
            elif whole is not None:
                given.append(whole)
            elif test is not None:
                if _tested_path(asked).steps:
                    branches.append(asked)
                else:
                    tests.append(test)
            elif (held := self._given(asked)) is not None:
                given.append(held)
            elif binding := self._binding_branches(predicate):
                branches.extend(binding)
            elif (selecting := _selecting_by_data(predicate)) is not None:
                branches.append(_up_to_data(selecting))
            else:
                uncounted.append(strip_variables(predicate))
        # Without positions the order of filters means nothing: one order, one definition.
        if len(uncounted) > 1:
            uncounted = sorted(dict.fromkeys(uncounted), key=repr)
        filters = (*counted, *uncounted)
        return _Split(filters, tuple(branches), tuple(tests), tuple(admitted), tuple(given))

    def _admitted(self, predicate: Condition) -> Admitted | None:
        """Return a predicate as a condition with a constant that is data; None if it is none."""
        stripped = strip_variables(predicate)
        found = admitted_constant(stripped)
        # A path that binds something has a node of its own for what it selects.
        if found is None or any(map(self._binds, binding_paths(predicate))):
            return None
        return None if any(condition_parameters(stripped)) else found

    def _given(self, predicate: Condition) -> Given | None:
        """Return a predicate as a test of values with a parameter; None if it is none."""
        if any(map(self._binds, binding_paths(predicate))):
            return None
        return tested_parameter(strip_variables(predicate), self.texts)

    def _excerpt(self, predicate: Condition, asked: Condition) -> Given | None:
        """Return a predicate as a test of an excerpt; None if it is none, or has another form."""
        if not any(condition_parameters(asked)) or self._given(asked) is not None:
            return None
        if any(map(self._binds, binding_paths(predicate))) or self._is_of_nodes(asked):
            return None
        return tested_excerpt(strip_variables(predicate), self.texts)

    def _is_of_nodes(self, asked: Condition) -> bool:
        """Return whether a condition is one of nodes of which each has data of its own."""
        if self._test(asked) is not None:
            path = _tested_path(asked)
        elif (selecting := _selecting_by_data(asked)) is not None:
            path = selecting
        else:
            return False
        trial = _Builder(self.wanted, self.shown, self.texts, shares_constants=False)
        trial.nodes.append(_bare_node(DOCUMENT, Axis.CHILD, False, None, ANY, ANY, False))
        trial.add_path(0, path)
        return all(map(_has_own_data, trial.pattern_nodes()))

    def _test(self, predicate: Condition) -> DataTest | None:
        """Return a predicate as a test of the node that its path selects; None if it is none."""
        match predicate:
            case Comparison(PathValue(), "=", Literal(str() as text)):
                return DataTest("=", text)
            case Comparison(PathValue(), ("=" | "!=") as operator, Parameter(name) as given):
                return DataTest(operator, given) if name in self.texts else None
            case Comparison(PathValue(), operator, Parameter() as given):
                return DataTest(operator, given)
            case StringTest(function, PathValue(), Parameter() as given, flags):
                found = text_test(function, flags)
                return DataTest(found, given) if found else None
        return None

    def _binding_branches(self, predicate: Condition) -> list[Condition]:
        """Return the paths of a predicate that bind something wanted, each as a branch."""
        if isinstance(predicate, Exists):
            return [predicate] if self._binds(predicate.path) else []
        return [Exists(path) for path in _positive_paths(predicate) if self._binds(path)]

    def _up_to_bound(self, path: Path) -> Path:
        """Return a path up to the last step that binds something wanted, which must have the rest.

        Nobody looks at the nodes behind it, so as nodes of the pattern they would not be missed.
        """
        bound = [i for i, step in enumerate(path.steps) if self._binds(Path((step,)))]
        if not bound or bound[-1] == len(path.steps) - 1:
            return path
        step, rest = path.steps[bound[-1]], Exists(Path(path.steps[bound[-1] + 1 :]))
        step = replace(step, predicates=(*step.predicates, rest))
        return Path((*path.steps[: bound[-1]], step))

    def _binds(self, path: Path) -> bool:
        """Return whether a path binds something wanted."""
        for step in path.steps:
            if step.variable in self.wanted:
                return True
            if step.predicates and not self.wanted.isdisjoint(step.variables()):
                return True
        return False


def _has_own_data(node: PatternNode) -> bool:
    """Return whether the data that a node is held against are asked of it, and what is below it."""
    if any(any(condition_parameters(each)) for each in node.filters):
        return False
    return not (isinstance(node.derivation, Values) and node.derivation.leads_upwards)


def _selecting_by_data(condition: Condition) -> Path | None:
    """Return a path with parameters within that selects a node if a condition holds."""
    match condition:
        case Exists(path) if any(condition_parameters(condition)):
            return path
        case Comparison(PathValue(path) as value) | StringTest(value=PathValue(path) as value) if (
            any(condition_parameters(Exists(path)))
        ):
            return _push_condition(path, condition, value)
    return None


def _up_to_data(path: Path) -> Exists:
    """Return that a path selects something as a path up to the last node with data of its own."""
    last = max(
        i
        for i, step in enumerate(path.steps)
        if any(any(condition_parameters(each)) for each in step.predicates)
    )
    step, behind = path.steps[last], path.steps[last + 1 :]
    there = (Exists(Path(behind)),) if behind else ()
    step = replace(step, predicates=(*step.predicates, *there))
    return Exists(Path((*path.steps[:last], step)))


def _tested_path(predicate: Condition) -> Path:
    """Return the path of a predicate that is a test."""
    match predicate:
        case Comparison(PathValue(path)) | StringTest(value=PathValue(path)):
            return path
    raise AssertionError(predicate)


def _positive_paths(condition: Condition) -> Iterator[Path]:
    """Yield the paths that must select a node, each with what is said of that node."""
    match condition:
        case Exists(path):
            yield path
        case And(conditions):
            for each in conditions:
                yield from _positive_paths(each)
        case Comparison(left=value) | StringTest(value=value):
            for path in value_paths(value):
                if path.steps:
                    yield _push_condition(path, condition, value)


def _push_condition(path: Path, condition: Comparison | StringTest, value: Value) -> Path:
    """Turn `contains(a/b->x, 'c')` into `a/b->x[contains(., 'c')]`: what binds must satisfy."""
    own = _replace_paths(value)
    if isinstance(condition, Comparison):
        pushed: Condition = replace(condition, left=own)
    else:
        pushed = replace(condition, value=own)
    last = path.steps[-1]
    return Path((*path.steps[:-1], replace(last, predicates=(*last.predicates, pushed))))


def _replace_paths(value: Value) -> Value:
    match value:
        case PathValue():
            return PathValue(Path(()))
        case FunctionValue(function, arguments):
            return FunctionValue(function, tuple(map(_replace_paths, arguments)))
    return value
