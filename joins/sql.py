"""Conjunctive queries as SQL for DuckDB.

Every statement answers for one whole batch of instances at once.  An instance is new when its
number is at least `batch.first_instance`; a pair is looked at in the batch in which its second
instance arrives, whichever side that is on.

What the semantics say of time is one number for each pair, `SPAN`: the pair joins under a window
`T` exactly if `T >= SPAN`, and for FOLLOWED BY if also `FOLLOWS`.  With `Y` the instance with the
larger position and `X` the other, `T` must hold `|R.end - L.end|` and reach back from what was
known before `Y` to `X.end`: `T >= W(Y) - A - X.end` (section 1.1).
"""

from __future__ import annotations

from joins import schema
from templates.conjunctive import Atom, ConjunctiveQuery
from templates.template import Template

__all__ = ["render_probe", "render_sql", "value_join_sql"]

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

IS_LATER = "(dl.docid, dl.depth, dl.match_id) > (dr.docid, dr.depth, dr.match_id)"

FOLLOWS = "dl.end_us < dr.start_us"


def span(lateness_us: int) -> str:
    """Return the SQL of the smallest window that holds the pair (`dl`, `dr`)."""
    reach = (
        f"CASE WHEN {IS_LATER} THEN dl.watermark_us - dr.end_us"
        f" ELSE dr.watermark_us - dl.end_us END - {lateness_us}"
    )
    return f"greatest(abs(dr.end_us - dl.end_us), {reach})"


def value_join_sql(lateness_us: int) -> str:
    """Return the statement that fills `R_vj` for the batch and stratum in hand (section 6.5)."""
    halves = (
        "r.instance >= b.first_instance",
        "l.instance >= b.first_instance AND r.instance < b.first_instance",
    )
    selects = [
        f"""SELECT l.instance, r.instance, p.left_variable, p.right_variable, l.node, r.node
FROM {schema.BATCH} AS b, {schema.VALUE_PAIR} AS p,
    {schema.BINDING} AS l, {schema.BINDING} AS r,
    {schema.REMEMBERED} AS dl, {schema.REMEMBERED} AS dr
WHERE p.stratum = b.stratum
    AND l.variable = p.left_variable AND r.variable = p.right_variable AND l.value = r.value
    AND {half}
    AND dl.instance = l.instance AND dr.instance = r.instance AND l.instance <> r.instance
    AND {span(lateness_us)} <= p.window_us AND (p.is_symmetric OR {FOLLOWS})"""
        for half in halves
    ]
    return f"INSERT INTO {schema.VALUE_JOIN}\n" + "\nUNION ALL\n".join(selects)


def render_sql(
    query: ConjunctiveQuery, template: Template, number: int, lateness_us: int
) -> list[str]:
    """Return the statements that answer a conjunctive query for one batch.

    Each row is: class, l, r, span, then the node of each meta-variable.  With two sides there are
    two statements, for a new right and for a new left instance, except over `R_vj`, which holds
    both kinds.
    """
    if not template.has_right:
        return [render_probe(query, number, lateness_us, ["dl.instance >= b.first_instance"])]
    if any(atom.relation == "R_vj" for atom in query.atoms):
        return [render_probe(query, number, lateness_us, [])]
    return [
        render_probe(query, number, lateness_us, ["dr.instance >= b.first_instance"]),
        render_probe(
            query,
            number,
            lateness_us,
            ["dl.instance >= b.first_instance", "dr.instance < b.first_instance"],
        ),
    ]


def render_probe(query: ConjunctiveQuery, number: int, lateness_us: int, newness: list[str]) -> str:
    """Return one SELECT: the query's atoms as tables, equal terms as equalities."""
    has_right = "r" in query.head.terms
    columns = {"l": "dl.instance", "r": "dr.instance"}
    tables = [f"{schema.BATCH} AS b", f"{schema.REMEMBERED} AS dl"]
    if has_right:
        tables.append(f"{schema.REMEMBERED} AS dr")
    where = ["t.stratum = b.stratum", *newness]
    for i, atom in enumerate(query.atoms, 1):
        _add_atom(atom, i, number, tables, where, columns)
    for residual in query.residuals:
        operator = "<>" if residual.operator == "!=" else residual.operator
        where.append(f"{columns[residual.left]} {operator} {columns[residual.right]}")
    if has_right:
        where += [
            "dl.instance <> dr.instance",
            f"{span(lateness_us)} <= t.window_us",
            f"(t.is_symmetric OR {FOLLOWS})",
        ]
    nodes = [f"{columns[t]} AS {t}" for t in query.head.terms if t.startswith("node")]
    right = (
        ("dr.instance AS r", f"{span(lateness_us)} AS span")
        if has_right
        else ("NULL AS r", "0 AS span")
    )
    select = ",\n    ".join(["t.class", "dl.instance AS l", *right, *nodes])
    return (
        f"SELECT\n    {select}\nFROM "
        + ",\n    ".join(tables)
        + "\nWHERE "
        + "\n    AND ".join(where)
    )


def _add_atom(
    atom: Atom, i: int, number: int, tables: list[str], where: list[str], columns: dict[str, str]
) -> None:
    if atom.relation.startswith("R_value"):
        document, node, value = atom.terms
        columns[value] = f"d{document}.vals[{columns[node]} + 1]"
        return
    if atom.relation == "R_T":
        name, alias = schema.template_row(number), "t"
        fields: tuple[str, ...] = atom.terms
    else:
        name, fields = _RELATIONS[atom.relation]
        alias = f"a{i}"
    tables.append(f"{name} AS {alias}")
    for term, field in zip(atom.terms, fields, strict=True):
        column = f"{alias}.{field}"
        if field == "shape":
            where.append(f"{column} = d{term}.shape")
        elif term in columns:
            where.append(f"{column} = {columns[term]}")
        else:
            columns[term] = column
