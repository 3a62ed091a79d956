"""Predicates: from syntax to disjuncts of value joins, similarity joins, residuals and tests.

A path from a variable becomes a fresh variable; `PredicateBuilder.fresh` says which, and
`xscl.rewriting.attach` puts them into the blocks' paths.
"""

from __future__ import annotations

from dataclasses import dataclass

from xscl.comparison import (
    Call,
    Cell,
    Conditional,
    Derived,
    Disjunct,
    Operand,
    PathFrom,
    Residual,
    Row,
    SimilarityJoin,
    ValueJoin,
    VariableValue,
    has_several,
    operand_variables,
)
from xscl.conditions import PatternBuilder
from xscl.expectations import check_comparison
from xscl.kinds import kind_in_comparison
from xscl.path import Literal, Parameter, Span
from xscl.scopes import Names, Scope
from xscl.sides import SideBuilder
from xscl.signatures import DERIVING_FUNCTIONS, MEASURES
from xscl.syntax import (
    TURNED,
    Binary,
    Expression,
    FunctionCall,
    Junction,
)

__all__ = ["PredicateBuilder"]

DISJUNCT_LIMIT = 64
"""Disjuncts of one predicate; each is evaluated by itself."""

ALTERNATIVES_LIMIT = 4_096
"""Choices of one disjunct for each operator of a query: each is compiled and kept by itself."""

_SIMILAR = "similar"
"""What a witness has of similarity joins, beside its variables."""


@dataclass(frozen=True, slots=True)
class _Compared:
    """A comparison."""

    left: Operand
    operator: str
    right: Operand
    span: Span


class PredicateBuilder(SideBuilder):
    """Builds the disjuncts of a query's predicates over the variables that its blocks bind."""

    def __init__(self, patterns: PatternBuilder, names: Names) -> None:
        super().__init__(patterns, names)
        self.alternatives = 1
        self._of_several: set[Call] = set()
        self._has_reported_witness = False

    def disjuncts(self, predicate: Expression | None, scope: Scope) -> tuple[Disjunct, ...]:
        """Return a predicate in disjunctive form, `(Disjunct(),)` for none."""
        if predicate is None:
            return (Disjunct(),)
        tree = self._tree(predicate, scope)
        if _count(tree) > DISJUNCT_LIMIT:
            self.report.error(
                "XS503",
                predicate.span,
                f"this predicate has {_count(tree)} alternatives, more than {DISJUNCT_LIMIT}",
                "write several queries, or compare fewer alternatives",
            )
            return (Disjunct(),)
        found = tuple(dict.fromkeys(self._disjunct(terms, scope) for terms in _expand(tree)))
        self.multiply(len(found), predicate.span)
        return found

    def multiply(self, disjuncts: int, span: Span) -> None:
        """Count the alternatives of the statement so far; say once that they are too many."""
        before, self.alternatives = self.alternatives, self.alternatives * disjuncts
        if before <= ALTERNATIVES_LIMIT < self.alternatives:
            self.report.error(
                "XS503",
                span,
                f"with this predicate the query has {self.alternatives:,} alternatives, one for"
                f" each choice of a disjunct in every operator, more than {ALTERNATIVES_LIMIT:,}",
                "write several queries, or compare fewer alternatives",
            )

    def _disjunct(self, terms: tuple[_Compared | Call, ...], scope: Scope) -> Disjunct:
        joins: list[ValueJoin] = []
        similar: list[SimilarityJoin] = []
        residuals: list[Residual] = []
        tests: list[Call] = []
        for term in dict.fromkeys(terms):
            if isinstance(term, Call):
                tests.append(term)
            elif (join := self._value_join(term, scope)) is not None:
                joins.append(join)
            elif (likeness := self._similarity_join(term, scope)) is not None:
                similar.append(likeness)
                self._check_witness(term.span)
            else:
                residuals.append(_residual(term))
        return Disjunct(tuple(joins), tuple(residuals), tuple(similar), tuple(tests))

    def _value_join(self, term: _Compared, scope: Scope) -> ValueJoin | None:
        left, right = self._derived_of_one(term.left), self._derived_of_one(term.right)
        if term.operator != "=" or left is None or right is None:
            return None
        sides = self._blocks(left), self._blocks(right)
        if sides[0] <= scope.left and sides[1] <= scope.right:
            return ValueJoin(left, right)
        if sides[0] <= scope.right and sides[1] <= scope.left:
            return ValueJoin(right, left)
        return None

    def _derived_of_one(self, operand: Operand) -> Derived | None:
        """Return an operand that is strings of one variable, which a look-up can find."""
        variables = operand_variables(operand)
        if len(variables) != 1 or variables[0] in self.names.folds or not _is_text(operand):
            return None
        return operand if isinstance(operand, (VariableValue, Call)) else None

    def _similarity_join(self, term: _Compared, scope: Scope) -> SimilarityJoin | None:
        left, operator, right = term.left, term.operator, term.right
        if isinstance(left, (Literal, Parameter)):
            left, operator, right = right, TURNED[operator], left
        if (
            not isinstance(left, Call)
            or left.function not in MEASURES
            or operator not in (">=", ">")
        ):
            return None
        if not isinstance(right, (Literal, Parameter)):
            return None
        first, second = left.arguments
        if not isinstance(first, Call) or not isinstance(second, Call):
            return None
        if self._derived_of_one(first) is None or self._derived_of_one(second) is None:
            return None
        sides = self._blocks(first), self._blocks(second)
        if sides[0] <= scope.left and sides[1] <= scope.right:
            return SimilarityJoin(left.function, first, second, operator, right)
        if sides[0] <= scope.right and sides[1] <= scope.left:
            return SimilarityJoin(left.function, second, first, operator, right, is_turned=True)
        return None

    def _check_witness(self, span: Span) -> None:
        """Report a variable whose name witnesses of similarity joins need."""
        if _SIMILAR in self.names.blocks and not self._has_reported_witness:
            self._has_reported_witness = True
            self.report.error(
                "XS213",
                span,
                f"a match has under `{_SIMILAR}` how similar texts are, and this is a variable",
                f"give the variable `{_SIMILAR}` another name",
            )

    def _blocks(self, operand: Operand) -> frozenset[int]:
        """Return the blocks that an operand speaks of, those out of sight left aside."""
        return frozenset().union(*(self.names.blocks[v] for v in operand_variables(operand)))

    # -- from syntax ---------------------------------------------------------------------------

    def _tree(self, syntax: Expression, scope: Scope) -> _Tree:
        if isinstance(syntax, Junction):
            return _Junction(syntax.word, tuple(self._tree(term, scope) for term in syntax.terms))
        if isinstance(syntax, FunctionCall):
            test = self.test(syntax, scope)
            return _Junction("and", ()) if test is None else test
        assert isinstance(syntax, Binary)  # the parser lets nothing else through
        left, right = self.operand(syntax.left, scope), self.operand(syntax.right, scope)
        if left is None or right is None:
            return _Junction("and", ())
        for own, side, other in (
            (syntax.left, left, syntax.right),
            (syntax.right, right, syntax.left),
        ):
            self.use_parameter(own, side, kind_in_comparison(syntax.operator, other))
        check_comparison(syntax, self.report)
        if not scope.is_optional:
            left, right = self._for_itself(left), self._for_itself(right)
        return _Compared(left, syntax.operator, right, syntax.span)

    def _for_itself(self, side: Operand) -> Operand:
        """Return a side of a comparison, where it stands again that of a variable of its own.

        A tuple has one piece of each `tokenize`, and each comparison may hold of another piece.
        """
        if not (isinstance(side, Call) and self._derived_of_one(side) and has_several(side)):
            return side
        if side in self._of_several:
            [variable] = set(operand_variables(side))
            return _of_variable(side, self.again(variable))
        self._of_several.add(side)
        return side


def _of_variable(operand: Operand, variable: VariableValue) -> Operand:
    """Return a function of one variable as that of another one."""
    match operand:
        case VariableValue():
            return variable
        case Call(function, arguments):
            return Call(function, tuple(_of_variable(each, variable) for each in arguments))
    return operand


@dataclass(frozen=True, slots=True)
class _Junction:
    word: str
    terms: tuple[_Tree, ...]


_Tree = _Compared | Call | _Junction


def _is_text(operand: Operand) -> bool:
    """Whether an operand is made of variables and literals by functions of strings alone."""
    match operand:
        case Call(function, arguments):
            of_strings = function in DERIVING_FUNCTIONS or function in ("words", "shingles")
            return of_strings and all(map(_is_text, arguments))
        case PathFrom() | Row() | Cell() | Conditional():
            return False
    return True


def _count(tree: _Tree) -> int:
    if not isinstance(tree, _Junction):
        return 1
    counts = [_count(term) for term in tree.terms]
    if tree.word == "or":
        return sum(counts)
    product = 1
    for count in counts:
        product *= count
    return product


def _expand(tree: _Tree) -> list[tuple[_Compared | Call, ...]]:
    if not isinstance(tree, _Junction):
        return [(tree,)]
    parts = [_expand(term) for term in tree.terms]
    if tree.word == "or":
        return [terms for part in parts for terms in part]
    found: list[tuple[_Compared | Call, ...]] = [()]
    for part in parts:
        found = [before + after for before in found for after in part]
    return found


def _residual(term: _Compared) -> Residual:
    left, right, operator = term.left, term.right, term.operator
    if isinstance(left, (Literal, Parameter)) and not isinstance(right, (Literal, Parameter)):
        return Residual(right, TURNED[operator], left)
    return Residual(left, operator, right)
