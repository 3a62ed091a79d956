"""From a query to the query classes that answer it, by its plain statements."""

from __future__ import annotations

from collections.abc import Mapping

from templates.clause import Alternative, Published
from templates.clausecompiler import Catalog, Compiler
from templates.decisioncompiler import DecisionCompiler, Decisions
from templates.lifted import with_lifted
from templates.ordered import choices
from templates.plain import plain_statements
from templates.variants import Variant, variants
from xscl.query import Query

__all__ = ["Catalog", "compile_query"]


def compile_query(
    query: Query,
    point: int,
    catalog: Catalog,
    published: Mapping[str, Published],
    lateness_us: int = 0,
    *,
    shares: bool = True,
) -> list[Alternative]:
    """Return the alternatives of a query, its patterns added to the catalog.

    Parameters may be left where they are data (`prepared`).  `point` is the registration point.
    With `shares` operators that differ in windows and in strings alone hand on their tuples in one
    stream.  Of others, and of what decides, equal ones with equal points do; those of a query with
    parameters have a stream of their own, whatever its assignments.  Streams that are not in
    `published` come from outside and are read in stratum 0.
    `lateness_us` is the largest grace, which a query has that says none.
    """
    found = [
        alternative
        for variant in variants(query)
        for alternative in _compile(variant, point, catalog, published, lateness_us, shares=shares)
    ]
    return [each.with_others() for each in found] if len(found) > 1 else found


def _compile(
    variant: Variant,
    point: int,
    catalog: Catalog,
    published: Mapping[str, Published],
    lateness_us: int,
    *,
    shares: bool,
) -> list[Alternative]:
    query = variant.query
    statements = plain_statements(query)
    if query.is_plain:
        statements = tuple(map(with_lifted, statements))
        given = (point, catalog, published)
        is_alone = len(statements) == 1
        return [
            Compiler(statement, *given, choice, shares=shares, is_alone=is_alone).compile()
            for statement in statements
            for choice in choices(statement.root)
        ]
    decisions = Decisions(query, statements, point, catalog, published, lateness_us, shares)
    return [
        DecisionCompiler(
            statement,
            point,
            catalog,
            published,
            choice,
            shares=shares,
            is_alone=len(statements) == 1,
            decisions=decisions,
            factors=variant.factors,
        ).compile()
        for statement in statements
        for choice in choices(statement.root)
    ]
