"""Filters on text, indexed by what they test, so that only filters that can hold are looked at.

Of each filter list one **access test** is taken, a test of a constant that must hold at some node
for the list to let anything through, the most selective kind there is:

    =  by hash    contains and the like, matches  by `TextIndex`    < <= > >=  by sorted bounds

A disjunction gives a test for each side.  All access tests of equal operands (`title`,
`lower-case(author)`) are one index: the operand's values are taken once for each node, and one
look-up yields all variables whose test they pass.  A filter list of one test is decided by that;
of longer ones, the rest is asked of these variables alone.  What gives no test (negations,
opaque conditions) is asked one by one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from xpath_eval.textindex import TextIndex
from xscl.functions import Atom, apply, to_double
from xscl.path import (
    And,
    Comparison,
    Condition,
    Exists,
    Literal,
    Or,
    Path,
    PathValue,
    StringTest,
    Value,
)
from xscl.requiredliterals import required_literals
from xscl.texttests import TEXT_TESTS, text_test

__all__ = ["TestIndex", "access_tests"]

Values = Callable[[Value, int], Sequence[Atom]]
"""The values of an operand at a node."""

_RANK = {"=": 0, **dict.fromkeys(TEXT_TESTS, 1), "!=": 3}
_ORDER_RANK = 2
_RUN_EACH_RANK = 4


class AccessTest(NamedTuple):
    """`operand test constant`; `is_all` if it says all that its condition says."""

    operand: Value
    kind: str
    constant: Atom
    is_all: bool = True


def access_tests(filters: Iterable[Condition]) -> tuple[AccessTest, ...]:
    """Return tests of which one must hold at a node that passes all filters; none if unknown."""
    choices = [tests for condition in filters if (tests := _tests(condition))]
    if not choices:
        return ()
    best = min(choices, key=lambda tests: (max(map(_rank, tests)), len(tests)))
    return best if len(choices) == 1 else tuple(test._replace(is_all=False) for test in best)


def _rank(test: AccessTest) -> int:
    function, _, flags = test.kind.partition("/")
    if function == "matches" and not required_literals(str(test.constant), flags):
        return _RUN_EACH_RANK
    return _RANK.get(test.kind, _ORDER_RANK)


def _tests(condition: Condition) -> tuple[AccessTest, ...]:
    match condition:
        case Comparison(operand, operator, Literal(constant)):
            return (AccessTest(operand, operator, constant),)
        case StringTest(function, operand, Literal(str() as constant), flags):
            kind = text_test(function, flags)
            return (AccessTest(operand, kind, constant),) if kind else ()
        case And(conditions):
            return tuple(t._replace(is_all=False) for t in access_tests(conditions))
        case Or(conditions):
            sides = [access_tests((each,)) for each in conditions]
            return tuple(t for side in sides for t in side) if all(sides) else ()
        case Exists(path):
            return _tests_of_end(path)
    return ()


def _tests_of_end(path: Path) -> tuple[AccessTest, ...]:
    """`a[. = 'x']` and `a[contains(., 'x')]` are tests of `a`."""
    if not path.steps or len(path.steps[-1].predicates) != 1:
        return ()
    last = path.steps[-1]
    own = Path((*path.steps[:-1], replace(last, predicates=())))
    tests = _tests(last.predicates[0])
    if len(tests) != 1 or tests[0].operand != PathValue(Path(())):
        return ()
    return (tests[0]._replace(operand=PathValue(own)),)


class TestIndex:
    """Variables by the access tests of their filters."""

    __test__ = False

    def __init__(self) -> None:
        self._operands: dict[Value, _Tests] = {}
        self._unindexed: dict[int, None] = {}
        self.decided: set[int] = set()
        """Variables whose filters are their access test and nothing else."""

    def add(self, variable: int, filters: tuple[Condition, ...]) -> None:
        """Take in a variable by its filters."""
        tests = access_tests(filters)
        if not tests:
            self._unindexed[variable] = None
        for test in tests:
            self._operands.setdefault(test.operand, _Tests()).add(test, variable)
        if tests and len(filters) == 1 and all(test.is_all for test in tests):
            self.decided.add(variable)

    def remove(self, variable: int, filters: tuple[Condition, ...]) -> None:
        """Undo `add`."""
        tests = access_tests(filters)
        self._unindexed.pop(variable, None)
        self.decided.discard(variable)
        for test in tests:
            index = self._operands[test.operand]
            index.remove(test, variable)
            if not index.size:
                del self._operands[test.operand]

    def find(self, nodes: Sequence[int], values: Values) -> dict[int, list[int]]:
        """Return the variables that may hold at some node, each with those nodes, in order."""
        found: dict[int, list[int]] = {}
        if self._unindexed:
            found = {variable: list(nodes) for variable in self._unindexed}
        for node in nodes:
            for operand, tests in self._operands.items():
                for variable in tests.find(values(operand, node)):
                    hits = found.get(variable)
                    if hits is None:
                        found[variable] = [node]
                    elif hits[-1] != node:  # Tests of two operands may pass there.
                        hits.append(node)
        return found


@dataclass(slots=True)
class _Tests:
    """The tests of one operand, each kind by what answers it fastest.

    Strings and numbers stand beside each other in `equal` and `different`: they are never equal.
    """

    size: int = 0
    numbers: int = 0
    texts: TextIndex[int] | None = None
    equal: dict[Atom, list[int]] = field(default_factory=lambda: defaultdict(list))
    different: dict[Atom, list[int]] = field(default_factory=lambda: defaultdict(list))
    bounds: dict[str, list[tuple[float, int]]] = field(default_factory=lambda: defaultdict(list))

    def add(self, test: AccessTest, variable: int) -> None:
        self.size += 1
        self.numbers += _is_number(test)
        if test.kind in TEXT_TESTS:
            self.texts = self.texts or TextIndex[int]()
            self.texts.add(test.kind, str(test.constant), variable)
        elif test.kind in ("=", "!="):
            self._constants(test.kind)[test.constant].append(variable)
        elif (bound := to_double(test.constant)) == bound:
            insort(self.bounds[test.kind], (bound, variable))

    def remove(self, test: AccessTest, variable: int) -> None:
        self.size -= 1
        self.numbers -= _is_number(test)
        if test.kind in TEXT_TESTS:
            assert self.texts is not None, "it was added"
            self.texts.remove(test.kind, str(test.constant), variable)
            self.texts = self.texts or None
        elif test.kind in ("=", "!="):
            constants = self._constants(test.kind)
            constants[test.constant].remove(variable)
            if not constants[test.constant]:
                del constants[test.constant]
        elif (bound := to_double(test.constant)) == bound:
            self.bounds[test.kind].remove((bound, variable))

    def _constants(self, kind: str) -> dict[Atom, list[int]]:
        return self.equal if kind == "=" else self.different

    def find(self, values: Sequence[Atom]) -> set[int]:
        """Return the variables whose test some of the values passes."""
        found: set[int] = set()
        for value in values:
            text = value if isinstance(value, str) else string(value)
            if self.texts is not None:
                found |= self.texts.found((text,))
            if self.equal:
                found.update(self.equal.get(text, ()))
            if self.different:
                self._find_different(text, found)
            if self.numbers and (number := to_double(value)) == number:
                self._find_number(number, found)
        return found

    def _find_different(self, value: Atom, found: set[int]) -> None:
        kind = type(value)
        for constant, variables in self.different.items():
            if constant != value and type(constant) is kind:
                found.update(variables)

    def _find_number(self, value: float, found: set[int]) -> None:
        found.update(self.equal.get(value, ()))
        self._find_different(value, found)
        for kind, bounds in self.bounds.items():
            found.update(variable for _, variable in _passed(kind, bounds, value))


def _is_number(test: AccessTest) -> bool:
    """Whether a test compares numbers."""
    return test.kind in ("<", "<=", ">", ">=") or isinstance(test.constant, float)


def string(value: Atom) -> str:
    """Return a value as XPath writes it."""
    return value if isinstance(value, str) else str(apply("string", [[value]])[0])


def _passed(kind: str, bounds: list[tuple[float, int]], value: float) -> list[tuple[float, int]]:
    """Return the bounds that a value passes, of a sorted list of bounds of one operator."""
    if kind == "<":
        return bounds[bisect_right(bounds, value, key=_bound) :]
    if kind == "<=":
        return bounds[bisect_left(bounds, value, key=_bound) :]
    if kind == ">":
        return bounds[: bisect_left(bounds, value, key=_bound)]
    return bounds[: bisect_right(bounds, value, key=_bound)]


def _bound(entry: tuple[float, int]) -> float:
    return entry[0]
