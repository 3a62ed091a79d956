"""Conditions of chains as programs over columns of numbers, where they are such.

A program compares doubles: what an element binds, what the one before and the first bind,
aggregates of the elements so far, values of FOLD, times and constants, with arithmetic and `if`
between them.  Of texts that are compared with texts it is asked whether they are equal, so a number
stands for each.  Constants are data: statements that are equal but for these have one program.

A chain is not for programs where a unit has alternatives or several values of one path, something
must be absent, or functions of strings are asked; nor, under MATCH NEXT, where elements are looked
up by a text that they have in common with a run: a program tries one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from templates.chaincode import ChainProgram, Line, Op, Slot, SlotKind, SortedBy
from templates.chaindecision import ChainDecision, ChainLink, chain_look_ups
from templates.chainoperands import (
    ChainOperand,
    TextOf,
    constants_in,
    has_choice,
    is_number_of_element,
    is_of_first,
    may_be_text,
)
from templates.rundecision import FoldValue
from xscl.comparison import (
    Call,
    Conditional,
    Disjunct,
    Elements,
    Operand,
    Residual,
    VariableValue,
)
from xscl.path import Literal
from xscl.sequence import Strategy

__all__ = ["compile_chain"]

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
    Op.UNEQUAL: Op.UNEQUAL,
    Op.LESS: Op.GREATER,
    Op.AT_MOST: Op.AT_LEAST,
    Op.GREATER: Op.LESS,
    Op.AT_LEAST: Op.AT_MOST,
}
_DEEPEST = 30
"""The deepest stack that a program may need."""

_Adds = Callable[[Operand], None]


class _NoProgramError(Exception):
    """A condition that is no program over columns."""


def compile_chain(decision: ChainDecision, *, are_looked_up: bool = True) -> ChainProgram | None:
    """Return the program of a chain, None where it has none.

    With `are_looked_up` it has none either where elements are looked up by texts one by one.
    """
    if decision.strategy is Strategy.ANY or decision.absences:
        return None
    if any(len(link.elements) != 1 for link in decision.links):
        return None
    if are_looked_up and not decision.is_contiguous and _have_look_ups(decision):
        return None
    try:
        return _Compiler(decision.links).compile()
    except _NoProgramError:
        return None


def _have_look_ups(decision: ChainDecision) -> bool:
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
        self._code: list[Line] = []
        self._slots: list[Slot] = []
        self._constants: list[float | str] = []
        self._constants_at: dict[int, int] = {}
        self._folds = [{fold.name: fold for fold in link.folds} for link in links]
        self._text_folds = _text_folds(links)
        self._fold_slots: dict[tuple[int, str, bool], int] = {}
        self._step = 0
        self._depth = 0
        self._has_elements = True

    def compile(self) -> ChainProgram:
        """Return the program."""
        predicates: list[tuple[int, int, int]] = []
        for step, link in enumerate(self._links):
            self._step = step
            first, each, go_on = map(self._predicate, (link.first, link.each, link.go_on))
            predicates.append((first, each, go_on))
        sorted_by = self._sorted_by()
        self._write_folds()
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

    def _lead(self, lines: Iterable[int]) -> None:
        """Have lines lead to what comes now."""
        for line in lines:
            self._code[line] = (self._code[line][0], len(self._code), 0)

    # -- conditions ----------------------------------------------------------------------------

    def _predicate(self, disjuncts: Iterable[Disjunct]) -> int:
        """Add what tells whether one of some conjunctions holds; return the line it begins with."""
        first = len(self._code)
        for disjunct in disjuncts:
            jumps = self._conjunction(disjunct)
            self._add(Op.TRUE)
            self._lead(jumps)
        self._add(Op.FALSE)
        return first

    def _conjunction(self, disjunct: Disjunct) -> list[int]:
        """Add comparisons; return the lines that lead elsewhere where one does not hold."""
        if disjunct.value_joins or disjunct.similarity_joins:
            raise _NoProgramError
        jumps = [self._comparison(residual) for residual in disjunct.residuals]
        return jumps + [line for test in disjunct.tests for line in self._joined(test)]

    def _comparison(self, residual: Residual) -> int:
        self._depth = 0
        self._constants_at.setdefault(id(residual), len(self._constants))
        add = self._text if self._is_of_texts(residual) else self._operand
        op, sides = _COMPARISONS[residual.operator], (residual.left, residual.right)
        if has_choice(residual.right) and not has_choice(residual.left):
            op, sides = _TURNED[op], sides[::-1]
        for side in sides:
            add(side)
        return self._add(op)

    def _is_of_texts(self, residual: Residual) -> bool:
        """Return whether two operands are compared as texts, where both are."""
        return residual.operator in ("=", "!=") and all(
            may_be_text(side, self._text_folds) for side in (residual.left, residual.right)
        )

    def _joined(self, test: Call) -> list[int]:
        """Add what tells whether two texts are equal, and not empty."""
        if test.function != "joins":
            raise _NoProgramError
        left, right = test.arguments
        equal = Residual(left, "=", right)
        if not self._is_of_texts(equal):
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
            case Call("start", ()) if self._has_elements:
                self._add(Op.START, pushes=1)
            case Call("end", ()) if self._has_elements:
                self._add(Op.END, pushes=1)
            case Call("dur", ()) if self._has_elements:
                self._add(Op.DURATION, pushes=1)
            case Conditional():
                self._choice(operand, self._operand)
            case Elements(run=None) if self._has_elements:
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
            case Conditional():
                self._choice(operand, self._text)
            case Elements(run=None) if self._has_elements and _is_text_of_elements(operand):
                self._of_own(operand, is_text=True)
            case Elements(run=str(run)) if run in self._step_of and _is_text_of_elements(operand):
                self._of_other(self._step_of[run], operand, is_text=True)
            case _:
                raise _NoProgramError

    def _choice(self, choice: Conditional, add: _Adds) -> None:
        """Add what puts the value of one of two operands on the stack, which is empty."""
        if self._depth > 0:
            # Comparisons leave nothing on it.
            raise _NoProgramError
        holds: list[int] = []
        for disjunct in choice.condition:
            jumps = self._conjunction(disjunct)
            holds.append(self._add(Op.JUMP))
            self._lead(jumps)
        self._depth = 0
        add(choice.otherwise)
        over = self._add(Op.JUMP)
        self._lead(holds)
        self._depth = 0
        add(choice.then)
        self._lead([over])

    def _of_own(self, asked: Elements, *, is_text: bool = False) -> None:
        """Add what an operand is of the step at hand."""
        step = self._step
        if asked.function == "fold":
            self._fold(step, asked, is_text=is_text)
            return
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
        if asked.function == "fold":
            self._add(Op.SLOT, self._fold_slot(step, asked, is_text=is_text), pushes=1)
            return
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

    # -- FOLD ----------------------------------------------------------------------------------

    def _fold(self, step: int, asked: Elements, *, is_text: bool) -> None:
        """Add a value of FOLD of the step at hand: what it is at first, or what a run keeps."""
        slot = self._fold_slot(step, asked, is_text=is_text)
        line = self._add(Op.SLOT_OR, slot)
        self._has_elements = False
        (self._text if is_text else self._operand)(self._folded(step, asked).first)
        self._has_elements = True
        self._code[line] = (int(Op.SLOT_OR), slot, len(self._code))

    def _folded(self, step: int, asked: Elements) -> FoldValue:
        assert isinstance(asked.operand, Literal)
        return self._folds[step][str(asked.operand.value)]

    def _fold_slot(self, step: int, asked: Elements, *, is_text: bool) -> int:
        """Return where a run keeps a value of FOLD; what it is with an element is added behind."""
        key = step, self._folded(step, asked).name, is_text
        if key not in self._fold_slots:
            self._fold_slots[key] = len(self._slots)
            self._slots.append(Slot(step, SlotKind.FOLD, -1 - len(self._fold_slots)))
        return self._fold_slots[key]

    def _write_folds(self) -> None:
        """Add what each value of FOLD that is kept becomes with an element."""
        done = 0
        while done < len(self._fold_slots):
            (step, name, is_text), slot = list(self._fold_slots.items())[done]
            done += 1
            self._step, self._depth = step, 0
            self._slots[slot] = Slot(step, SlotKind.FOLD, len(self._code))
            (self._text if is_text else self._operand)(self._folds[step][name].following)
            self._add(Op.VALUE)

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
            sides.append((_TURNED[op], residual.right, residual.left))
            for own, value, constant in sides:
                is_sorted = own is not Op.UNEQUAL and isinstance(constant, Literal)
                if is_sorted and is_of_first(value):
                    return self._with_value(residual, own, value)
        return None

    def _with_value(self, residual: Residual, op: Op, value: Operand) -> SortedBy:
        """Add a value by itself; its constants stand where they stand in the comparison."""
        first = len(self._code)
        before = len(self._constants)
        self._depth = 0
        (self._text if self._is_of_texts(residual) else self._operand)(value)
        self._add(Op.VALUE)
        del self._constants[before:]
        at = self._constants_at[id(residual)]
        is_left = value is residual.left
        width = constants_in(value)
        constant = at + width if is_left else at
        shift = at - before if is_left else at + 1 - before
        for line in range(first, len(self._code)):
            own, a, b = self._code[line]
            if own == Op.CONSTANT:
                self._code[line] = (own, a + shift, b)
        return SortedBy(op, first, constant)


def _text_folds(links: Iterable[ChainLink]) -> frozenset[str]:
    """Return the values of FOLD that may be texts."""
    folds = [fold for link in links for fold in link.folds]
    found: frozenset[str] = frozenset()
    while True:
        more = frozenset(
            fold.name
            for fold in folds
            if any(may_be_text(each, found) for each in (fold.first, fold.following))
        )
        if more <= found:
            return found
        found |= more


def _is_text_of_elements(operand: Elements) -> bool:
    """Return whether an operand of elements is the text of a node, or a value of FOLD."""
    return operand.function == "fold" or isinstance(operand.operand, VariableValue)
