"""Paths from variables in comparisons: fresh variables of the block, or optional paths."""

from __future__ import annotations

import re
from collections.abc import Sequence

from xscl.canonical import render_expression
from xscl.comparison import Operand, PathFrom, VariableValue
from xscl.conditions import OutsideFragmentError, PatternBuilder
from xscl.path import ANY, Axis, Exists, NodeTest, Path, Step
from xscl.rewriting import strip_variables
from xscl.scopes import Names, Scope
from xscl.syntax import ParameterRef, PathExpression, StepSyntax

__all__ = ["VariablePathBuilder"]

_CONSTANT = re.compile(r"""'[^']*'|"[^"]*"|\b\d+(\.\d+)?([eE][+-]?\d+)?""")


class VariablePathBuilder:
    """Builds paths over the variables of a query, and gathers the fresh ones.

    `fresh` has for each the variable that it leads from, its name and label, the blocks that bind
    it, and its path.  `keys` are the variables of paths from documents, each with its block.
    """

    def __init__(self, patterns: PatternBuilder, names: Names) -> None:
        self.patterns = patterns
        self.report = patterns.report
        self.names = names
        self.fresh: list[tuple[str, str, str, frozenset[int], Path]] = []
        self.labels: dict[str, int] = {}
        self.keys: list[tuple[int, str]] = []

    def path(self, syntax: PathExpression, scope: Scope) -> Operand | None:
        """Return a variable, a path from it, or the fresh variable for that, `None` on an error."""
        if syntax.is_absolute or syntax.start is not None:
            return self._no_variable(syntax)
        first, rest = syntax.steps[0], syntax.steps[1:]
        test = first.test
        if first.axis != "child" or test.kind != "name" or test.prefix or test.name == "*":
            return self._no_variable(syntax)
        for step in syntax.steps:
            if step.variable is not None:
                self.report.error(
                    "XS309",
                    step.variable_span or step.span,
                    f"`{step.variable}` cannot be bound in an operator's predicate",
                    "bind it in its block; here it needs no name",
                )
                return None
        blocks = self.names.find(test.name, test.span, scope)
        if not blocks or not self._is_grouped(syntax, scope):
            return None
        return self._value(syntax, test.name, rest, blocks, scope)

    def again(self, base: str) -> VariableValue:
        """Return a fresh variable that has the node of another one."""
        label = self._label(f"{base}/.")
        step = Step(Axis.SELF, NodeTest(ANY, ANY)).named(label)
        self.names.blocks[label] = self.names.blocks[base]
        self.fresh.append((base, label, label, self.names.blocks[base], Path((step,))))
        return VariableValue(label)

    def key(self, text: str, block: int) -> str:
        """Return the name of the variable that the path of a key binds in a block."""
        name = self._label(text)
        self.keys.append((block, name))
        return name

    def _is_grouped(self, syntax: PathExpression, scope: Scope) -> bool:
        """Whether a path may stand where rows are spoken of: one of their keys may."""
        if scope.keys is None or render_expression(syntax) in scope.keys:
            return True
        text = render_expression(syntax)
        self.report.error(
            "XS902",
            syntax.span,
            "a row is made of many matches, and this is of one",
            f"name it behind BY, or write `max({text})`, `collect({text})`, ...",
        )
        return False

    def _no_variable(self, syntax: PathExpression) -> Operand | None:
        hint = "bind a step in a block, `S//book->x1`, and write `x1/author`"
        start = syntax.start
        if isinstance(start, ParameterRef) and (
            start.name in self.names.blocks or start.name in self.names.guessed
        ):
            hint = f"`${start.name}` is a parameter; the variable is `{start.name}`"
        self.report.error("XS308", syntax.span, "this path begins with no variable", hint)
        return None

    def _value(
        self,
        syntax: PathExpression,
        base: str,
        rest: list[StepSyntax],
        blocks: frozenset[int],
        scope: Scope,
    ) -> Operand | None:
        """Return the variable, a path from it, or the fresh variable for that."""
        steps = self._steps(syntax.steps[0], rest)
        if steps is None:
            return None
        if not steps:
            return VariableValue(base)
        if base in self.names.folds:
            self.report.error(
                "XS315",
                syntax.span,
                f"`{base}` is a value and no node: no path leads from it",
                f"write `{base}` alone, or have FOLD keep what the path selects",
            )
            return None
        if scope.is_optional:
            asked = strip_variables(Exists(Path(tuple(steps))))
            assert isinstance(asked, Exists)
            return PathFrom(base, asked.path)
        text = render_expression(syntax)
        label = self._label(text)
        name = self._name(text, label)
        steps[-1] = steps[-1].named(name)
        self.names.blocks[name] = blocks
        self.fresh.append((base, name, label, blocks, Path(tuple(steps))))
        return VariableValue(name)

    def _steps(self, first: StepSyntax, rest: Sequence[StepSyntax]) -> list[Step] | None:
        bound = len(self.patterns.bindings)
        try:
            steps = list(self.patterns.path([*rest], is_positive=False).steps)
            if first.predicates:
                built = [self.patterns.predicate(each, False) for each in first.predicates]
                known = tuple(each for each in built if each is not None)
                steps.insert(0, Step(Axis.SELF, NodeTest(ANY, ANY), predicates=known))
        except OutsideFragmentError as outside:
            self.report.error(
                "XS303",
                outside.span,
                f"{outside.reason} cannot stand on a path from a variable",
                "such a path has `/`, `//`, `@` and `.`, and predicates",
            )
            return None
        if len(self.patterns.bindings) > bound:
            del self.patterns.bindings[bound:]
            return None
        return steps

    def _name(self, text: str, label: str) -> str:
        """Return a name that no constant is in: statements that differ in these have the same.

        It has a number of its own, which labels do not count.
        """
        if "[" in text:
            return self._label(f"{_CONSTANT.sub('?', text)}/.")
        return label if "/" in label else f"{label}/."  # no author's variable has a slash

    def _label(self, text: str) -> str:
        count = self.labels[text] = self.labels.get(text, 0) + 1
        return text if count == 1 else f"{text}#{count}"
