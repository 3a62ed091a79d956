"""Compiles a set of queries as the engine does, and notes down what comes of it.

Nothing is evaluated, and nothing is kept: the catalog is made for the occasion.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from broker.explain.decisions import (
    AnyDecision,
    decision_numbers,
    decision_views,
    decisions_of,
)
from broker.explain.given import given_lines
from broker.explain.model import (
    BlockView,
    ClassMember,
    ClassView,
    ClauseView,
    QueryView,
    Survey,
    TemplateView,
    VariantView,
)
from broker.explain.names import name_variables
from broker.explain.notes import note_on_apart, notes_on
from broker.explain.spelling import ParameterLength, ParameterNumber, ParameterText, spell_selected
from broker.explain.surveyed import SurveyedDecisions, SurveyedQuery, given_window_us
from broker.explain.tablelines import table_lines
from broker.explain.variants import factor_lines, unasked_lines, variant_title
from broker.matching.queries.registration import RegisteredQuery, publishers_first
from joins import template_sql
from templates.clause import Alternative, Clause, Published
from templates.compiler import compile_query
from templates.conjunctive import conjunctive_query, view_query
from templates.ordered import choices
from templates.plain import plain_statements
from templates.prepared import is_prepared, may_be_prepared
from templates.queryclass import QueryClass
from templates.template import Template
from templates.variants import variants
from xpath_eval.catalog import EvaluationPlan, PatternCatalog
from xscl.query import Query, SelectAll, SelectNodes
from xscl.substitution import substitute

__all__ = ["LATENESS_US", "stand_ins", "survey", "survey_with_plan"]

LATENESS_US = 86_400_000_000
"""The allowed lateness where none is named (semantics, section 1.1)."""


def survey(queries: Sequence[Query], *, lateness_us: int = LATENESS_US) -> Survey:
    """Return what becomes of queries that are registered together, in the order given."""
    return survey_with_plan(queries, lateness_us=lateness_us)[0]


def survey_with_plan(
    queries: Sequence[Query], *, lateness_us: int = LATENESS_US
) -> tuple[Survey, EvaluationPlan]:
    """Return a survey, and the plan that evaluates its queries with the survey's variables."""
    builder = _Surveyor(lateness_us)
    ordered = publishers_first([RegisteredQuery(query) for query in queries])
    compiled = {id(each.query): builder.compile(each.query) for each in ordered}
    plan = builder.catalog.plan()
    return builder.finish([(query, compiled[id(query)]) for query in queries]), plan


def stand_ins(query: Query) -> dict[str, str | float | int]:
    """Return a value for each parameter that keeps the form of the query."""
    values: dict[str, str | float | int] = {}
    for i, (name, kind) in enumerate(query.parameters):
        if kind == "duration":
            values[name] = ParameterLength(name)
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
    deciding: dict[AnyDecision, list[str]] = field(default_factory=dict)

    def compile(self, query: Query) -> tuple[Query, list[Alternative]]:
        """Compile one query after the publishers of the streams it reads.

        As in the engine, a query whose parameters are all data is compiled as it is.  In others
        something stands for each parameter.
        """
        plain = query
        if query.parameters and not self._is_prepared(query):
            plain = substitute(query, stand_ins(query), into_opaque=False)
        alternatives = compile_query(plain, 0, self.catalog, self.streams, self.lateness_us)
        # Each variant of a query with LOSS has decisions of its own.
        every = (d for each in alternatives for d in decisions_of([each]).values())
        for decision in dict.fromkeys(every):
            self.deciding.setdefault(decision, []).append(query.id)
        if query.publish is not None:
            for root in (alternative.root for alternative in alternatives):
                known = self.streams.get(query.publish, Published(0, 0))
                self.streams[query.publish] = Published(
                    max(known.stratum, root.query_class.stratum + 1),
                    max(known.retention_us, root.reach.under(defaultdict(int))),
                    max(known.grace_us, self._grace_us(query)),
                )
        return plain, alternatives

    def _is_prepared(self, query: Query) -> bool:
        """Return whether a query with parameters is compiled without values of these."""
        return may_be_prepared(query) and is_prepared(
            compile_query(query, 0, PatternCatalog(), self.streams)
        )

    def _grace_us(self, query: Query) -> int:
        """Return the grace of a query: what it says, and at least that of what it reads."""
        own_us = self.lateness_us if query.grace is None else query.grace
        read = (self.streams.get(block.stream) for block in query.blocks)
        graces = (each.grace_us for each in read if each is not None)
        return max(min(own_us, self.lateness_us), *graces, 0)

    def finish(self, compiled: Sequence[tuple[Query, tuple[Query, list[Alternative]]]]) -> Survey:
        """Number classes and templates in the order of the queries, and put all together."""
        uses: dict[int, list[tuple[str, str]]] = defaultdict(list)
        every = [query for query, _ in compiled]
        views = [
            replace(
                self._query(query, plain, alternatives, uses),
                tables=tuple(table_lines(query, every)),
            )
            for query, (plain, alternatives) in compiled
        ]
        return Survey(
            tuple(views),
            name_variables(self.catalog, uses),
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
        if query.is_lossy:
            return self._lossy(query, plain, alternatives, uses)
        statements = zip(plain_statements(plain), plain_statements(query), strict=True)
        read = [(each, choice) for each in statements for choice in choices(each[0].root)]
        has_runs = query.has_runs or query.has_chains
        kind = SurveyedDecisions if query.is_ordered or has_runs else SurveyedQuery
        numbers = decision_numbers(alternatives)
        views = tuple(
            kind(self.catalog, self.use, *statement, alternative, choice, uses, numbers).clauses(
                number
            )
            for number, (alternative, (statement, choice)) in enumerate(
                zip(alternatives, read, strict=True), 1
            )
        )
        decisions = tuple(decision_views(query, alternatives, self.deciding))
        blocks = tuple(
            BlockView(block.stream, block.root, _bound(query, index, views))
            for index, block in enumerate(query.blocks)
        )
        return QueryView(
            id=query.id,
            text=query.text,
            version=query.version,
            select=_select(query),
            publish=query.publish,
            parameters=query.parameters,
            blocks=blocks,
            alternatives=views,
            notes=tuple(notes_on(query, views, decisions, are_together=plain is query)),
            decisions=decisions,
            says_grace=query.grace is not None,
            given=tuple(given_lines(query)),
        )

    def _lossy(
        self,
        query: Query,
        plain: Query,
        alternatives: list[Alternative],
        uses: dict[int, list[tuple[str, str]]],
    ) -> QueryView:
        """Return the view of a query with LOSS: that of its first variant, with all of them."""
        rest = iter(alternatives)
        found: list[VariantView] = []
        for variant in variants(plain):
            statements = plain_statements(variant.query)
            count = sum(len(choices(each.root)) for each in statements)
            own = replace(variant.query, text=query.text)
            view = self._query(own, own, list(islice(rest, count)), uses)
            title, factors = variant_title(query, variant), tuple(factor_lines(query, variant))
            found.append(VariantView(title, variant.lost, factors, view))
        notes = found[0].view.notes
        if query.parameters and plain is not query:
            notes = (*notes, note_on_apart(query))
        return replace(
            found[0].view,
            parameters=query.parameters,
            variants=tuple(found),
            unasked=tuple(unasked_lines(query, plain)),
            notes=notes,
        )

    def use(self, clause: Clause, member: ClassMember) -> int:
        """Count one use of a clause's class, and return the number of the class."""
        key = clause.query_class
        template = self.templates.setdefault(key.template, len(self.templates) + 1)
        used = self.classes.setdefault(key, _Class(len(self.classes) + 1, template))
        used.window_us = max(used.window_us, given_window_us(clause))
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


def _select(query: Query) -> str:
    """Return what SELECT shows; values of rows as the statement has them."""
    select = query.select
    if isinstance(select, SelectAll):
        return "*"
    if isinstance(select, SelectNodes):
        return ", ".join(select.variables)
    return spell_selected(select.text, query)
