"""From the syntax of a statement to its value-join normal form."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from xscl.checks import check_query
from xscl.conditions import Binding, ParameterUse, PatternBuilder
from xscl.layout import statement_text
from xscl.namespaces import Namespaces
from xscl.operators import PredicateBuilder
from xscl.parameters import parameter_types
from xscl.path import ANY, Axis, Condition, Exists, NodeTest, Parameter, Path, Step
from xscl.query import Block, Operator, OperatorKind, Query, Variable, Window
from xscl.report import Report
from xscl.rewriting import attach
from xscl.selects import build_select
from xscl.syntax import BlockSyntax, DurationSyntax, JoinSyntax, Operand, Statement

__all__ = ["normalise", "query_version"]

_KINDS = {"FOLLOWED BY": OperatorKind.FOLLOWED_BY, "JOIN": OperatorKind.JOIN}


def normalise(statement: Statement, query_id: str, report: Report) -> Query | None:
    """Return the query that a statement is; `None` when it has an error, which is reported."""
    errors = report.errors
    builder = _Builder(statement, report)
    query = builder.build(query_id)
    if query is None or statement.is_broken or report.errors > errors:
        return None
    check_query(query, statement.span, report)
    return query


def query_version(text: str) -> str:
    """Return the version of a query with this canonical text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(slots=True)
class _BlockDraft:
    """A block before the fresh variables are in it."""

    syntax: BlockSyntax
    path: Path


class _Builder:
    def __init__(self, statement: Statement, report: Report) -> None:
        self.statement = statement
        self.report = report
        self.namespaces = Namespaces(statement.prolog, report)
        self.patterns = PatternBuilder(self.namespaces, report)
        self.drafts: list[_BlockDraft] = []

    def build(self, query_id: str) -> Query | None:
        source = self.statement.source
        if source is None:
            return None
        for block in _blocks(source):
            self.draft(block)
        variables = self.variables()
        predicates = PredicateBuilder(self.patterns, variables, self.statement.mentioned)
        root, _ = self.operand(source, predicates, iter(range(len(self.drafts))))
        select = build_select(
            self.statement.select,
            variables,
            self.statement.mentioned,
            self.namespaces,
            self.report,
            self.patterns.parameters,
        )
        types = parameter_types(self.patterns.parameters, self.patterns.bindings, self.report)
        blocks = self.blocks(predicates)
        text = statement_text(self.statement)
        publish = self.statement.publish
        return Query(
            id=query_id,
            text=text,
            version=query_version(text),
            blocks=blocks,
            root=root,
            variables=_variables(blocks, predicates),
            select=select,
            publish=publish.name if publish else None,
            parameters=types,
        )

    # -- blocks --------------------------------------------------------------------------------

    def draft(self, syntax: BlockSyntax) -> None:
        index = self.patterns.block = len(self.drafts)
        if syntax.steps:
            path = self.patterns.main_path(syntax.steps)
        else:
            path = Path((Step(Axis.CHILD, NodeTest(ANY, ANY), variable=syntax.variable),))
            if syntax.variable is not None:
                span = syntax.variable_span or syntax.span
                self.patterns.bindings.append(Binding(syntax.variable, span, index))
        if not path.steps:
            path = Path((Step(Axis.CHILD, NodeTest(ANY, ANY)),))
        if path.steps[-1].variable is None:
            last = replace(path.steps[-1], variable=f"#{index}")
            path = Path((*path.steps[:-1], last))
        self.drafts.append(_BlockDraft(syntax, path))

    def variables(self) -> dict[str, int]:
        """Return the block of each author's variable; report those bound twice."""
        first: dict[str, Binding] = {}
        for binding in self.patterns.bindings:
            other = first.setdefault(binding.name, binding)
            if other is not binding:
                self.report.error(
                    "XS202",
                    binding.span,
                    f"the variable `{binding.name}` is bound a second time",
                    f"a name is bound once in a query: write `{binding.name}'` here, say",
                    other.span,
                )
        return {name: binding.block for name, binding in first.items()}

    def blocks(self, predicates: PredicateBuilder) -> tuple[Block, ...]:
        additions: list[dict[str, tuple[Condition, ...]]] = [{} for _ in self.drafts]
        for base, variable, path in predicates.fresh:
            of_block = additions[variable.block]
            of_block[base] = (*of_block.get(base, ()), Exists(path))
        return tuple(
            _block(draft, attach(draft.path, more) if more else draft.path)
            for draft, more in zip(self.drafts, additions, strict=True)
        )

    # -- operators -----------------------------------------------------------------------------

    def operand(
        self, syntax: Operand, predicates: PredicateBuilder, indexes: Iterator[int]
    ) -> tuple[Operator | int, frozenset[int]]:
        """Return an operand and its blocks."""
        if isinstance(syntax, BlockSyntax):
            index = next(indexes)
            return index, frozenset((index,))
        left, left_blocks = self.operand(syntax.left, predicates, indexes)
        right, right_blocks = self.operand(syntax.right, predicates, indexes)
        disjuncts = predicates.disjuncts(syntax.predicate, left_blocks, right_blocks)
        operator = Operator(
            _KINDS[syntax.keyword],
            left,
            right,
            disjuncts,
            self.window(syntax.window),
            syntax.operator_span,
        )
        return operator, left_blocks | right_blocks

    def window(self, syntax: DurationSyntax) -> Window | Parameter:
        if syntax.parameter is None:
            assert syntax.length_us is not None
            return Window(syntax.length_us)
        self.patterns.parameters.append(ParameterUse(syntax.parameter, "duration", syntax.span))
        return Parameter(syntax.parameter)


def _blocks(operand: Operand) -> Iterator[BlockSyntax]:
    if isinstance(operand, JoinSyntax):
        yield from _blocks(operand.left)
        yield from _blocks(operand.right)
    else:
        yield operand


def _block(draft: _BlockDraft, path: Path) -> Block:
    root = path.steps[-1].variable
    assert root is not None
    variables = tuple(name for step in path.steps for name in step.variables())
    return Block(draft.syntax.stream, path, root, variables, draft.syntax.span)


def _variables(blocks: tuple[Block, ...], predicates: PredicateBuilder) -> tuple[Variable, ...]:
    fresh = {variable.name: variable for _, variable, _ in predicates.fresh}
    return tuple(
        fresh.get(name) or Variable(name, index, name)
        for index, block in enumerate(blocks)
        for name in block.variables
    )
