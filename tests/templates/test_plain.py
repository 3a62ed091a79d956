"""Plain statements: what is left of a query when units, SAME, WITHIN and WHERE are taken out."""

from __future__ import annotations

from support.reading import query

from templates.ordered import choices
from templates.plain import plain_statements
from xscl.query import From, Operator, Query, ValueJoin, Window

HOUR_US = 3_600_000_000


def plain(text: str) -> Query:
    """Return the one plain statement of a query."""
    [statement] = plain_statements(query(text))
    return statement


def test_a_query_of_operators_is_plain() -> None:
    found = query("S//a[k->x] FOLLOWED BY {x = y, 1 h} S//b[k->y]")
    assert plain_statements(found) == (found,)


def test_within_is_the_window_where_there_is_none_and_a_condition_of_every_operator() -> None:
    root = plain("S//a FOLLOWED BY S//b FOLLOWED BY {, 2 h} S//c WITHIN 1 h").root
    assert isinstance(root, Operator)
    assert isinstance(root.left, Operator)
    assert (root.left.window, root.window) == (Window(HOUR_US), Window(2 * HOUR_US))
    bounds = [operator.disjuncts[0].residuals for operator in (root.left, root)]
    assert bounds[0] == bounds[1]
    assert len(bounds[0]) == 1


def test_same_joins_neighbours_of_any_nesting() -> None:
    text = "S//a FOLLOWED BY (S//b JOIN {, 1 h} S//c) WITHIN 1 h SAME (//@k)"
    root = plain(text).root
    assert isinstance(root, Operator)
    assert isinstance(root.right, Operator)
    joined = [
        (join.left.variable, join.right.variable)  # type: ignore[union-attr]
        for operator in (root.right, root)
        for join in operator.disjuncts[0].value_joins
        if isinstance(join, ValueJoin)
    ]
    assert joined == [("//@k#2", "//@k#3"), ("//@k", "//@k#2")]
    assert [len(block.keys) for block in plain(text).blocks] == [1, 1, 1]


def test_where_is_a_condition_of_the_operator_whose_tuples_it_keeps() -> None:
    braces = query("S//a->x FOLLOWED BY {x/p > y/p AND dur() > 3 s, 1 h} S//b->y").root
    where = plain("S//a->x FOLLOWED BY {, 1 h} S//b->y WHERE x/p > y/p AND dur() > 3 s").root
    assert where == braces


def test_conditions_of_a_block_alone_stand_in_a_from_and_of_an_operand_above_it() -> None:
    alone = plain("S//a->x WHERE x/p > 1 OR x/q = 2")
    assert isinstance(alone.root, From)
    assert alone.root.node == 0
    assert len(choices(alone.root)) == 2
    operand = plain("(S//a->x WHERE dur() = 0 s) FOLLOWED BY {, 1 h} S//b").root
    assert isinstance(operand, Operator)
    assert operand.left == 0
    assert len(operand.disjuncts[0].residuals) == 1


def test_a_unit_is_a_statement_for_each_alternative_without_what_is_not_bound() -> None:
    text = "(S//a[k->x] | S//b[m->z]) FOLLOWED BY {x = y AND z > 3, 1 h} (S//c[k->y] | S//d[k->y])"
    statements = plain_statements(query(text))
    roots = [each.root for each in statements if isinstance(each.root, Operator)]
    assert [(root.left, root.right) for root in roots] == [(0, 2), (0, 3), (1, 2), (1, 3)]
    compared = [(len(d.value_joins), len(d.residuals)) for root in roots for d in root.disjuncts]
    assert compared == [(1, 0), (1, 0), (0, 1), (0, 1)]


def test_an_alternative_that_cannot_hold_is_no_statement() -> None:
    text = "(S//a->x | S//b->z) FOLLOWED BY {exists(x), 1 h} S//c"
    [statement] = plain_statements(query(text))
    assert isinstance(statement.root, Operator)
    assert statement.root.left == 0
