"""Conjunctive queries as SQL for DuckDB.

Every statement answers for one whole batch of instances at once.  An instance is new when its
number is at least the batch's first; a pair is looked at in the batch in which its second instance
arrives, on either side.

Tables are named in the order in which they are joined, each to those before it (`rows.connect` says
why the optimizer is not asked).  First come the pairs of nodes that have equal values, then the
template rows that ask for these, then the other value joins.  These are a materialised part of
their own; documents and the edges of their shapes are joined to its rows.

The rules of time become one number for each pair, `SPAN`: the pair joins under a window `T` exactly
if `T >= SPAN`, and for FOLLOWED BY if also `_FOLLOWS`.  With `Y` the instance with the larger
position and `X` the other, `T` must hold `|R.end - L.end|` and reach back from the watermark before
`Y` to `X.end`: `T >= W(Y) - A - X.end` (section 1.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from joins.sql import schema
from joins.sql.limits import STEP_TABLES
from joins.sql.select import Select, Steps
from templates.conjunctive import Atom, ConjunctiveQuery, view_query
from templates.template import Template

__all__ = ["ProbeStep", "render_sql", "signature_sql", "template_sql", "value_join_sql"]

_RELATIONS = {
    "R_vj": (
        schema.VALUE_JOIN,
        ("l", "r", "left_variable", "right_variable", "left_node", "right_node"),
    ),
    "R_doc": (schema.BINDING, ("instance", "variable", "node", "value")),
    "R_docW": (schema.BINDING, ("instance", "variable", "node", "value")),
    "R_bin": (schema.SHAPE_EDGE, ("shape", "var1", "var2", "node1", "node2")),
    "R_binW": (schema.SHAPE_EDGE, ("shape", "var1", "var2", "node1", "node2")),
}

_VALUE_RELATIONS = frozenset({"R_vj", "R_doc", "R_docW"})

_IS_LATER = "(dl.docid, dl.depth, dl.match_id) > (dr.docid, dr.depth, dr.match_id)"

_FOLLOWS = "dl.end_us < dr.start_us"


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """The parameters of a probe: a batch, a stratum, the allowed lateness.

    Instances from `first_instance` on are new; a pair belongs to the later of its instances. `only`
    restricts the probe to one class; a statement joins `step_tables` tables in a step.
    """

    first_instance: int
    stratum: int
    lateness_us: int
    only: int | None = None
    step_tables: int = STEP_TABLES

    def wanted(self) -> tuple[str, ...]:
        """Return conditions on template rows."""
        conditions = [f"t.stratum = {self.stratum}"]
        if self.only is not None:
            conditions.append(f"t.class = {self.only}")
        return tuple(conditions)

    def new(self, instance: str) -> list[str]:
        """Return the condition that an instance is new."""
        return [f"{instance} >= {self.first_instance}"]

    def later(self, instance: str, other: str) -> list[str]:
        """Return conditions that an instance is new, and the later one of a pair."""
        return [*self.new(instance), f"{other} < {instance}"]


def _span(lateness_us: int) -> str:
    """Return the SQL of the smallest window that holds the pair (`dl`, `dr`)."""
    reach = (
        f"CASE WHEN {_IS_LATER}\n"
        "            THEN dl.watermark_us - dr.end_us ELSE dr.watermark_us - dl.end_us END"
        f" - {lateness_us}"
    )
    return f"greatest(abs(dr.end_us - dl.end_us),\n        {reach})"


def value_join_sql(probe_step: ProbeStep) -> str:
    """Return the statement that fills `R_vj` for the batch and stratum in hand (Hong, section 6.5).

    The new side is R_R; of the other the slices of the batch's values are looked at, R_L.
    """
    sides = "l.instance", "r.instance"
    halves = (
        (schema.SLICE, schema.BINDING, " AND ".join(probe_step.later(sides[1], sides[0]))),
        (schema.BINDING, schema.SLICE, " AND ".join(probe_step.later(sides[0], sides[1]))),
    )
    selects = [
        f"""SELECT l.instance AS l, r.instance AS r, p.left_variable, p.right_variable,
        l.node AS left_node, r.node AS right_node, p.window_us, p.is_symmetric
    FROM {left} AS l, {right} AS r, {schema.VALUE_PAIR} AS p
    WHERE l.value = r.value AND {half}
        AND p.stratum = {probe_step.stratum}
        AND p.left_variable = l.variable AND p.right_variable = r.variable"""
        for left, right, half in halves
    ]
    equal = "\n    UNION ALL\n    ".join(selects)
    return f"""INSERT INTO {schema.VALUE_JOIN}
WITH equal AS MATERIALIZED (
    {equal}
)
SELECT e.l, e.r, e.left_variable, e.right_variable, e.left_node, e.right_node
FROM equal AS e, {schema.REMEMBERED} AS dl, {schema.REMEMBERED} AS dr
WHERE dl.instance = e.l AND dr.instance = e.r
    AND {_span(probe_step.lateness_us)} <= e.window_us AND (e.is_symmetric OR {_FOLLOWS})"""


def render_sql(
    query: ConjunctiveQuery, template: Template, number: int, probe_step: ProbeStep
) -> list[str]:
    """Return the statements that answer a conjunctive query for one batch.

    Each row is: class, l, r, span, then the node of each meta-variable.  With two sides there are
    two statements, for a new right and for a new left instance, except over `R_vj`, which holds
    both kinds.
    """
    if not template.has_right:
        return [_probe_sql(query, number, probe_step, probe_step.new("{l}"))]
    if any(atom.relation == "R_vj" for atom in query.atoms):
        return [_probe_sql(query, number, probe_step, [])]
    return [
        _probe_sql(query, number, probe_step, probe_step.later("{r}", "{l}")),
        _probe_sql(query, number, probe_step, probe_step.later("{l}", "{r}")),
    ]


def template_sql(template: Template, number: int, *, stratum: int, lateness_us: int) -> list[str]:
    """Return the statements by which `mmqjp-views` answers a template's query for one batch."""
    return render_sql(view_query(template), template, number, ProbeStep(1, stratum, lateness_us))


@dataclass
class _Probe:
    """One conjunctive query over the tables of `schema`, put together step by step.

    `documents` are the tables of left and right instances.  The rows of template `number` hold the
    conditions `wanted`, and have the columns `kept`, which are no terms.
    """

    query: ConjunctiveQuery
    number: int
    documents: tuple[str, str]
    wanted: tuple[str, ...]
    step_tables: int
    kept: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        atoms, self._steps = self.query.atoms, Steps(self.kept, self.step_tables)
        self.has_right = "r" in self.query.head.terms
        self.values = [atom for atom in atoms if atom.relation in _VALUE_RELATIONS]
        others = (atom for atom in atoms if atom.relation not in (*_VALUE_RELATIONS, "R_T"))
        self._others = sorted(others, key=lambda atom: atom.terms[0])

    @property
    def select(self) -> Select:
        """The step in hand."""
        return self._steps.select

    def add_rows(self) -> None:
        """Add the template's table as `t`."""
        (row,) = (atom for atom in self.query.atoms if atom.relation == "R_T")
        table = schema.template_row(self.number)
        self.select.add(table, "t", ((term, term) for term in row.terms))
        self.select.where += self.wanted

    def add_values(self, start: int = 0, stop: int | None = None) -> None:
        """Add some of the atoms over values."""
        for i, atom in list(enumerate(self.values))[start:stop]:
            if self._steps.is_full:
                self._end_step([*self.values[i:], *self._others])
            self._add_atom(atom, f"j{i + 1}")

    def add_others(self) -> None:
        """Add documents, and all atoms that are not over values, to the tables joined so far."""
        if self.values:
            self._end_step(self._others)
        self._add_document("l")
        for i, atom in enumerate(self._others):
            if self._steps.is_full:
                self._end_step(self._others[i:])
            self._add_document(atom.terms[0])
            self._add_atom(atom, f"a{i + 1}")
        for side in "lr" if self.has_right else "l":
            self._add_document(side)

    def _end_step(self, rest: Sequence[Atom]) -> None:
        """End the step in hand; some atoms are still to be added."""
        compared = {end for each in self.query.residuals for end in (each.left, each.right)}
        self._steps.end(compared.union(*(atom.terms for atom in (*rest, self.query.head))))

    def _add_document(self, side: str) -> None:
        alias = f"d{side}"
        if alias not in self.select.tables:
            self.select.add(self.documents[side == "r"], alias, [(side, "instance")])

    def _add_atom(self, atom: Atom, alias: str) -> None:
        if atom.relation.startswith("R_value"):
            document, node, value = atom.terms
            self.select.columns[value] = f"d{document}.vals[{self.select.columns[node]} + 1]"
            return
        table, names = _RELATIONS[atom.relation]
        pairs = list(zip(atom.terms, names, strict=True))
        if names[0] == "shape":
            pairs = pairs[1:]
            self.select.where.append(f"{alias}.shape = d{atom.terms[0]}.shape")
        self.select.add(table, alias, pairs)

    def render(self, *columns: str) -> str:
        """Return the statement, for some columns and the nodes of the head."""
        held = self.select.columns
        nodes = (f"{held[term]} AS {term}" for term in self.query.head.terms if term[0] == "n")
        return self._steps.render([*columns, *nodes])


def _probe_sql(
    query: ConjunctiveQuery, number: int, probe_step: ProbeStep, instances: Sequence[str]
) -> str:
    """Return a query's statement; `instances` are conditions on the numbers `{l}` and `{r}`."""
    tables = (schema.REMEMBERED, schema.REMEMBERED)
    kept = ("window_us", "is_symmetric")
    probe = _Probe(query, number, tables, probe_step.wanted(), probe_step.step_tables, kept)
    if probe.values:
        _join_values(probe, instances)
        probe.add_others()
    else:
        probe.add_rows()
        probe.add_others()
        ends = {"l": "dl.instance", "r": "dr.instance"}
        probe.select.where += [condition.format_map(ends) for condition in instances]
    columns, where = probe.select.columns, probe.select.where
    for residual in query.residuals:
        operator = "<>" if residual.operator == "!=" else residual.operator
        where.append(f"{columns[residual.left]} {operator} {columns[residual.right]}")
    if not probe.has_right:
        return probe.render("t.class", "dl.instance AS l", "NULL AS r", "0 AS span")
    where += [
        "dl.instance <> dr.instance",
        "span <= t.window_us",
        f"(t.is_symmetric OR {_FOLLOWS})",
    ]
    span_us = f"{_span(probe_step.lateness_us)} AS span"
    return probe.render("t.class", "dl.instance AS l", "dr.instance AS r", span_us)


def _join_values(probe: _Probe, instances: Sequence[str]) -> None:
    """Join values, and template rows as soon as both sides are there."""
    is_view = probe.values[0].relation == "R_vj"
    first = 1 if is_view else 2
    probe.add_values(0, first)
    probe.add_rows()
    columns = probe.select.columns
    probe.select.where += [condition.format_map(columns) for condition in instances]
    probe.add_values(first)


def signature_sql(
    query: ConjunctiveQuery,
    template: Template,
    number: int,
    asked: str,
    step_tables: int = STEP_TABLES,
) -> str:
    """Return the statement that answers a conjunctive query for signatures.

    Both sides of a pair have the signature's number for their instance; times and residuals are
    not looked at.  `asked` is a condition on `t.class`.  Rows: class, signature, nodes.
    """
    tables = (schema.SIGNATURE_LEFT, schema.SIGNATURE_RIGHT)
    atoms = tuple(atom for atom in query.atoms if not atom.relation.startswith("R_value"))
    query = replace(query, atoms=atoms, residuals=())
    probe = _Probe(query, number, tables, (asked,), step_tables)
    probe.add_rows()
    probe.add_values()
    probe.add_others()
    if template.has_right:
        probe.select.where.append("dl.instance = dr.instance")
    return probe.render("t.class", "dl.instance AS signature")
