"""Compiles a set of queries as the engine does, and notes down what comes of it.

Nothing is evaluated, and nothing is kept: the catalog is made for the occasion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from broker.explain.model import (
    BlockView,
    ClassMember,
    ClassView,
    ClauseView,
    ComparisonView,
    NodeView,
    QueryView,
    SideView,
    Survey,
    TemplateView,
)
from broker.explain.names import name_variables
from broker.explain.notes import notes_on
from broker.explain.spelling import (
    ParameterNumber,
    ParameterText,
    spell_comparison,
    spell_condition,
    spell_constant,
    spell_operand,
    spell_step,
)
from broker.matching.registration import RegisteredQuery, publishers_first
from joins import template_sql
from templates.clause import Alternative, Clause, Published, is_prepared
from templates.compiler import compile_query
from templates.conjunctive import conjunctive_query, view_query
from templates.ordered import choices
from templates.plain import plain_statements
from templates.queryclass import QueryClass
from templates.template import Template
from xpath_eval.catalog import EvaluationPlan, PatternCatalog
from xscl.durations import render_duration
from xscl.path import Literal, Parameter
from xscl.pattern import DataTest, TreePattern
from xscl.query import (
    Disjunct,
    Operand,
    Operator,
    Query,
    Residual,
    Select,
    SelectAll,
    SelectNodes,
    ValueJoin,
    operand_terms,
    term,
)
from xscl.sequence import blocks_below
from xscl.substitution import substitute
from xscl.support import check_is_open

__all__ = ["LATENESS_US", "survey", "survey_with_plan"]

LATENESS_US = 86_400_000_000
"""The allowed lateness where none is named (semantics, section 1.1)."""


def survey(queries: Sequence[Query], *, lateness_us: int = LATENESS_US) -> Survey:
    """Return what becomes of queries that are registered together, in the order given."""
    return survey_with_plan(queries, lateness_us=lateness_us)[0]


def survey_with_plan(
    queries: Sequence[Query], *, lateness_us: int = LATENESS_US
) -> tuple[Survey, EvaluationPlan]:
    """Return a survey, and the plan that evaluates its queries with the survey's variables."""
    for query in queries:
        check_is_open(query, "explain")
    builder = _Surveyor(lateness_us)
    ordered = publishers_first([RegisteredQuery(query) for query in queries])
    compiled = {id(each.query): builder.compile(each.query) for each in ordered}
    plan = builder.catalog.plan()
    return builder.finish([(query, compiled[id(query)]) for query in queries]), plan


def _stand_ins(query: Query) -> dict[str, str | float | int]:
    """Return a value for each parameter that keeps the form of the query."""
    values: dict[str, str | float | int] = {}
    for i, (name, kind) in enumerate(query.parameters):
        if kind == "duration":
            values[name] = 0
        elif kind == "number":
            values[name] = ParameterNumber(name, 1e9 + i)
        else:
            values[name] = ParameterText(f"${name}")
    return values


@dataclass(slots=True)
class _Class:
    number: int
    template: int
    window_us: int = 0
    members: list[ClassMember] = field(default_factory=list)


@dataclass
class _Surveyor:
    lateness_us: int
    catalog: PatternCatalog = field(default_factory=PatternCatalog)
    streams: dict[str, Published] = field(default_factory=dict)
    classes: dict[QueryClass, _Class] = field(default_factory=dict)
    templates: dict[Template, int] = field(default_factory=dict)

    def compile(self, query: Query) -> tuple[Query, list[Alternative]]:
        """Compile one query after those whose streams it reads.

        As in the engine, a query whose parameters are all data is compiled as it is.  In others
        something stands for each parameter.
        """
        plain = query
        if query.parameters:
            trial = compile_query(query, 0, PatternCatalog(), self.streams)
            plain = query
            if not is_prepared(trial):
                plain = substitute(query, _stand_ins(query), into_opaque=False)
        alternatives = compile_query(plain, 0, self.catalog, self.streams)
        if query.publish is not None:
            for root in (alternative.root for alternative in alternatives):
                known = self.streams.get(query.publish, Published(0, 0))
                self.streams[query.publish] = Published(
                    max(known.stratum, root.query_class.stratum + 1),
                    max(known.retention_us, root.retention_under(defaultdict(int))),
                )
        return plain, alternatives

    def finish(self, compiled: Sequence[tuple[Query, tuple[Query, list[Alternative]]]]) -> Survey:
        """Number classes and templates in the order of the queries, and put all together."""
        uses: dict[int, list[tuple[str, str]]] = defaultdict(list)
        views = [
            self._query(query, plain, alternatives, uses)
            for query, (plain, alternatives) in compiled
        ]
        return Survey(
            tuple(views),
            name_variables(self.catalog.definitions, uses),
            tuple(
                ClassView(c.number, c.template, key, c.window_us, tuple(c.members))
                for key, c in self.classes.items()
            ),
            tuple(self._template(template, n) for template, n in self.templates.items()),
            self.lateness_us,
        )

    def _template(self, template: Template, number: int) -> TemplateView:
        classes = [c for key, c in self.classes.items() if key.template == template]
        stratum = next(key.stratum for key in self.classes if key.template == template)
        sql = template_sql(template, number, stratum=stratum, lateness_us=self.lateness_us)
        return TemplateView(
            number,
            template,
            tuple(c.number for c in classes),
            conjunctive_query(template).render(),
            view_query(template).render(),
            tuple(sql),
        )

    def _query(
        self,
        query: Query,
        plain: Query,
        alternatives: list[Alternative],
        uses: dict[int, list[tuple[str, str]]],
    ) -> QueryView:
        statements = zip(plain_statements(plain), plain_statements(query), strict=True)
        read = [(each, choice) for each in statements for choice in choices(each[0].root)]
        views = tuple(
            _SurveyedQuery(self, *statement, alternative, choice, uses).clauses(number)
            for number, (alternative, (statement, choice)) in enumerate(
                zip(alternatives, read, strict=True), 1
            )
        )
        blocks = tuple(
            BlockView(block.stream, block.root, _bound(query, index, views))
            for index, block in enumerate(query.blocks)
        )
        return QueryView(
            id=query.id,
            text=query.text,
            version=query.version,
            select=_select(query.select),
            publish=query.publish,
            parameters=query.parameters,
            blocks=blocks,
            alternatives=views,
            notes=tuple(notes_on(query, views)),
        )

    def use(self, clause: Clause, member: ClassMember) -> int:
        """Count one use of a clause's class, and return the number of the class."""
        key = clause.query_class
        template = self.templates.setdefault(key.template, len(self.templates) + 1)
        used = self.classes.setdefault(key, _Class(len(self.classes) + 1, template))
        used.window_us = max(used.window_us, _window_us(clause))
        used.members.append(member)
        return used.number


def _bound(
    query: Query, block: int, alternatives: Sequence[Sequence[ClauseView]]
) -> tuple[tuple[str, int], ...]:
    """Return the variables of a block that some alternative needs, with their numbers."""
    numbers: dict[str, int] = {}
    for clause in (clause for alternative in alternatives for clause in alternative):
        for side in clause.sides:
            if side.block == block:
                numbers.update((name, node.variable) for node in side.nodes for name in node.called)
    labels = [v.label for v in query.variables if v.block == block]
    return tuple((label, numbers[label]) for label in labels if label in numbers)


def _select(select: Select) -> str:
    if isinstance(select, SelectAll):
        return "*"
    return ", ".join(select.variables) if isinstance(select, SelectNodes) else select.text


@dataclass
class _SurveyedQuery:
    """One alternative of one query, and what its terms are called.

    `plain` is the plain statement that is compiled, `query` the same with its parameters.  `choice`
    has the disjunct of each node that has alternatives.
    """

    surveyor: _Surveyor
    plain: Query
    query: Query
    alternative: Alternative
    choice: Mapping[int, Disjunct]
    uses: dict[int, list[tuple[str, str]]]

    def __post_init__(self) -> None:
        self.labels = {variable.name: variable.label for variable in self.query.variables}
        self.disjuncts = list(self.choice.values())
        operands = [operand for disjunct in self.disjuncts for operand in disjunct.operands()]
        derived = [*operands, *(each for operand in operands for each in operand_terms(operand))]
        self.labels |= {term(each): spell_operand(each, self.labels) for each in derived}
        patterns = [p for p in self.alternative.patterns if not p.stream.startswith("#")]
        self.patterns = dict(zip(blocks_below(self.plain.root), patterns, strict=True))
        self.operators = list(self.plain.operators())

    def clauses(self, number: int) -> tuple[ClauseView, ...]:
        """Return the clauses of alternative `number`."""
        return tuple(
            self._clause(clause, ClassMember(self.query.id, number, i), i)
            for i, clause in enumerate(self.alternative.clauses)
        )

    def _clause(self, clause: Clause, member: ClassMember, index: int) -> ClauseView:
        number = self.surveyor.use(clause, member)
        sides = tuple(self._side(clause, i) for i in range(len(clause.sources)))
        operator = self.operators[index] if self.operators else None
        disjunct = self.disjuncts[index] if self.disjuncts else Disjunct()
        return ClauseView(
            operator=index,
            kind=operator.kind.value if operator is not None else "block",
            window_us=_window_us(clause),
            window=self._window(operator),
            sides=sides,
            comparisons=tuple(self._comparisons(clause, disjunct, sides)),
            class_number=number,
            stratum=clause.query_class.stratum,
            retention_us=clause.retention_under(defaultdict(int)),
        )

    def _window(self, operator: Operator | None) -> str:
        if operator is None:
            return ""
        index = self.operators.index(operator)
        window = list(self.query.operators())[index].window
        if isinstance(window, Parameter):
            return f"${window.name}"
        return render_duration(window.length_us)

    def _side(self, clause: Clause, index: int) -> SideView:
        source = clause.sources[index]
        template, variables = clause.query_class.template, clause.query_class.row.variables
        size = template.left_size
        kept = set(variables[:size] if index == 0 else variables[size:])
        if source.below is None:
            assert source.block is not None
            pattern = self.patterns[source.block]
            return SideView(source.block, None, pattern.stream, self._nodes(pattern, kept))
        below = source.below
        operator = self.alternative.clauses.index(below)
        root, *carried = below.tuple_variables
        nodes = [NodeView(-1, "tuple", root, (), (), (), (), False, root in kept)]
        nodes += [
            NodeView(0, self.labels.get(t, t), v, (self.labels.get(t, t),), (), (), (), False, True)
            for t, v in zip(below.carried, carried, strict=False)
            if v in kept
        ]
        return SideView(None, operator, f"operator {operator}", tuple(nodes))

    def _nodes(self, pattern: TreePattern, kept: set[int]) -> tuple[NodeView, ...]:
        ids = self.surveyor.catalog.add(pattern)
        roots = {block.root for block in self.query.blocks}
        views = []
        for number, node in zip(ids, pattern.nodes, strict=True):
            called = tuple(self.labels.get(t, t) for t in node.terms)
            self.uses[number] += [(self.query.id, name) for name in called]
            is_derived = node.derivation is not None
            views.append(
                NodeView(
                    parent=node.parent,
                    step=called[0] if is_derived else spell_step(node, is_first=node.parent < 0),
                    variable=number,
                    called=called,
                    filters=tuple(map(spell_condition, node.filters)),
                    constants=tuple(map(_constant, node.constants)),
                    tests=tuple(_spell_test(t) for t in node.tests if t.operator != "="),
                    is_block_root=not roots.isdisjoint(node.terms),
                    survives=number in kept,
                )
            )
        return tuple(views)

    def _comparisons(
        self, clause: Clause, disjunct: Disjunct, sides: tuple[SideView, ...]
    ) -> Iterator[ComparisonView]:
        where = {
            name: (s, n)
            for s, side in enumerate(sides)
            for n, node in enumerate(side.nodes)
            for name in node.called
        }
        for value_join in disjunct.value_joins:
            yield self._comparison(value_join, where, "=", clause)
        for residual in disjunct.residuals:
            yield self._comparison(residual, where, residual.operator, clause)
        for test in disjunct.tests:
            names = {n for each in test.arguments for n in self._ends(each, where)}
            ends = tuple(sorted(where[name] for name in names))
            text = spell_operand(test, self.labels)
            yield ComparisonView(text, False, test.function, ends, "tuple")

    def _comparison(
        self,
        comparison: ValueJoin | Residual,
        where: dict[str, tuple[int, int]],
        operator: str,
        clause: Clause,
    ) -> ComparisonView:
        names = {n for o in (comparison.left, comparison.right) for n in self._ends(o, where)}
        is_literal = any(
            isinstance(side, Literal | Parameter) for side in (comparison.left, comparison.right)
        )
        is_join = isinstance(comparison, ValueJoin)
        return ComparisonView(
            spell_comparison(comparison, self.labels),
            is_join,
            operator,
            tuple(sorted(where[name] for name in names)),
            "tuple" if comparison in clause.residuals else "constant" if is_literal else "join",
        )

    def _ends(self, operand: Operand, where: dict[str, tuple[int, int]]) -> Iterator[str]:
        """Yield the names of the nodes that an operand reads; times are of no node."""
        name = spell_operand(operand, self.labels)
        if name in where:
            yield name
            return
        for each in operand_terms(operand):
            name = spell_operand(each, self.labels)
            if name in where:
                yield name


def _window_us(clause: Clause) -> int:
    """Return a clause's window; 0 for one that a subscription gives."""
    return clause.window_us if isinstance(clause.window_us, int) else 0


def _spell_test(test: DataTest) -> str:
    data = test.data if isinstance(test.data, float) else _constant(test.data)
    return f"{test.operator} {spell_constant(data)}"


def _constant(constant: str | Parameter) -> str:
    return ParameterText(f"${constant.name}") if isinstance(constant, Parameter) else constant
