"""Sections 4 and 5 of the semantics, as far as the language goes: operators' predicates."""

from __future__ import annotations

import pytest
from support.reading import block, codes, operator, query

import xscl
from xscl.path import (
    ANY,
    Axis,
    Comparison,
    Exists,
    Literal,
    NodeTest,
    Parameter,
    Path,
    PathValue,
    Position,
    Step,
)
from xscl.query import (
    INFINITE_US,
    Call,
    Disjunct,
    OperatorKind,
    Residual,
    ValueJoin,
    VariableValue,
    Window,
)


def disjuncts(predicate: str) -> tuple[Disjunct, ...]:
    return operator(f"S//a->a[b->b] FOLLOWED BY {{{predicate}, 1 h}} T//c->c[d->d]").disjuncts


def only(predicate: str) -> Disjunct:
    [found] = disjuncts(predicate)
    return found


A, B, C, D = (VariableValue(name) for name in "abcd")


def test_the_operators_are_followed_by_and_join() -> None:
    assert operator("S FOLLOWED BY {, 1 h} T").kind is OperatorKind.FOLLOWED_BY
    assert operator("S JOIN {, 1 h} T").kind is OperatorKind.JOIN


def test_inf_drops_the_bound() -> None:
    assert operator("S JOIN {, INF} T").window == Window(INFINITE_US)


def test_equality_across_the_operands_is_a_value_join() -> None:
    assert only("a = c") == Disjunct((ValueJoin(A, C),))


def test_a_value_join_is_turned_so_that_its_left_is_in_the_left_operand() -> None:
    assert only("c = a") == only("a = c")


def test_a_conjunction_gives_value_joins_and_residuals() -> None:
    assert only("a = c AND b != d AND d = b") == Disjunct(
        (ValueJoin(A, C), ValueJoin(B, D)), (Residual(B, "!=", D),)
    )


@pytest.mark.parametrize("comparison", ["!=", "<", "<=", ">", ">="])
def test_any_other_comparison_is_a_residual(comparison: str) -> None:
    assert only(f"a {comparison} c") == Disjunct((), (Residual(A, comparison, C),))


def test_a_comparison_with_a_literal_or_a_parameter_is_a_residual() -> None:
    assert only("a = 'x'") == Disjunct((), (Residual(A, "=", Literal("x")),))
    assert only("3 < a") == Disjunct((), (Residual(A, ">", Literal(3.0)),))
    assert only("$p = a") == Disjunct((), (Residual(A, "=", Parameter("p")),))


def test_a_comparison_within_one_operand_is_a_residual() -> None:
    assert only("a = b") == Disjunct((), (Residual(A, "=", B),))


def test_or_is_put_in_disjunctive_form() -> None:
    assert disjuncts("a = c OR b = d") == (
        Disjunct((ValueJoin(A, C),)),
        Disjunct((ValueJoin(B, D),)),
    )
    assert disjuncts("a = c AND (b = d OR b = 'x')") == (
        Disjunct((ValueJoin(A, C), ValueJoin(B, D))),
        Disjunct((ValueJoin(A, C),), (Residual(B, "=", Literal("x")),)),
    )


def test_a_predicate_that_was_left_out_is_one_empty_disjunct() -> None:
    assert disjuncts("") == (Disjunct(),)


def test_more_than_64_disjuncts_are_an_error() -> None:
    six = " AND ".join(["(a = c OR b = d)"] * 6)
    assert len(disjuncts(" AND ".join(f"(a != '{i}' OR b != '{i}')" for i in range(6)))) == 64
    assert codes(f"S//a->a[b->b] JOIN {{{six} AND (a = c OR a = 'x'), 1 h}} T//c->c[d->d]") == [
        "XS503"
    ]


def test_disjuncts_are_counted_before_they_are_made() -> None:
    many = " AND ".join(["(a = c OR b = d)"] * 200)
    assert codes(f"S//a->a[b->b] JOIN {{{many}, 1 h}} T//c->c[d->d]") == ["XS503"]


def test_alternatives_of_several_operators_are_bounded_together() -> None:
    def chain(operators: int, disjuncts: int) -> str:
        predicates = [
            " OR ".join(f"v{i}/a{k} = v{i + 1}" for k in range(disjuncts)) for i in range(operators)
        ]
        steps = (f" JOIN {{{p}, 1 h}} T->v{i}" for i, p in enumerate(predicates, 1))
        return "S->v0" + "".join(steps)

    assert codes(chain(operators=12, disjuncts=2)) == []
    assert codes(chain(operators=16, disjuncts=2)) == ["XS503"]
    assert codes(chain(operators=3, disjuncts=64)) == ["XS503"]


def test_a_path_from_a_variable_is_a_fresh_variable_of_its_block() -> None:
    found = query("S//a->x[b] JOIN {x/c//@d = y, 1 h} T->y")
    fresh = found.variables[1]
    assert (fresh.name, fresh.block, fresh.label) == ("x/c//@d", 0, "x/c//@d")
    condition = Exists(
        Path(
            (
                Step(Axis.CHILD, NodeTest("c")),
                Step(Axis.ATTRIBUTE, NodeTest("d"), is_deep=True, variable="x/c//@d"),
            )
        )
    )
    assert found.blocks[0].path.steps[0].predicates[-1] == condition
    assert found.blocks[0].variables == ("x", "x/c//@d")


def test_each_occurrence_is_a_fresh_variable_of_its_own() -> None:
    found = query("S//a->x JOIN {x/c = y/c AND x/c != y/d, 1 h} T//b->y")
    assert [v.label for v in found.variables] == ["x", "x/c", "x/c#2", "y", "y/c", "y/d"]
    assert len({v.name for v in found.variables}) == 6


@pytest.mark.parametrize("asked", ["d", "d = 'a'", "d = $w"])
def test_occurrences_with_conditions_are_counted_as_others_are(asked: str) -> None:
    path = f"x/e[{asked}]/c"
    found = query(f"S//a->x JOIN {{{path} = y/c AND {path} != y/d AND y/c = {path}, 1 h}} T->y")
    labels = [v.label for v in found.variables if v.block == 0]
    assert labels == ["x", path, f"{path}#2", f"{path}#3"]


def test_an_occurrence_that_the_disjunctive_form_repeats_stays_one() -> None:
    found = query("S//a->x JOIN {x/c = y/c AND (x/d = y/d OR x/e = y/e), 1 h} T//b->y")
    assert [v.label for v in found.variables if v.label.startswith("x/c")] == ["x/c"]


def test_fresh_conditions_stand_last_so_that_positions_are_unaffected() -> None:
    predicates = block("S//a[b][1]->x JOIN {x/c = y, 1 h} T->y").path.steps[0].predicates
    assert [type(each) for each in predicates] == [Exists, Position, Exists]


def test_a_path_may_start_from_a_variable_anywhere_in_the_block() -> None:
    found = block("S//a[b[c->x] and d->y = 'z'] JOIN {x/e = z AND y/f = z, 1 h} T->z")
    assert set(found.variables) == {"#0", "x", "y", "x/e", "y/f"}


def test_a_path_from_a_variable_may_have_predicates() -> None:
    found = query("S//a->x JOIN {x/c[@d = 'e'][1] = y AND x[f]/g = y AND x[h] != y, 1 h} T->y")
    labels = [v.label for v in found.variables if v.block == 0]
    assert labels == ["x", "x/c[@d = 'e'][1]", "x[f]/g", "x[h]"]
    assert all("/" in v.name for v in found.variables if v.name != v.label)


def test_a_path_that_goes_nowhere_is_the_variable() -> None:
    assert only("a/. = c/./.") == only("a = c")


@pytest.mark.parametrize(
    ("predicate", "code"),
    [
        ("a/.. = c", "XS303"),
        ("a/b->z = c", "XS309"),
        ("a/b[c->z] = c", "XS203"),
        ("/a = c", "XS308"),
        ("@a = c", "XS308"),
        (". = c", "XS308"),
        ("a | b = c", "XS307"),
        ("(a)/b = c", "XS308"),
        ("a", "XS101"),
        ("not(a = c)", "XS108"),
        ("contains(a, 'x') = c", "XS305"),
        ("lower-case(a, b) = c", "XS302"),
        ("host() = c", "XS302"),
        ("nothing(a) = c", "XS301"),
        ("NOT a = c", "XS108"),
        ("string-length(a) > 3", "XS305"),
        ("tokenize(a, '(') = c", "XS306"),
        ("tokenize(a, ',?') = c", "XS306"),
        (r"tokenize(a, '(b)\1') = c", "XS306"),
        (r"replace(a, '(b)\1', 'd') = c", "XS306"),
        ("a = c = b", "XS101"),
        ("a == c", "XS101"),
    ],
)
def test_what_cannot_be_compared_is_an_error(predicate: str, code: str) -> None:
    text = f"S//a->a[b->b] JOIN {{{predicate}, 1 h}} T//c->c[d->d]"
    assert codes(text)[:1] == [code]


def test_a_warning_says_that_an_operator_without_value_join_costs() -> None:
    assert codes("S//a->x JOIN {, 6h} T//b->y", warnings=True) == ["XS501"]
    assert codes("S//a->x JOIN {x != y, 6h} T//b->y", warnings=True) == ["XS501"]
    assert codes("S//a->x JOIN {x = y OR x != y, 6h} T//b->y", warnings=True) == ["XS501"]
    of_both = "S//a->x JOIN {concat(x, y) = y, 6h} T//b->y"
    assert codes(of_both, warnings=True) == ["XS501"]


def test_a_text_of_several_values_of_one_side_is_looked_up() -> None:
    text = "S//a->a JOIN {concat(a/x, ' ', a/y) = b/z, 6h} T//b->b"
    assert codes(text, warnings=True) == []
    decided = f"{text} UNLESS T//c GRACE 0 s".replace("JOIN", "FOLLOWED BY")
    assert codes(decided, warnings=True) == ["XS501"]
    of_runs = text.replace("JOIN", "FOLLOWED BY") + "+ GRACE 0 s"
    assert codes(of_runs, warnings=True) == ["XS501"]
    assert codes("S//a->x JOIN {x = y, 6h} T//b->y", warnings=True) == []
    _, [found] = xscl.check("S//a->x JOIN {, 6h} T//b->y")
    assert "pair" in found.message


@pytest.mark.parametrize("strategy", ["NEXT", "STRICT", "ANY"])
def test_a_chain_that_goes_to_one_document_tries_no_pairs(strategy: str) -> None:
    text = f"S//a FOLLOWED BY S//b+ FOLLOWED BY {{, 6 h}} S//c WITHIN 1 h MATCH {strategy}"
    assert codes(text, warnings=True).count("XS501") == 2 * (strategy == "ANY")


@pytest.mark.parametrize(
    "predicate",
    [
        "a = 'x' AND a = 'y'",
        "a > 5 AND a < 3",
        "a > 5 AND a <= 5",
        "a = 'x' AND a != 'x'",
        "a = 3 AND a > 4",
        "a = 'x' AND a < 4",
        "a != a",
        "a < a",
        "'x' = 'y'",
        "3 > 4",
    ],
)
def test_a_condition_that_can_never_hold_is_a_warning(predicate: str) -> None:
    assert codes(f"S//a->a JOIN {{a = c AND {predicate}, 1 h}} T//c->c", warnings=True) == ["XS502"]


@pytest.mark.parametrize(
    "predicate",
    [
        "a = 'x' AND c = 'y'",
        "a/b = 'x' AND a/b = 'y'",
        "a > 3 AND a < 5",
        "a >= 5 AND a <= 5",
        "a = 1 AND a = '1.0'",
        "a != 'x' AND a != 'y'",
        "tokenize(a, ',') = 'x' AND tokenize(a, ',') = 'y'",
    ],
)
def test_a_condition_that_can_hold_is_none(predicate: str) -> None:
    assert codes(f"S//a->a JOIN {{a = c AND {predicate}, 1 h}} T//c->c", warnings=True) == []


@pytest.mark.parametrize(
    "call",
    [
        "string({})",
        "normalize-space({})",
        "lower-case({})",
        "upper-case({})",
        "translate({}, 'a', 'b')",
        "substring({}, 2)",
        "substring({}, 2, 3)",
        "substring-before({}, '-')",
        "substring-after({}, '-')",
        "concat({}, '-')",
        "replace({}, 'a', 'b')",
        "replace({}, 'a', 'b', 'i')",
        "tokenize({}, ',\\s*')",
        "host({})",
    ],
)
def test_a_function_of_one_variable_is_a_derived_value(call: str) -> None:
    [join] = only(f"{call.format('a')} = {call.format('c')}").value_joins
    assert isinstance(join.left, Call)
    assert isinstance(join.right, Call)
    assert join.left.arguments[0] == A


def test_functions_nest() -> None:
    [join] = only("lower-case(tokenize(a, ',')) = c").value_joins
    tokens = Call("tokenize", (A, Literal(",")))
    assert join == ValueJoin(Call("lower-case", (tokens,)), C)


def test_a_path_may_be_wrapped_too() -> None:
    found = query("S//a->x JOIN {host(x/link) = host(y/link), 1 h} T//b->y")
    assert [v.label for v in found.variables] == ["x", "x/link", "y", "y/link"]


def test_a_comparison_with_a_function_of_several_variables_is_a_residual() -> None:
    found = only("concat(a, b) = c")
    assert found == Disjunct((), (Residual(Call("concat", (A, B)), "=", C),))


def test_a_function_of_one_variable_twice_is_still_a_derived_value() -> None:
    assert only("concat(a, a) = c").value_joins


def test_a_function_of_literals_only_is_a_residual() -> None:
    assert only("a = lower-case('X')").residuals


def test_a_derived_value_may_take_a_parameter() -> None:
    text = "S//a->x JOIN {replace(x, $from, '') = y AND substring(x, $at) != y, 1 h} T->y"
    assert query(text).parameters == (("from", "string"), ("at", "number"))


def test_comparisons_of_steps_do_not_change_with_those_of_operators() -> None:
    [found] = block("S//a[.->x = 'b']").path.steps[0].predicates
    own = Path((Step(Axis.SELF, NodeTest(ANY, ANY), variable="x"),))
    assert found == Comparison(PathValue(own), "=", Literal("b"))
