"""Conjunctive queries as SQL for DuckDB.

Every statement answers for one whole batch of instances at once.  An instance is new when its
number is at least the batch's first; a pair is looked at in the batch in which its second instance
arrives, whichever side that is on.

Tables are named in the order in which they are joined, each to those before it (`rows.connect`
says why the optimizer is not asked): the pairs of nodes that have equal values first, then the
template rows that ask for these, then the other value joins.  That much is a materialised part of
its own; documents and the edges of their shapes are joined to what survives it.

What the semantics say of time is one number for each pair, `SPAN`: the pair joins under a window
`T` exactly if `T >= SPAN`, and for FOLLOWED BY if also `FOLLOWS`.  With `Y` the instance with the
larger position and `X` the other, `T` must hold `|R.end - L.end|` and reach back from what was
known before `Y` to `X.end`: `T >= W(Y) - A - X.end` (section 1.1).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from joins import schema
from templates.conjunctive import Atom, ConjunctiveQuery, conjunctive_query
from templates.template import Template

__all__ = [
    "FOLLOWS",
    "LeftOut",
    "Moment",
    "pair_sql",
    "render_sql",
    "signature_sql",
    "span",
    "value_join_sql",
]

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

IS_LATER = "(dl.docid, dl.depth, dl.match_id) > (dr.docid, dr.depth, dr.match_id)"

FOLLOWS = "dl.end_us < dr.start_us"


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Pairs of instances that are left out: (left, right) by class, and by value join.

    Conditions name both, so each is tested as soon as both are there.
    """

    classes: tuple[tuple[int, int, str], ...] = ()
    value_joins: tuple[tuple[int, int, int, int], ...] = ()

    @classmethod
    def of(
        cls,
        classes: Mapping[tuple[int, int], Collection[int]],
        joins: Mapping[tuple[int, int], Collection[tuple[int, int]]],
    ) -> LeftOut:
        """Return what leaves pairs out."""
        return cls(
            tuple((*pair, ", ".join(map(str, sorted(own)))) for pair, own in classes.items()),
            tuple((*pair, *join) for pair, own in joins.items() for join in sorted(own)),
        )

    def of_classes(self, left: str, right: str) -> list[str]:
        """Return conditions on `t.class` and on two columns of instances."""
        return [
            f"NOT ({left} = {x} AND {right} = {y} AND t.class IN ({numbers}))"
            for x, y, numbers in self.classes
        ]

    def of_value_joins(self) -> str:
        """Return conditions on the bindings `l` and `r`."""
        return "".join(
            f" AND NOT (l.instance = {x} AND r.instance = {y} AND l.variable = {a}"
            f" AND r.variable = {b})"
            for x, y, a, b in self.value_joins
        )


@dataclass(frozen=True, slots=True)
class Moment:
    """What a probe is for: a batch by its first new instance, a stratum, the allowed lateness.

    `only` restricts it to one class, `left_out` says which pairs are not asked for.
    """

    first_instance: int
    stratum: int
    lateness_us: int
    only: int | None = None
    left_out: LeftOut = LeftOut()


def span(lateness_us: int) -> str:
    """Return the SQL of the smallest window that holds the pair (`dl`, `dr`)."""
    reach = (
        f"CASE WHEN {IS_LATER}\n"
        "            THEN dl.watermark_us - dr.end_us ELSE dr.watermark_us - dl.end_us END"
        f" - {lateness_us}"
    )
    return f"greatest(abs(dr.end_us - dl.end_us),\n        {reach})"


def value_join_sql(moment: Moment) -> str:
    """Return the statement that fills `R_vj` for the batch and stratum in hand (section 6.5).

    The new side is R_R; of the other the slices of the batch's values are looked at, R_L.
    """
    first = moment.first_instance
    halves = (
        (schema.SLICE, schema.BINDING, f"r.instance >= {first}"),
        (schema.BINDING, schema.SLICE, f"l.instance >= {first} AND r.instance < {first}"),
    )
    selects = [
        f"""SELECT l.instance AS l, r.instance AS r, p.left_variable, p.right_variable,
        l.node AS left_node, r.node AS right_node, p.window_us, p.is_symmetric
    FROM {left} AS l, {right} AS r, {schema.VALUE_PAIR} AS p
    WHERE l.value = r.value AND l.instance <> r.instance AND {half}
        AND p.stratum = {moment.stratum}
        AND p.left_variable = l.variable AND p.right_variable = r.variable
        {moment.left_out.of_value_joins()}"""
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
    AND {span(moment.lateness_us)} <= e.window_us AND (e.is_symmetric OR {FOLLOWS})"""


def render_sql(
    query: ConjunctiveQuery, template: Template, number: int, moment: Moment
) -> list[str]:
    """Return the statements that answer a conjunctive query for one batch.

    Each row is: class, l, r, span, then the node of each meta-variable.  With two sides there are
    two statements, for a new right and for a new left instance, except over `R_vj`, which holds
    both kinds.
    """
    first = moment.first_instance
    if not template.has_right:
        return [_Probe(query, number, moment).render(l=f">= {first}")]
    if any(atom.relation == "R_vj" for atom in query.atoms):
        return [_Probe(query, number, moment).render()]
    return [
        _Probe(query, number, moment).render(r=f">= {first}"),
        _Probe(query, number, moment).render(l=f">= {first}", r=f"< {first}"),
    ]


def pair_sql(template: Template, number: int, moment: Moment, pair: tuple[int, int]) -> str:
    """Return the statement for the tuples of one pair in the class `moment.only`.

    Residuals are not looked at.  `number` is the template's.
    """
    query = replace(conjunctive_query(template), residuals=())
    left, right = pair
    return _Probe(query, number, moment).render(l=f"= {left}", r=f"= {right}")


@dataclass
class _Select:
    """The tables and conditions of one SELECT; equal terms become equal columns."""

    tables: list[str] = field(default_factory=list)
    where: list[str] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)

    def add(self, table: str, alias: str, columns: Iterable[tuple[str, str]]) -> None:
        """Add a table whose columns are (term, name)."""
        self.tables.append(f"{table} AS {alias}")
        for term, name in columns:
            column = f"{alias}.{name}"
            if term in self.columns:
                self.where.append(f"{column} = {self.columns[term]}")
            else:
                self.columns[term] = column

    def render(self, columns: Iterable[str]) -> str:
        """Return the SELECT of some columns."""
        select = ",\n    ".join(columns)
        where = "\nWHERE " + "\n    AND ".join(self.where) if self.where else ""
        return f"SELECT\n    {select}\nFROM " + ",\n    ".join(self.tables) + where


@dataclass
class _Probe:
    """One conjunctive query over the tables of `schema`."""

    query: ConjunctiveQuery
    number: int
    moment: Moment

    def render(self, **newness: str) -> str:
        """Return the statement; `newness` restricts the instance numbers of `l` and `r`."""
        atoms = self.query.atoms
        values = [atom for atom in atoms if atom.relation in _VALUE_RELATIONS]
        others = [atom for atom in atoms if atom.relation not in (*_VALUE_RELATIONS, "R_T")]
        outer = _Select()
        if values:
            joined, columns = self._joined(values, newness)
            outer.add("joined", "t", ((term, term) for term in columns))
            prologue = f"WITH joined AS MATERIALIZED (\n{joined}\n)\n"
        else:
            self._add_wanted_rows(outer)
            prologue = ""
        sides = [side for side in ("l", "r") if side in self.query.head.terms]
        for side in sides:
            outer.add(schema.REMEMBERED, f"d{side}", [(side, "instance")])
            if not values and side in newness:
                outer.where.append(f"d{side}.instance {newness[side]}")
            for i, atom in enumerate(others, 1):
                if atom.terms[0] == side:
                    self.add_atom(outer, atom, f"a{i}")
        for residual in self.query.residuals:
            operator = "<>" if residual.operator == "!=" else residual.operator
            ends = (outer.columns[residual.left], outer.columns[residual.right])
            outer.where.append(f" {operator} ".join(ends))
        return prologue + outer.render(self._head(outer, has_right=len(sides) == 2))

    def _head(self, outer: _Select, *, has_right: bool) -> list[str]:
        nodes = [f"{outer.columns[t]} AS {t}" for t in self.query.head.terms if t[0] == "n"]
        if not has_right:
            return ["t.class", "dl.instance AS l", "NULL AS r", "0 AS span", *nodes]
        span_us = span(self.moment.lateness_us)
        outer.where += [
            "dl.instance <> dr.instance",
            "span <= t.window_us",
            f"(t.is_symmetric OR {FOLLOWS})",
        ]
        return ["t.class", "dl.instance AS l", "dr.instance AS r", f"{span_us} AS span", *nodes]

    def _joined(self, values: list[Atom], newness: dict[str, str]) -> tuple[str, list[str]]:
        """Return the part that joins values and template rows, and the terms that it binds."""
        inner = _Select()
        first = 1 if values[0].relation == "R_vj" else 2
        for i, atom in enumerate(values, 1):
            self.add_atom(inner, atom, f"j{i}")
            if i == first:
                self._add_wanted_rows(inner)
        for side, condition in newness.items():
            inner.where.append(f"{inner.columns[side]} {condition}")
        if "r" in inner.columns:
            sides = inner.columns["l"], inner.columns["r"]
            if values[0].relation != "R_vj":
                inner.where.append(f"{sides[0]} <> {sides[1]}")
            inner.where += self.moment.left_out.of_classes(*sides)
        terms = [term for term in inner.columns if not term.startswith("s")]
        columns = [f"{inner.columns[t]} AS {t}" for t in terms]
        return inner.render([*columns, "t.window_us", "t.is_symmetric"]), terms

    def add_rows(self, select: _Select) -> None:
        """Add the template's table as `t`."""
        (row,) = (atom for atom in self.query.atoms if atom.relation == "R_T")
        table = schema.template_row(self.number)
        select.add(table, "t", ((term, term) for term in row.terms))

    def _add_wanted_rows(self, select: _Select) -> None:
        self.add_rows(select)
        select.where.append(f"t.stratum = {self.moment.stratum}")
        if self.moment.only is not None:
            select.where.append(f"t.class = {self.moment.only}")

    def add_atom(self, select: _Select, atom: Atom, alias: str) -> None:
        """Add the table of one atom."""
        if atom.relation.startswith("R_value"):
            document, node, value = atom.terms
            select.columns[value] = f"d{document}.vals[{select.columns[node]} + 1]"
            return
        table, names = _RELATIONS[atom.relation]
        pairs = list(zip(atom.terms, names, strict=True))
        if names[0] == "shape":
            pairs = pairs[1:]
            select.where.append(f"{alias}.shape = d{atom.terms[0]}.shape")
        select.add(table, alias, pairs)


def signature_sql(query: ConjunctiveQuery, template: Template, number: int, asked: str) -> str:
    """Return the statement that answers a conjunctive query for signatures.

    Both sides of a pair have the signature's number for their instance; times and residuals are
    not looked at.  `asked` is a condition on `t.class`.  Rows: class, signature, nodes.
    """
    values = [atom for atom in query.atoms if atom.relation in _VALUE_RELATIONS]
    edges = [atom for atom in query.atoms if atom.relation in ("R_bin", "R_binW")]
    probe = _Probe(query, number, Moment(0, 0, 0))
    inner = _Select()
    probe.add_rows(inner)
    inner.where.append(asked)
    for i, atom in enumerate(values, 1):
        probe.add_atom(inner, atom, f"j{i}")
    terms = [term for term in inner.columns if term != "class"]
    joined = inner.render(["t.class", *(f"{inner.columns[t]} AS {t}" for t in terms)])
    outer = _Select()
    outer.add("joined", "t", ((term, term) for term in inner.columns))
    outer.add(schema.SIGNATURE_LEFT, "dl", [("l", "instance")])
    if template.has_right:
        outer.add(schema.SIGNATURE_RIGHT, "dr", [("r", "instance")])
        outer.where.append("dl.instance = dr.instance")
    for i, atom in enumerate(edges, 1):
        probe.add_atom(outer, atom, f"a{i}")
    nodes = [f"{outer.columns[term]} AS {term}" for term in query.head.terms if term[0] == "n"]
    select = outer.render(["t.class", "dl.instance AS signature", *nodes])
    return f"WITH joined AS MATERIALIZED (\n{joined}\n)\n{select}"
