"""Which changes can be made to a module, and the module with one of them made."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.provider import OperatorProvider

__all__ = ["Mutant", "RemoveStatement", "SwapMinMax", "mutants_of"]

_PLAIN = OperatorProvider()

_SWAPPED = {
    "Comparison": "Lt_LtE LtE_Lt Gt_GtE GtE_Gt Eq_NotEq NotEq_Eq Is_IsNot IsNot_Is Lt_Gt Gt_Lt",
    "Binary": "Add_Sub Sub_Add Mul_FloorDiv FloorDiv_Mul BitOr_BitAnd BitAnd_BitOr LShift_RShift"
    " RShift_LShift Mod_FloorDiv Div_Mul",
    "Unary": "Delete_Not Delete_Invert Delete_USub",
}
"""Which of Cosmic Ray's replacements are made: one or two for each operator, not all pairs."""

_OTHERS = (
    "AddNot ReplaceTrueWithFalse ReplaceFalseWithTrue ReplaceAndWithOr ReplaceOrWithAnd"
    " ReplaceBreakWithContinue ReplaceContinueWithBreak NumberReplacer ZeroIterationForLoop"
)


_TYPES = (("tfpdef", ":"), ("annassign", ":"), ("funcdef", "->"))
"""What stands around a type, and before it."""


_EXTREMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}


class SwapMinMax(Operator):  # type: ignore[misc]
    """Replaces the smallest by the largest and the other way round, numpy's too."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "name" and node.value in _EXTREMES and _is_called(node):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.value = _EXTREMES[node.value]
        return node

    @classmethod
    def examples(cls) -> Iterable[Any]:
        return ()


class RemoveStatement(Operator):  # type: ignore[misc]
    """Leaves out a call, an assignment to an attribute or an item, and an `x += ...`."""

    def mutation_positions(self, node: Any) -> Iterator[Any]:
        if node.type == "simple_stmt" and _is_action(node.children[0]):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        removed = node.children[0]
        left_out = parso.parse("pass").children[0]
        left_out.prefix = removed.get_first_leaf().prefix
        node.children[0] = left_out
        return node

    @classmethod
    def examples(cls) -> Iterable[Any]:
        return ()


def _is_called(node: Any) -> bool:
    following = node.get_next_leaf()
    return following is not None and following.value == "("


def _is_action(statement: Any) -> bool:
    if statement.type == "atom_expr":
        return True
    if statement.type != "expr_stmt":
        return False
    target, operator = statement.children[:2]
    return operator.type == "operator" and (operator.value != "=" or target.type == "atom_expr")


def _operators() -> Iterator[tuple[str, Operator]]:
    names = [
        f"Replace{kind}Operator_{each}" for kind in _SWAPPED for each in _SWAPPED[kind].split()
    ]
    for name in (*names, *_OTHERS.split()):
        yield name, _PLAIN[name]()
    for own in (SwapMinMax, RemoveStatement):
        yield own.__name__, own()


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of a module: the `occurrence`-th place of an operator, in a line."""

    path: Path
    operator: str
    occurrence: int
    line: int

    def is_code(self, source: str) -> bool:
        """Return whether the change leaves something that Python reads: a `*` may be no product."""
        try:
            ast.parse(self.code(source))
        except SyntaxError:
            return False
        return True

    def code(self, source: str) -> str:
        """Return the module with the change made; `source` is the module without."""
        changed = mutate_code(source, dict(_operators())[self.operator], self.occurrence)
        assert isinstance(changed, str)
        return changed

    def difference(self, source: str) -> tuple[str, str]:
        """Return what the change takes away and what it puts there, without indentation."""
        lines = list(difflib.ndiff(source.splitlines(), self.code(source).splitlines()))
        return tuple(  # type: ignore[return-value]
            " ".join(line[2:].strip() for line in lines if line.startswith(sign)) for sign in "-+"
        )


def mutants_of(path: Path, source: str) -> Iterator[Mutant]:
    """Yield all changes of a module, but those of annotations, decorators and `strict=True`.

    What is in annotations is not run, and nobody sees whether a class has slots.
    """
    tree = get_ast(source)
    for name, operator in _operators():
        occurrence = 0
        for node in ast_nodes(tree):
            for _ in operator.mutation_positions(node):
                if not _is_left_alone(node):
                    yield Mutant(path, name, occurrence, node.start_pos[0])
                occurrence += 1


def _is_assertion(node: Any) -> bool:
    """Return whether a node is `strict=True`, which holds wherever it stands."""
    return node.type == "argument" and node.children[0].get_code().strip() == "strict"


def _is_left_alone(node: Any) -> bool:
    while (parent := node.parent) is not None:
        before = None
        for child in parent.children:
            if child is node:
                break
            before = child
        leads = (parent.type, getattr(before, "value", None))
        if parent.type == "decorator" or leads in _TYPES or _is_assertion(parent):
            return True
        node = parent
    return False
