"""From the syntax of a statement to its value-join normal form."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from xscl.checks import check_query
from xscl.conditions import Binding, PatternBuilder
from xscl.counting import not_drawn
from xscl.layout import statement_text
from xscl.losses import build_loss
from xscl.namespaces import Namespaces
from xscl.operators import PredicateBuilder
from xscl.outcomes import OutcomeBuilder
from xscl.parameters import parameter_types
from xscl.path import ANY, Axis, Condition, Exists, NodeTest, Path, Span, Step
from xscl.query import Block, Loss, Query, Select, SelectAll, SelectKind, Variable
from xscl.reach import check_reach
from xscl.report import Report
from xscl.rewriting import attach
from xscl.rules import check_statement
from xscl.scopes import Names
from xscl.selects import build_select
from xscl.sequences import SequenceBuilder, absent_blocks
from xscl.statement import FromSyntax, RepetitionSyntax, Statement, UnitSyntax, blocks_of, units_of
from xscl.support import check_support
from xscl.syntax import BlockSyntax

__all__ = ["normalise", "query_version"]


def normalise(statement: Statement, query_id: str, report: Report) -> Query | None:
    """Return the query that a statement is; `None` when it has an error, which is reported."""
    errors = report.errors
    builder = _QueryBuilder(statement, report)
    query = builder.build(query_id)
    if query is None or statement.is_broken or report.errors > errors:
        return None
    check_query(query, statement.span, report)
    check_reach(query, statement.span, report)
    check_support(statement, report)
    return query


def query_version(text: str) -> str:
    """Return the version of a query with this canonical text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(slots=True)
class _BlockDraft:
    """A block before the fresh variables are in it."""

    syntax: BlockSyntax
    path: Path
    loss: Loss | None


class _QueryBuilder:
    def __init__(self, statement: Statement, report: Report) -> None:
        self.statement = statement
        self.report = report
        self.namespaces = Namespaces(statement.prolog, report)
        self.patterns = PatternBuilder(self.namespaces, report)
        self.drafts: list[_BlockDraft] = []

    def build(self, query_id: str) -> Query | None:
        syntax = self.statement.source
        if syntax is None:
            return None
        for block in blocks_of(syntax):
            self.draft(block)
        check_statement(self.statement, [draft.syntax for draft in self.drafts], self.report)
        names = self.names(syntax)
        predicates = PredicateBuilder(self.patterns, names)
        source = SequenceBuilder(predicates).source(syntax)
        outcome = OutcomeBuilder(predicates, source, self.statement)
        rows, limit = outcome.rows(), outcome.limit()
        actions = outcome.actions()
        select_syntax = self.statement.select
        select: Select = SelectAll()
        if select_syntax is not None:
            select = build_select(
                select_syntax,
                outcome.selectable(),
                self.namespaces,
                self.report,
                self.patterns.parameters,
            )
        confidence = outcome.confidence()
        rows = outcome.counted(rows)
        types = parameter_types(self.patterns.parameters, self.patterns.bindings, self.report)
        blocks = self.blocks(predicates)
        text = statement_text(self.statement)
        publish, grace = self.statement.publish, self.statement.grace
        kind = select_syntax.kind if select_syntax else ""
        query = Query(
            id=query_id,
            text=text,
            version=query_version(text),
            blocks=blocks,
            root=source.node,
            variables=_variables(blocks, predicates),
            select=select,
            publish=publish.name if publish else None,
            parameters=types,
            kind=SelectKind(kind),
            rows=rows,
            limit=limit,
            confidence=confidence,
            grace=grace.length_us if grace else None,
            actions=actions,
            tables=tuple(predicates.tables),
        )
        if query.kind is SelectKind.COMPRESSED and select_syntax is not None:
            self._check_drawn(query, select_syntax.kind_span or select_syntax.span)
        return query

    def _check_drawn(self, query: Query, span: Span) -> None:
        reason = not_drawn(query)
        if reason is not None:
            self.report.error(
                "XS903",
                span,
                f"COMPRESSED draws runs as the paths of one graph, which {reason} rules out",
                "each element may be asked about itself, the one before it, and what stands before;"
                " a whole chain is drawn with MATCH ANY written out",
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
            path = Path((*path.steps[:-1], path.steps[-1].named(f"#{index}")))
        loss = None
        if syntax.loss is not None:
            loss = build_loss(syntax.loss, self.patterns.parameters, self.report)
        self.drafts.append(_BlockDraft(syntax, path, loss))

    def names(self, syntax: FromSyntax) -> Names:
        """Return the author's variables and FOLD values with their blocks; report doubles."""
        unit_of, folds = _units(syntax)
        first: dict[str, Binding] = {}
        blocks: dict[str, frozenset[int]] = {}
        bindings = sorted([*self.patterns.bindings, *folds], key=lambda each: each.span)
        for binding in bindings:
            other = first.setdefault(binding.name, binding)
            if other is not binding and not _is_alternative(other, binding, unit_of, blocks):
                self.report.error(
                    "XS202",
                    binding.span,
                    f"the variable `{binding.name}` is bound a second time",
                    f"a name is bound once in a query: write `{binding.name}'` here, say",
                    other.span,
                )
            else:
                blocks[binding.name] = blocks.get(binding.name, frozenset()) | {binding.block}
        names = Names(
            blocks, self.statement.mentioned, frozenset(absent_blocks(syntax)), self.report
        )
        for fold in folds:
            names.folds.add(fold.name)
            names.blocks[fold.name] = frozenset(
                block for block, unit in unit_of.items() if unit == unit_of.get(fold.block)
            )
        return names

    def blocks(self, predicates: PredicateBuilder) -> tuple[Block, ...]:
        additions: list[dict[str, tuple[Condition, ...]]] = [{} for _ in self.drafts]
        for base, _, _, blocks, path in predicates.fresh:
            for block in blocks:
                of_block = additions[block]
                of_block[base] = (*of_block.get(base, ()), Exists(path))
        return tuple(
            _block(draft, attach(draft.path, more) if more else draft.path)
            for draft, more in zip(self.drafts, additions, strict=True)
        )


def _units(syntax: FromSyntax) -> tuple[dict[int, int], list[Binding]]:
    """Return the unit of each block, and the FOLD values of repetitions as bindings."""
    unit_of: dict[int, int] = {}
    folds: list[Binding] = []
    for number, unit in enumerate(units_of(syntax)):
        first = len(unit_of)
        blocks = unit.blocks if isinstance(unit, UnitSyntax) else unit.unit.blocks
        unit_of |= {first + each: number for each in range(len(blocks))}
        if isinstance(unit, RepetitionSyntax):
            folds += [Binding(each.name, each.name_span, first) for each in unit.folds]
    return unit_of, folds


def _is_alternative(
    first: Binding,
    binding: Binding,
    unit_of: dict[int, int],
    blocks: dict[str, frozenset[int]],
) -> bool:
    """Whether a name is bound once more in another alternative of the same unit."""
    is_new = binding.block not in blocks[binding.name]
    return is_new and unit_of.get(first.block) == unit_of.get(binding.block)


def _block(draft: _BlockDraft, path: Path) -> Block:
    root = path.steps[-1].variable
    assert root is not None
    variables = tuple([name for step in path.steps for name in step.variables()])
    return Block(draft.syntax.stream, path, root, variables, draft.syntax.span, draft.loss)


def _variables(blocks: tuple[Block, ...], predicates: PredicateBuilder) -> tuple[Variable, ...]:
    labels = {name: label for _, name, label, _, _ in predicates.fresh}
    return tuple(
        [
            Variable(name, index, labels.get(name, name))
            for index, block in enumerate(blocks)
            for name in (*block.variables, *[name for b, name in predicates.keys if b == index])
        ]
    )
