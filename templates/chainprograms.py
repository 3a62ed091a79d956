"""Conditions of chains as programs over columns of numbers, where they are such.

A program compares doubles: what an element binds, what the one before and the first bind,
aggregates of the elements so far, times and constants, with arithmetic between them.  Of texts that
are compared with texts it is asked whether they are equal, so a number stands for each.  Constants
are data: statements that are equal but for these have one program.

A chain is not for programs where a unit has alternatives or several values of one path, something
must be absent, or functions of strings are asked; nor, under NEXT, where elements are looked up by
a text that they have in common with a run: a program tries one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum

from templates.chaindecision import ChainDecision, ChainLink, chain_look_ups
from templates.chainoperands import (
    ChainOperand,
    TextOf,
    constants_in,
    is_number_of_element,
    is_of_first,
    may_be_text,
)
from templates.decision import TupleStream
from templates.rundecision import ElementStream
from xscl.comparison import (
    Call,
    Disjunct,
    Elements,
    Operand,
    Residual,
    VariableValue,
)
from xscl.path import Literal
from xscl.query import INFINITE_US, Strategy

__all__ = [
    "ChainProgram",
    "Op",
    "Slot",
    "SlotKind",
    "SortedBy",
    "compile_chain",
    "sample_chain",
]


class Op(IntEnum):
    """What a line of a program does.  Lines are (operation, a, b)."""

    FALSE = 0
    TRUE = 1
    CONSTANT = 2
    CANDIDATE = 3
    PREVIOUS = 4
    PREVIOUS_OR = 5
    SLOT = 6
    OWN_SUM = 7
    OWN_EXTREME = 8
    OWN_AVERAGE = 9
    AVERAGE = 10
    FIRST = 11
    SIZE = 12
    START = 13
    END = 14
    DURATION = 15
    ADD = 16
    SUBTRACT = 17
    MULTIPLY = 18
    DIVIDE = 19
    REMAINDER = 20
    NEGATE = 21
    EQUAL = 22
    UNEQUAL = 23
    LESS = 24
    AT_MOST = 25
    GREATER = 26
    AT_LEAST = 27
    VALUE = 28


class SlotKind(IntEnum):
    """What a run keeps of the elements of a step."""

    SUM = 0
    LEAST = 1
    GREATEST = 2
    FIRST = 3
    LAST = 4
    COUNT = 5


_ARITHMETIC = {
    "+": Op.ADD,
    "-": Op.SUBTRACT,
    "*": Op.MULTIPLY,
    "div": Op.DIVIDE,
    "mod": Op.REMAINDER,
}
_COMPARISONS = {
    "=": Op.EQUAL,
    "!=": Op.UNEQUAL,
    "<": Op.LESS,
    "<=": Op.AT_MOST,
    ">": Op.GREATER,
    ">=": Op.AT_LEAST,
}
_TURNED = {
    Op.EQUAL: Op.EQUAL,
    Op.LESS: Op.GREATER,
    Op.AT_MOST: Op.AT_LEAST,
    Op.GREATER: Op.LESS,
    Op.AT_LEAST: Op.AT_MOST,
}
_DEEPEST = 30
"""The deepest stack that a program may need."""

_Line = tuple[int, int, int]


class _NoProgramError(Exception):
    """A condition that is no program over columns."""


@dataclass(frozen=True, slots=True)
class Slot:
    """What a run keeps of the elements of a step: see `SlotKind`."""

    step: int
    kind: SlotKind
    column: int


@dataclass(frozen=True, slots=True)
class SortedBy:
    """A comparison of what begins a run with a constant: `line` gives the value to compare."""

    op: Op
    line: int
    constant: int


@dataclass(frozen=True, slots=True)
class ChainProgram:
    """The conditions of a chain: what they run, and their constants, which are data.

    `columns` are for each step the operands of which its elements have numbers.  `predicates` are
    for each step the lines with which begins what is asked of its first element, and of each.
    """

    columns: tuple[tuple[ChainOperand, ...], ...]
    code: tuple[_Line, ...]
    predicates: tuple[tuple[int, int], ...]
    slots: tuple[Slot, ...]
    sorted_by: SortedBy | None
    constants: tuple[float | str, ...] = field(compare=False)


def compile_chain(decision: ChainDecision) -> ChainProgram | None:
    """Return the program of a chain, None where it has none."""
    if decision.is_open or decision.absences:
        return None
    if any(link.folds or len(link.elements) != 1 for link in decision.links):
        return None
    if not decision.is_contiguous and _are_looked_up(decision):
        return None
    try:
        return _Compiler(decision.links).compile()
    except _NoProgramError:
        return None


def _are_looked_up(decision: ChainDecision) -> bool:
    """Return whether elements are looked up by a text that they have in common with a run."""
    single = frozenset([None, *(link.run for link in decision.links)])
    return any(
        chain_look_ups(disjuncts, single)
        for link in decision.links
        for disjuncts in (link.first, link.each)
    )


class _Compiler:
    """Compiles the conditions of a chain."""

    def __init__(self, links: tuple[ChainLink, ...]) -> None:
        self._links = links
        self._step_of = {link.run: step for step, link in enumerate(links)}
        self._columns: list[list[ChainOperand]] = [[] for _ in links]
        self._code: list[_Line] = []
        self._slots: list[Slot] = []
        self._constants: list[float | str] = []
        self._step = 0
        self._depth = 0

    def compile(self) -> ChainProgram:
        """Return the program."""
        predicates: list[tuple[int, int]] = []
        for step, link in enumerate(self._links):
            self._step = step
            predicates.append((self._predicate(link.first), self._predicate(link.each)))
        sorted_by = self._sorted_by()
        return ChainProgram(
            tuple(map(tuple, self._columns)),
            tuple(self._code),
            tuple(predicates),
            tuple(self._slots),
            sorted_by,
            tuple(self._constants),
        )

    def _add(self, op: Op, a: int = 0, b: int = 0, *, pushes: int = 0) -> int:
        self._depth += pushes
        if self._depth > _DEEPEST:
            raise _NoProgramError
        self._code.append((int(op), a, b))
        return len(self._code) - 1

    # -- conditions ----------------------------------------------------------------------------

    def _predicate(self, disjuncts: Iterable[Disjunct]) -> int:
        """Add what tells whether one of some conjunctions holds; return the line it begins with."""
        first = len(self._code)
        for disjunct in disjuncts:
            if disjunct.value_joins or disjunct.similarity_joins:
                raise _NoProgramError
            jumps = [self._comparison(residual) for residual in disjunct.residuals]
            jumps += [line for test in disjunct.tests for line in self._joined(test)]
            self._add(Op.TRUE)
            for line in jumps:
                self._code[line] = (self._code[line][0], len(self._code), 0)
        self._add(Op.FALSE)
        return first

    def _comparison(self, residual: Residual) -> int:
        self._depth = 0
        add = self._text if _is_of_texts(residual) else self._operand
        add(residual.left)
        add(residual.right)
        return self._add(_COMPARISONS[residual.operator])

    def _joined(self, test: Call) -> list[int]:
        """Add what tells whether two texts are equal, and not empty."""
        if test.function != "joins":
            raise _NoProgramError
        left, right = test.arguments
        equal = Residual(left, "=", right)
        if not _is_of_texts(equal):
            raise _NoProgramError
        return [
            self._comparison(equal),
            self._comparison(Residual(left, "!=", Literal(""))),
        ]

    # -- operands ------------------------------------------------------------------------------

    def _operand(self, operand: Operand) -> None:
        """Add what puts the value of an operand on the stack."""
        match operand:
            case Literal(value) if not isinstance(value, str):
                self._constants.append(float(value))
                self._add(Op.CONSTANT, len(self._constants) - 1, pushes=1)
            case Call("-", (only,)):
                self._operand(only)
                self._add(Op.NEGATE)
            case Call(function, (left, right)) if function in _ARITHMETIC:
                self._operand(left)
                self._operand(right)
                self._add(_ARITHMETIC[function], pushes=-1)
            case Call("start", ()):
                self._add(Op.START, pushes=1)
            case Call("end", ()):
                self._add(Op.END, pushes=1)
            case Call("dur", ()):
                self._add(Op.DURATION, pushes=1)
            case Elements(run=None):
                self._of_own(operand)
            case Elements(run=str(run)) if run in self._step_of:
                self._of_other(self._step_of[run], operand)
            case _:
                raise _NoProgramError

    def _text(self, operand: Operand) -> None:
        """Add what puts the number of a text on the stack."""
        match operand:
            case Literal(str(value)):
                self._constants.append(value)
                self._add(Op.CONSTANT, len(self._constants) - 1, pushes=1)
            case Elements(run=None, operand=VariableValue()):
                self._of_own(operand, is_text=True)
            case Elements(run=str(run), operand=VariableValue()) if run in self._step_of:
                self._of_other(self._step_of[run], operand, is_text=True)
            case _:
                raise _NoProgramError

    def _of_own(self, asked: Elements, *, is_text: bool = False) -> None:
        """Add what an operand is of the step at hand."""
        step = self._step
        if asked.function == "count":
            if asked.operand is not None:
                self._column(step, asked.operand)
            self._add(Op.SIZE, pushes=1)
            return
        column = self._column(step, asked.operand, is_text=is_text)
        match asked.function:
            case "candidate":
                self._add(Op.CANDIDATE, column, pushes=1)
            case "prev" if asked.otherwise is None:
                self._add(Op.PREVIOUS, column, pushes=1)
            case "prev":
                assert asked.otherwise is not None
                line = self._add(Op.PREVIOUS_OR, column)
                (self._text if is_text else self._operand)(asked.otherwise)
                self._code[line] = (int(Op.PREVIOUS_OR), column, len(self._code))
            case "first":
                self._add(Op.FIRST, self._slot(step, SlotKind.FIRST, column), column, pushes=1)
            case "sum":
                self._add(Op.OWN_SUM, self._slot(step, SlotKind.SUM, column), pushes=1)
            case "avg":
                self._add(Op.OWN_AVERAGE, self._slot(step, SlotKind.SUM, column), pushes=1)
            case "min":
                self._add(Op.OWN_EXTREME, self._slot(step, SlotKind.LEAST, column), pushes=1)
            case "max":
                self._add(Op.OWN_EXTREME, self._slot(step, SlotKind.GREATEST, column), pushes=1)
            case _:
                raise _NoProgramError

    def _of_other(self, step: int, asked: Elements, *, is_text: bool = False) -> None:
        """Add what an operand is of a step that is complete, or is the one at hand."""
        if step >= self._step:
            raise _NoProgramError
        count = self._slot(step, SlotKind.COUNT, 0)
        if asked.function == "count":
            if asked.operand is not None:
                self._column(step, asked.operand)
            self._add(Op.SLOT, count, pushes=1)
            return
        column = self._column(step, asked.operand, is_text=is_text)
        kinds = {
            "first": SlotKind.FIRST,
            "last": SlotKind.LAST,
            "sum": SlotKind.SUM,
            "avg": SlotKind.SUM,
            "min": SlotKind.LEAST,
            "max": SlotKind.GREATEST,
        }
        if not self._links[step].is_repeated:
            kinds["all"] = SlotKind.LAST
        if asked.function not in kinds:
            raise _NoProgramError
        slot = self._slot(step, kinds[asked.function], column)
        if asked.function == "avg":
            self._add(Op.AVERAGE, slot, count, pushes=1)
        else:
            self._add(Op.SLOT, slot, pushes=1)

    def _column(self, step: int, operand: Operand | None, *, is_text: bool = False) -> int:
        """Return the column of an operand of one element."""
        if operand is None or not is_number_of_element(operand):
            raise _NoProgramError
        read: ChainOperand = operand
        if is_text:
            assert isinstance(operand, VariableValue)
            read = TextOf(operand.variable)
        columns = self._columns[step]
        if read not in columns:
            columns.append(read)
        return columns.index(read)

    def _slot(self, step: int, kind: SlotKind, column: int) -> int:
        slot = Slot(step, kind, column)
        if slot not in self._slots:
            self._slots.append(slot)
        return self._slots.index(slot)

    # -- how runs begin ------------------------------------------------------------------------

    def _sorted_by(self) -> SortedBy | None:
        """Add the value that what begins a run must be held against a constant with, if any."""
        self._step = 0
        link = self._links[0]
        if len(link.each) != 1 or any(each.tests for each in (*link.first, *link.each)):
            return None
        for residual in link.each[0].residuals:
            op = _COMPARISONS[residual.operator]
            sides = [(op, residual.left, residual.right)]
            if op in _TURNED:
                sides.append((_TURNED[op], residual.right, residual.left))
            for own, value, constant in sides:
                if own in _TURNED and isinstance(constant, Literal) and is_of_first(value):
                    return self._with_value(residual, own, value)
        return None

    def _with_value(self, residual: Residual, op: Op, value: Operand) -> SortedBy:
        """Add a value by itself; its constants stand where they stand in the comparison."""
        first = len(self._code)
        before = len(self._constants)
        self._depth = 0
        (self._text if _is_of_texts(residual) else self._operand)(value)
        self._add(Op.VALUE)
        del self._constants[before:]
        at = self._constants_before(residual)
        is_left = value is residual.left
        width = constants_in(value)
        constant = at + width if is_left else at
        shift = at - before if is_left else at + 1 - before
        for line in range(first, len(self._code)):
            own, a, b = self._code[line]
            if own == Op.CONSTANT:
                self._code[line] = (own, a + shift, b)
        return SortedBy(op, first, constant)

    def _constants_before(self, residual: Residual) -> int:
        """Return the number of the first constant of a comparison of the first step."""
        count = 0
        link = self._links[0]
        for disjunct in (*link.first, *link.each):
            for each in disjunct.residuals:
                if each is residual:
                    return count
                count += constants_in(each.left) + constants_in(each.right)
        raise AssertionError("no comparison of the first step")


def _is_of_texts(residual: Residual) -> bool:
    """Return whether two operands are compared as texts, where both are."""
    is_equality = residual.operator in ("=", "!=")
    return is_equality and may_be_text(residual.left) and may_be_text(residual.right)


def sample_chain(*, is_contiguous: bool) -> ChainDecision:
    """Return a small chain that has a program: its loops are compiled with it."""
    value = Elements(None, "candidate", VariableValue("v"))
    each = (Disjunct(residuals=(Residual(value, ">=", Literal(1.0)),)),)

    def elements(step: int) -> ElementStream:
        return ElementStream(step, TupleStream(f"s{step}", (step,), ("#0", "v"), ("#0", "v")), ())

    links = tuple(
        ChainLink(
            f"+{step}", step == 0, (elements(step),), (Disjunct(),), each, (),
            INFINITE_US, INFINITE_US,
        )
        for step in range(2)
    )  # fmt: skip
    strategy = Strategy.STRICT if is_contiguous else Strategy.NEXT
    documents = (elements(2),) if is_contiguous else ()
    return ChainDecision(strategy, links, (), documents, INFINITE_US, INFINITE_US, 0)
