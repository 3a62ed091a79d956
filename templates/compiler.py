"""From a query to the query classes that answer it, by its plain statements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from templates.clause import Alternative, Published
from templates.clausecompiler import Catalog, Compiler
from templates.conjunctions import values_asked
from templates.decisioncompiler import Decisions
from templates.founddata import AskedOf
from templates.innertimes import with_times
from templates.lifted import with_lifted
from templates.nodeconditions import with_conditions_of_operands
from templates.ordered import choices
from templates.plain import plain_statements
from templates.prepared import decided_by_parameters, is_prepared
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
    read = [
        (each, [*map(with_conditions_of_operands, plain_statements(each.query))])
        for each in variants(query)
    ]
    given = point, catalog, published, lateness_us, shares
    found = _compile_statements(read, *given)
    places, asking = decided_by_parameters(found), dict[int, AskedOf]()
    # Where it is not decided together otherwise, each datum is asked.
    for each in [*AskedOf][1:] if query.parameters else ():
        if not places:
            break
        asking |= dict.fromkeys(places, each)
        again = _compile_statements(read, *given, asking)
        if is_prepared(again):
            _remove(found, catalog)
            return again
        places = decided_by_parameters(again)
        _remove(again, catalog)
    return found


def _remove(alternatives: Sequence[Alternative], catalog: Catalog) -> None:
    """Take back what the catalog has of alternatives that are not kept."""
    for alternative in alternatives:
        catalog.unwant(alternative.edges, alternative.valued)
        for pattern in alternative.patterns:
            catalog.remove(pattern)


def _compile_statements(
    read: Sequence[tuple[Variant, Sequence[Query]]],
    point: int,
    catalog: Catalog,
    published: Mapping[str, Published],
    lateness_us: int,
    shares: bool,
    asking: Mapping[int, AskedOf] | None = None,
) -> list[Alternative]:
    """Return the alternatives of all statements; `asking` has decisions by their places."""
    found: list[Alternative] = []
    for variant, statements in read:
        if variant.query.is_plain:
            found += _compile_plain(statements, point, catalog, published, shares=shares)
            continue
        asked = values_asked(statement for _, own in read for statement in own)
        given = asked, point, catalog, published, lateness_us, shares, asking or {}
        decisions = Decisions(variant.query, statements, *given)
        found += [
            decisions.compiler(statement, choice, variant.factors).compile()
            for statement in statements
            for choice in choices(statement.root)
        ]
    return [each.with_others() for each in found] if len(found) > 1 else found


def _compile_plain(
    statements: Sequence[Query],
    point: int,
    catalog: Catalog,
    published: Mapping[str, Published],
    *,
    shares: bool,
) -> list[Alternative]:
    statements = [with_times(with_lifted(each)) for each in statements]
    chosen = [(each, choice) for each in statements for choice in choices(each.root)]
    given = point, catalog, published
    # One asks for no more values than it compares.
    asked = values_asked(statements) if len(chosen) > 1 else frozenset[str]()
    is_alone = len(statements) == 1
    return [
        Compiler(each, *given, choice, shares=shares, is_alone=is_alone, asked=asked).compile()
        for each, choice in chosen
    ]
