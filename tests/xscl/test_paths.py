"""Section 3 of the semantics: paths, predicates of steps, variables, block roots."""

from __future__ import annotations

import pytest
from reading import block, codes, predicate, query

import xscl
from xscl.namespaces import KNOWN_PREFIXES
from xscl.path import (
    ANY,
    And,
    Axis,
    Call,
    Comparison,
    Condition,
    Exists,
    Literal,
    NodeTest,
    Not,
    Opaque,
    Or,
    Parameter,
    Path,
    PathValue,
    Position,
    Step,
    StringTest,
)

OWN = PathValue(Path(()))


def child(name: str, variable: str | None = None, *predicates: Condition) -> Step:
    return Step(Axis.CHILD, NodeTest(name), False, variable, predicates)


def value(*names: str) -> PathValue:
    return PathValue(Path(tuple(child(name) for name in names)))


# -- axes and node tests -----------------------------------------------------------------------


def test_the_axes_are_child_descendant_attribute_and_self() -> None:
    steps = block("S/a//b/@c").path.steps
    assert [(s.axis, s.is_deep) for s in steps] == [
        (Axis.CHILD, False),
        (Axis.CHILD, True),
        (Axis.ATTRIBUTE, False),
    ]
    assert block("S//a//@c").path.steps[1].is_deep


@pytest.mark.parametrize("path", ["./a", "a", "self::node()/a", "child::a", "./././a"])
def test_a_relative_path_may_begin_with_a_dot(path: str) -> None:
    assert predicate(path) == Exists(Path((child("a"),)))


@pytest.mark.parametrize("path", [".//a", "descendant::a", "./descendant-or-self::node()/child::a"])
def test_a_relative_path_may_begin_with_a_dot_and_two_slashes(path: str) -> None:
    assert predicate(path) == Exists(Path((Step(Axis.CHILD, NodeTest("a"), is_deep=True),)))


@pytest.mark.parametrize(
    ("test", "meaning"),
    [
        ("name", NodeTest("name", None)),
        ("dc:creator", NodeTest("creator", KNOWN_PREFIXES["dc"])),
        ("*:name", NodeTest("name", ANY)),
        ("*", NodeTest(ANY, ANY)),
        ("atom:*", NodeTest(ANY, KNOWN_PREFIXES["atom"])),
        ("text()", NodeTest("", None, is_text=True)),
    ],
)
def test_node_tests(test: str, meaning: NodeTest) -> None:
    assert block(f"S//{test}").path.steps[0].test == meaning
    if test != "text()":
        assert block(f"S//a/@{test}").path.steps[1].test == meaning


def test_an_unprefixed_name_is_in_the_default_namespace_if_one_is_declared() -> None:
    text = "DECLARE DEFAULT ELEMENT NAMESPACE = 'urn:d'; S//a[@b]"
    step = block(text).path.steps[0]
    assert step.test == NodeTest("a", "urn:d")
    [attribute] = step.predicates[0].path.steps  # type: ignore[union-attr]
    assert attribute.test == NodeTest("b", None)


@pytest.mark.parametrize("prefix", sorted(KNOWN_PREFIXES))
def test_known_prefixes(prefix: str) -> None:
    assert block(f"S//{prefix}:a").path.steps[0].test.namespace == KNOWN_PREFIXES[prefix]


def test_the_known_prefixes_are_those_of_the_semantics() -> None:
    listed = "atom rss1 rdf dc dcterms content media itunes georss slash wfw sy podcast xml"
    assert set(KNOWN_PREFIXES) == set(listed.split())


def test_other_prefixes_are_declared() -> None:
    assert codes("S//foo:a") == ["XS205"]
    assert codes("DECLARE NAMESPACE foo = 'urn:foo'; S//foo:a[@foo:b]/foo:*") == []


def test_an_unknown_prefix_comes_with_the_nearest_one() -> None:
    _, [found] = xscl.check("S//dcterm:subject")
    assert found.hint == "did you mean `dcterms`?"


# -- predicates --------------------------------------------------------------------------------


def test_any_number_of_predicates_stand_on_a_step_in_their_order() -> None:
    assert block("S//a[b][2][c = 'd']").path.steps[0].predicates == (
        Exists(Path((child("b"),))),
        Position("=", 2.0),
        Comparison(value("c"), "=", Literal("d")),
    )


def test_and_or_not_and_parentheses() -> None:
    a, b, c = (Exists(Path((child(name),))) for name in "abc")
    assert predicate("a and b or c") == Or((And((a, b)), c))
    assert predicate("a and (b or c)") == And((a, Or((b, c))))
    assert predicate("a and (b and c)") == And((a, b, c))
    assert predicate("not(a or b)") == Not(Or((a, b)))


@pytest.mark.parametrize("operator", ["=", "!=", "<", "<=", ">", ">="])
def test_comparisons_with_a_literal(operator: str) -> None:
    assert predicate(f"a/b {operator} 'x'") == Comparison(value("a", "b"), operator, Literal("x"))
    assert predicate(f"a {operator} -1.5") == Comparison(value("a"), operator, Literal(-1.5))


@pytest.mark.parametrize(
    ("written", "meaning"), [("=", "="), ("!=", "!="), ("<", ">"), (">=", "<=")]
)
def test_a_literal_on_the_left_is_turned_around(written: str, meaning: str) -> None:
    assert predicate(f"3 {written} a") == Comparison(value("a"), meaning, Literal(3.0))


@pytest.mark.parametrize("function", ["contains", "starts-with", "ends-with", "matches"])
def test_string_tests(function: str) -> None:
    assert predicate(f"{function}(a, 'x')") == StringTest(function, value("a"), Literal("x"))
    assert predicate(f"{function}(., 'x')") == StringTest(function, OWN, Literal("x"))


def test_matches_takes_flags() -> None:
    assert predicate("matches(a, 'x', 'i')") == StringTest("matches", value("a"), Literal("x"), "i")


@pytest.mark.parametrize("function", ["normalize-space", "lower-case", "upper-case", "host"])
def test_functions_of_a_path_are_compared_with_a_literal(function: str) -> None:
    call = Call(function, (value("a"),))
    assert predicate(f"{function}(a) = 'x'") == Comparison(call, "=", Literal("x"))
    assert predicate(f"contains({function}(a), 'x')") == StringTest("contains", call, Literal("x"))


def test_string_length_is_a_number_of_the_path_or_of_the_node_itself() -> None:
    assert predicate("string-length(a) > 3") == Comparison(
        Call("string-length", (value("a"),)), ">", Literal(3.0)
    )
    assert predicate("string-length() > 3") == Comparison(
        Call("string-length", (OWN,)), ">", Literal(3.0)
    )


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("3", Position("=", 3.0)),
        ("last()", Position("=", 0.0, of_last=True)),
        ("last() - 1", Position("=", 1.0, of_last=True)),
        ("position() = 2", Position("=", 2.0)),
        ("position() != last()", Position("!=", 0.0, of_last=True)),
        ("2 < position()", Position(">", 2.0)),
        ("last() > position()", Position("<", 0.0, of_last=True)),
        ("position() <= last() - 2", Position("<=", 2.0, of_last=True)),
        ("last() > 3", Position(">", 3.0, is_size=True)),
        ("3 = last()", Position("=", 3.0, is_size=True)),
    ],
)
def test_positions(text: str, meaning: Position) -> None:
    assert predicate(text) == meaning


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("$n", Position("=", Parameter("n"))),
        ("$n > position()", Position("<", Parameter("n"))),
        ("last() - $n", Position("=", Parameter("n"), of_last=True)),
        ("last() = $n", Position("=", Parameter("n"), is_size=True)),
    ],
)
def test_a_parameter_is_a_position_where_a_number_is(text: str, meaning: Position) -> None:
    found = query(f"S//item[{text}]")
    assert found.blocks[0].path.steps[-1].predicates == (meaning,)
    assert found.parameters == (("n", "number"),)


def test_a_parameter_beside_a_condition_is_no_position() -> None:
    assert predicate("a and $n") == And(
        (Exists(Path((child("a"),))), Opaque("boolean($n)", parameters=(Parameter("n"),)))
    )


def test_positions_stand_beside_other_conditions() -> None:
    found = predicate("position() = 1 and a")
    assert found == And((Position("=", 1.0), Exists(Path((child("a"),)))))


@pytest.mark.parametrize(
    "text",
    ["position() mod 2 = 1", "a = position()", "last() div 2 > sum(a)", "position() = count(../a)"],
)
def test_other_positions_are_opaque_conditions_that_count(text: str) -> None:
    assert predicate(text) == Opaque(text, is_positional=True)


@pytest.mark.parametrize(
    "text", ["count(a)", "last() div 2", "last() * 2 + 1", "1 + 1", "-a", "string-length(a)"]
)
def test_a_number_between_brackets_is_a_position(text: str) -> None:
    assert predicate(text) == Opaque(f"position() = {text}", is_positional=True)


@pytest.mark.parametrize("text", ["$n + 1", "last() + $n", "count(a) - $n", "-$n"])
def test_what_is_calculated_from_a_parameter_is_a_position(text: str) -> None:
    wanted = Opaque(f"position() = {text}", is_positional=True, parameters=(Parameter("n"),))
    assert predicate(text) == wanted


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("last() - 1", "boolean(last() - 1)"),
        ("position() mod 2", "boolean(position() mod 2)"),
    ],
)
def test_a_number_inside_a_condition_is_no_position_but_may_count(text: str, meaning: str) -> None:
    counting = Opaque(meaning, is_positional=True)
    assert predicate(f"not({text})") == Not(counting)
    assert predicate(f"a and {text}") == And((Exists(Path((child("a"),))), counting))


@pytest.mark.parametrize("text", ["a[last() div 2]/..", "count(a[position() mod 2 = 1]) = 1"])
def test_a_position_inside_a_path_of_an_opaque_condition_is_not_that_of_its_context(
    text: str,
) -> None:
    assert predicate(text) == Opaque(text)


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        ("position()  mod 2=1", "position() mod 2 = 1"),
        ("( last()+$n )", "last() + $n"),
        ("count( a )", "count(a)"),
        ("not((last() - 1)*2)", "not((last() - 1) * 2)"),
    ],
)
def test_a_calculated_position_is_formatted_as_it_is_written(text: str, formatted: str) -> None:
    rendered = xscl.render(f"S//item[{text}]")
    assert rendered.strip() == f"S//item[{formatted}]"
    assert xscl.render(rendered) == rendered
    assert predicate(formatted) == predicate(text)


def test_a_calculated_position_may_not_use_what_xpath_1_lacks() -> None:
    assert codes("S//a[string-length(lower-case(b)) + 1]") == ["XS305"]


@pytest.mark.parametrize(
    "text",
    [
        "count(a) > 2",
        "a = b",
        "a + 1 > b * 2",
        "../a",
        "ancestor::a",
        "/rss/channel",
        "//a",
        "id('x')",
        "string(a) = 'x'",
        "substring(a, 1, 1) = 'x'",
        "contains(a, b)",
        "a | b",
        "a[count(b) = 1]/..",
        "true()",
        "sum(a) < 3 div 4",
        "name() = 'a'",
        "lang('en')",
        "processing-instruction('x')",
        "comment()",
        "not(count(a) > 2) = false()",
    ],
)
def test_anything_else_of_xpath_1_is_opaque(text: str) -> None:
    assert predicate(text) == Opaque(text)


def test_an_opaque_condition_keeps_to_its_own_leaf() -> None:
    found = predicate("count(a) > 2 and b or c = 'd'")
    assert isinstance(found, Or)
    assert isinstance(found.conditions[0], And)
    assert found.conditions[0].conditions[0] == Opaque("count(a) > 2")


def test_an_opaque_condition_carries_its_prefixes() -> None:
    assert predicate("count(dc:a) > 2") == Opaque(
        "count(dc:a) > 2", (("dc", KNOWN_PREFIXES["dc"]),)
    )
    text = "DECLARE DEFAULT ELEMENT NAMESPACE = 'urn:d'; S//a[count(b/@c) > *:d]"
    [found] = block(text).path.steps[0].predicates
    assert found == Opaque("count(default:b/@c) > *[local-name() = 'd']", (("default", "urn:d"),))


def test_an_opaque_condition_is_xpath_1() -> None:
    assert predicate("number(a)= number('it''s \"x\"')") == Opaque(
        "number(a) = number(concat('it', \"'\", 's \"x\"'))"
    )
    assert predicate("count(.[a]/..[b]) = 1") == Opaque(
        "count(self::node()[a]/parent::node()[b]) = 1"
    )
    assert predicate("a and count(b)") == And(
        (Exists(Path((child("a"),))), Opaque("boolean(count(b))"))
    )


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("lower-case(a) = b", "XS305"),
        ("ends-with(a, b)", "XS305"),
        ("frobnicate(a)", "XS301"),
        ("containz(a, 'b')", "XS301"),
        ("contains(a)", "XS302"),
        ("not(a, b)", "XS302"),
        ("matches(a, '[')", "XS306"),
        (r"matches(a, '(b)\1')", "XS306"),
        ("matches(a, 'b{2000}')", "XS306"),
        ("replace(a, 'x*', '') = 'b'", "XS306"),
        ("count('x') = 1", "XS311"),
        ("sum($p) > 1", "XS311"),
        ("count(b | string(c)) = 1", "XS311"),
        ("('x')[1]", "XS311"),
        ("count('x'/b) = 1", "XS311"),
        ("local-name(b = c) = 'd'", "XS311"),
        ("b[name(1) = 'c']", "XS311"),
    ],
)
def test_what_is_neither_the_fragment_nor_xpath_1_is_an_error(text: str, code: str) -> None:
    assert codes(f"S//item[{text}]") == [code]


def test_a_misspelt_function_comes_with_the_nearest_one() -> None:
    _, [found] = xscl.check("S//item[containz(a, 'b')]")
    assert found.hint == "did you mean `contains`?"


# -- variables ---------------------------------------------------------------------------------


def test_a_comparison_may_bind() -> None:
    assert predicate("./author->x = 'Ann'") == Comparison(
        PathValue(Path((child("author", "x"),))), "=", Literal("Ann")
    )


@pytest.mark.parametrize(
    "text",
    [
        "S//a->x/b[c->y/d->z]",
        "S//a[b[c->x]]",
        "S//a[b->x and c->y]",
        "S//a[contains(b->x, 'c')]",
        "S//a[lower-case(b->x) = 'c']",
        "S//a[.->x = 'b']",
        "S//a[@b->x]",
        "S//a[text()->x]",
    ],
)
def test_variables_bind_in_positive_conjunctive_places(text: str) -> None:
    assert codes(text) == []


@pytest.mark.parametrize(
    "text",
    [
        "S//a[b->x or c]",
        "S//a[not(b->x)]",
        "S//a[b[not(c or d->x)]]",
        "S//a[count(b->x) > 2]",
        "S//a[b->x = c]",
        "S//a[(b or c->x) and d]",
    ],
)
def test_variables_under_or_not_and_opaque_conditions_are_an_error(text: str) -> None:
    assert codes(text) == ["XS203"]


def test_variables_are_listed_in_the_order_of_the_text() -> None:
    found = query("S//a->x1[b->x2[c->x3]]/d->x4")
    assert found.blocks[0].variables == ("x1", "x2", "x3", "x4")
    assert [(v.name, v.block, v.label) for v in found.variables] == [
        (name, 0, name) for name in ("x1", "x2", "x3", "x4")
    ]


@pytest.mark.parametrize(
    ("text", "root"),
    [
        ("S//book->x1[./author->x2]", "x1"),
        ("S//a/b->x", "x"),
        ("S//a->x/b", "#0"),
        ("S", "#0"),
        ("S->x", "x"),
        ("S//a/@b->x", "x"),
    ],
)
def test_the_block_root_is_what_the_last_step_of_the_main_path_selects(
    text: str, root: str
) -> None:
    found = block(text)
    assert found.root == root == found.path.steps[-1].variable


def test_block_roots_without_a_variable_are_named_by_their_block() -> None:
    assert [b.root for b in query("S JOIN {, 1 h} T//a->x JOIN {, 1 h} U//b").blocks] == [
        "#0",
        "x",
        "#2",
    ]


def test_plain_self_steps_are_merged_into_the_step_before_them() -> None:
    assert block("S//a/./b/.[c]").path == block("S//a/b[c]").path
    assert block("S//a/.->x").path == block("S//a->x").path


def test_a_self_step_that_counts_is_not_merged() -> None:
    assert len(block("S//a[b]/.[1]").path.steps) == 2
    assert len(block("S//a->x/.->y").path.steps) == 2


@pytest.mark.parametrize("path", ["S/..", "S//a/parent::b", "S//a/following::b", "S//node()"])
def test_other_axes_cannot_stand_on_a_blocks_path(path: str) -> None:
    assert codes(path) == ["XS303"]


def test_a_predicate_needs_a_step() -> None:
    assert codes("S[a]") == ["XS114"]


def test_primes_end_variables_only() -> None:
    assert codes("S//a'") == ["XS208"]


def test_equal_definitions_are_two_variables() -> None:
    found = query("S//a[b->x][b->y]")
    assert found.blocks[0].variables == ("#0", "x", "y")
