"""Section 2 of the semantics: statements, clauses, operands, durations, names."""

from __future__ import annotations

import pytest
from support.reading import block, codes, operator, query

import xscl
from xscl.operands import RESERVED
from xscl.path import ANY, Axis, NodeTest, Parameter
from xscl.query import (
    INFINITE_US,
    Constructor,
    Operator,
    OperatorKind,
    SelectAll,
    SelectNodes,
    Window,
)

HOUR_US = 3_600_000_000
DAY_US = 24 * HOUR_US


def window_us(duration: str) -> int:
    window = operator(f"S FOLLOWED BY {{, {duration}}} T").window
    assert isinstance(window, Window)
    return window.length_us


def test_a_stream_alone_is_every_document_of_it() -> None:
    found = query("blog")
    assert found.root == 0
    assert found.blocks[0].stream == "blog"
    [step] = found.blocks[0].path.steps
    assert (step.axis, step.test, step.is_deep) == (Axis.CHILD, NodeTest(ANY, ANY), False)


def test_select_all_from_a_block_is_the_block() -> None:
    assert query("SELECT * FROM blog").select == query("blog").select == SelectAll()
    assert query("SELECT * FROM blog").blocks == query("blog").blocks


def test_a_filter_is_a_query() -> None:
    assert len(block("S//item[author = 'Ann']").path.steps[0].predicates) == 1


def test_select_may_stand_before_or_behind_from() -> None:
    before = query("SELECT x FROM S//a->x PUBLISH out")
    behind = query("FROM S//a->x SELECT x PUBLISH out")
    assert before == behind
    assert before.select == SelectNodes(("x",))
    assert before.publish == "out"
    assert query("FROM S PUBLISH out").select == SelectAll()


def test_operators_are_left_associative() -> None:
    root = operator("A JOIN {, 1 h} B FOLLOWED BY {, 2 h} C")
    assert root.kind is OperatorKind.FOLLOWED_BY
    assert root.right == 2
    assert isinstance(root.left, Operator)
    assert (root.left.kind, root.left.left, root.left.right) == (OperatorKind.JOIN, 0, 1)


def test_parentheses_group_operands() -> None:
    root = operator("A JOIN {, 1 h} (B FOLLOWED BY {, 2 h} C)")
    assert root.left == 0
    assert isinstance(root.right, Operator)
    assert list(root.blocks()) == [0, 1, 2]
    assert operator("(A JOIN {, 1 h} B) JOIN {, 1 h} C") == operator(
        "A JOIN {, 1 h} B JOIN {, 1 h} C"
    )


def test_a_star_is_any_stream() -> None:
    assert block("*//item").stream == "*"
    assert block("*").stream == "*"


def test_a_block_without_a_path_may_bind_its_root_element() -> None:
    assert block("S->x").root == "x"
    assert block("S AS x") == block("S->x")


@pytest.mark.parametrize(
    ("unit", "length_us"),
    [
        ("us", 1),
        ("microseconds", 1),
        ("ms", 1_000),
        ("millisecond", 1_000),
        ("s", 1_000_000),
        ("sec", 1_000_000),
        ("second", 1_000_000),
        ("seconds", 1_000_000),
        ("m", 60_000_000),
        ("min", 60_000_000),
        ("minute", 60_000_000),
        ("minutes", 60_000_000),
        ("h", HOUR_US),
        ("hr", HOUR_US),
        ("hour", HOUR_US),
        ("hours", HOUR_US),
        ("d", DAY_US),
        ("day", DAY_US),
        ("days", DAY_US),
        ("w", 7 * DAY_US),
        ("week", 7 * DAY_US),
        ("WEEKS", 7 * DAY_US),
    ],
)
def test_units_of_durations(unit: str, length_us: int) -> None:
    assert window_us(f"2 {unit}") == 2 * length_us
    assert window_us(f"2{unit}") == 2 * length_us


@pytest.mark.parametrize(
    ("duration", "length_us"),
    [
        ("P30D", 30 * DAY_US),
        ("PT6H", 6 * HOUR_US),
        ("P1DT12H", 36 * HOUR_US),
        ("PT1.5S", 1_500_000),
        ("P2W", 14 * DAY_US),
        ("PT90M", 90 * 60_000_000),
        ("1.5 h", 90 * 60_000_000),
        ("INF", INFINITE_US),
        ("inf", INFINITE_US),
    ],
)
def test_iso_durations_fractions_and_inf(duration: str, length_us: int) -> None:
    assert window_us(duration) == length_us


@pytest.mark.parametrize("duration", ["P1Y", "P2M", "P1Y2M", "3 months", "1 year"])
def test_years_and_months_are_errors(duration: str) -> None:
    assert codes(f"S JOIN {{, {duration}}} T") == ["XS402"]


@pytest.mark.parametrize("duration", ["0 s", "-1 h", "-PT1H", "PT0S", "0.0000001 us"])
def test_a_duration_that_is_negative_or_zero_is_an_error(duration: str) -> None:
    assert codes(f"S JOIN {{, {duration}}} T") == ["XS401"]


@pytest.mark.parametrize(
    ("duration", "code"),
    [("5", "XS404"), ("5 parsecs", "XS403"), ("soon", "XS403"), ("'1 h'", "XS101")],
)
def test_what_is_no_duration_is_an_error(duration: str, code: str) -> None:
    assert codes(f"S JOIN {{, {duration}}} T") == [code]


def test_namespaces_are_declared_in_the_prolog() -> None:
    found = query(
        "DECLARE NAMESPACE p = 'urn:p'; DECLARE DEFAULT ELEMENT NAMESPACE = 'urn:d';"
        " S//p:a[b][@c][@p:d]"
    )
    [step] = found.blocks[0].path.steps
    assert step.test == NodeTest("a", "urn:p")
    tests = [p.path.steps[0].test for p in step.predicates]  # type: ignore[union-attr]
    assert tests == [NodeTest("b", "urn:d"), NodeTest("c", None), NodeTest("d", "urn:p")]


def test_keywords_are_case_insensitive() -> None:
    text = "select x from S//a as x followed by {x/b = y/b and x/c != y/c, inf} T//a as y publish q"
    assert query(text) == query(
        "SELECT x FROM S//a->x FOLLOWED BY {x/b = y/b AND x/c != y/c, INF} T//a->y PUBLISH q"
    )


@pytest.mark.parametrize("text", ["JOIN * AS y", "join (S | T)", "JOIN (S JOIN T)"])
@pytest.mark.parametrize("stream", ["select", "from"])
def test_a_stream_may_be_called_as_a_clause_is_before_a_join_without_braces(
    stream: str, text: str
) -> None:
    assert query(f"{stream} {text} WITHIN 1 h").blocks[0].stream == stream


@pytest.mark.parametrize(
    "name",
    ["select", "from", "publish", "join", "followed", "as", "and", "or", "declare", "not", "match"],
)
def test_keywords_are_reserved_only_where_they_can_stand(name: str) -> None:
    assert block(f"S//{name}/{name}[{name}][@{name} = 'x']").path.steps[1].test.name == name
    assert block(f"{name}//item").stream == name
    assert block(f"S JOIN {{, 1 h}} {name}", 1).stream == name
    assert query(f"FROM S PUBLISH {name}").publish == name


@pytest.mark.parametrize("between", ["", " UNLESS U", " NOT FOLLOWED BY U"])
def test_a_stream_without_a_path_may_stand_before_clauses_that_compare(between: str) -> None:
    found = query(f"S->x FOLLOWED BY T{between} WITHIN 1 h WHERE x != 'a' GRACE 1 min")
    assert [block.stream for block in found.blocks][:2] == ["S", "T"]


def test_comments_nest_and_lines_end_them() -> None:
    text = """
    (: one (: inside :) still :) S//a -- to the end; of {the} line
      [b] (::) --
    """
    assert query(text).text == "S//a[b]"


def test_two_dashes_begin_a_comment_only_at_the_start_of_a_token() -> None:
    assert block("S//a--b").path.steps[0].test.name == "a--b"


def test_statements_are_separated_by_semicolons() -> None:
    found = xscl.parse("S//a; T//b;; U//c;")
    assert [q.blocks[0].stream for q in found] == ["S", "T", "U"]


def test_ids_are_given_published_or_counted() -> None:
    assert [q.id for q in xscl.parse("S", id="mine")] == ["mine"]
    assert [q.id for q in xscl.parse("FROM S PUBLISH out", path="dir/stem.xscl")] == ["out"]
    assert [q.id for q in xscl.parse("S", path="dir/stem.xscl")] == ["stem"]
    several = xscl.parse("S; FROM T PUBLISH out; U", path="dir/stem.xscl")
    assert [q.id for q in several] == ["stem.1", "out", "stem.3"]


def test_what_the_caller_gives_comes_before_the_publish_name() -> None:
    assert [q.id for q in xscl.parse("FROM S PUBLISH out", id="mine")] == ["mine"]


def test_a_step_binds_before_or_behind_its_predicates() -> None:
    assert block("S//a->x[b]").path == block("S//a[b]->x").path == block("S//a[b] AS x").path
    assert block("S//a[b]->x[c]").path == block("S//a->x[b][c]").path


def test_names_of_variables_may_end_in_primes() -> None:
    found = query("S//a->x5' FOLLOWED BY {x5'=x5'', 1 h} T//a->x5''")
    assert [v.name for v in found.variables] == ["x5'", "x5''"]


def test_a_string_may_follow_a_name_with_a_prime() -> None:
    assert query("S//a->x'[b='c'] JOIN {x'='d', 1 h} T").text.count("'") == 6


@pytest.mark.parametrize("run", ["-->", "--->", "->>", "-->>"])
def test_arrow_like_runs_are_errors(run: str) -> None:
    assert codes(f"S//a{run}x") == ["XS105"]
    assert codes(f"S//a {run}x") == ["XS105"]


def test_a_name_with_a_dash_before_an_arrow_keeps_its_dash() -> None:
    step = block("S//a-b->x").path.steps[0]
    assert (step.test.name, step.variable) == ("a-b", "x")


def test_two_blocks_with_one_variable_are_an_error_that_names_both_places() -> None:
    _, [found] = xscl.check("S//a->x JOIN {x = x, 1 h} T//b->x", path="q.xscl")
    assert found.code == "XS202"
    assert found.related is not None
    assert (found.span.start, found.related.start) == (32, 6)
    assert str(found).count("q.xscl:1:") == 2


def test_one_block_binds_a_name_once_too() -> None:
    assert codes("S//a->x[b->x]") == ["XS202"]


def test_an_unbound_variable_is_an_error_with_the_nearest_name() -> None:
    _, [found] = xscl.check("S//a->author JOIN {autor = title, 1 h} T//b->title")
    assert found.code == "XS201"
    assert found.hint == "did you mean `author`?"


def test_a_variable_of_a_block_outside_the_operands_is_an_error() -> None:
    assert codes("A//a->x JOIN {x = z, 1 h} B//b->y JOIN {y = z, 1 h} C//c->z") == ["XS204"]
    assert codes("A//a->x JOIN {x = z, 1 h} (B//b->y JOIN {y = x, 1 h} C//c->z)") == ["XS204"]
    assert codes("A//a->x JOIN {x = y, 1 h} B//b->y JOIN {x = z, 1 h} C//c->z") == []


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_a_word_of_the_language_is_a_stream_where_no_clause_can_stand(word: str) -> None:
    for text in (f"{word}//a", f"{word.lower()} JOIN {{, 1 h}} T", f"{word}; S"):
        [found, *_] = xscl.parse(text)
        assert found.blocks[0].stream == text[: len(word)]
    assert "XS108" in codes(f"{word} S//a")


@pytest.mark.parametrize("word", ["FOLD", "WHILE", "LOSS", "HAVING"])
def test_a_word_that_cannot_stand_behind_a_block_says_so(word: str) -> None:
    assert codes(f"S JOIN {{, 1 h}} (T) {word} U") == ["XS108"]


def test_a_parameter_stands_for_a_literal_or_a_duration() -> None:
    found = query("S//item[author = $who]->a FOLLOWED BY {a/link = b/link, $within} T//item->b")
    assert found.parameters == (("who", "value"), ("within", "duration"))
    assert isinstance(found.root, Operator)
    assert found.root.window == Parameter("within")


def test_a_parameter_takes_its_type_from_its_place() -> None:
    found = query(
        "S//a[contains(b, $s)][c > $n][d = $v]->x JOIN {substring(x, $i) = y AND x != $v, $d} T->y"
    )
    assert dict(found.parameters) == {
        "s": "string",
        "n": "number",
        "v": "value",
        "i": "number",
        "d": "duration",
    }


def test_a_place_that_takes_both_gives_way_to_one_that_says_which() -> None:
    assert query("S//a[b = $v][c < $v]").parameters == (("v", "number"),)
    assert query("S//a[contains(b, $v)][c = $v]").parameters == (("v", "string"),)


def test_a_select_clause_takes_a_parameter_of_any_type() -> None:
    found = query("SELECT <a>{$w, $n, $v}</a> FROM S//a[b > $n] JOIN {, $w} T")
    assert dict(found.parameters) == {"w": "duration", "n": "number", "v": "value"}


def test_a_parameter_of_two_types_is_an_error() -> None:
    assert codes("S//a[b < $v] JOIN {, $v} T") == ["XS601"]
    assert codes("S//a[b < $v][contains(c, $v)]") == ["XS601"]


def test_a_parameter_and_a_variable_of_one_name_are_an_error() -> None:
    assert codes("S//a->x[b = $x]") == ["XS206"]
    assert codes("S//a->x JOIN {y = $x, 1 h} T->y") == ["XS206"]


def test_values_are_compared_by_type_and_canonical_value() -> None:
    found = query("S//a[b = $v] JOIN {, $d} T")
    canonical = xscl.assignment(found, {"v": 5, "d": "6 h"})
    assert canonical == {"v": 5.0, "d": 6 * HOUR_US}
    assert isinstance(canonical["v"], float)
    assert xscl.assignment(found, {"d": "PT6H", "v": 5.0}) == canonical
    assert xscl.assignment(found, {"d": "PT6H", "v": "5"}) != canonical


@pytest.mark.parametrize(
    ("values", "code"),
    [
        ({"n": 1}, "XS602"),
        ({"n": 1, "d": "1 h", "x": 2}, "XS603"),
        ({"n": "1", "d": "1 h"}, "XS604"),
        ({"n": True, "d": "1 h"}, "XS604"),
        ({"n": float("nan"), "d": "1 h"}, "XS604"),
        ({"n": 1, "d": 3600}, "XS604"),
        ({"n": 1, "d": "0 h"}, "XS604"),
        ({"n": 1, "d": "P1M"}, "XS604"),
        ({"n": None, "d": "1 h"}, "XS604"),
    ],
)
def test_a_missing_unknown_or_ill_typed_value_is_an_error(
    values: dict[str, object], code: str
) -> None:
    found = query("S//a[b > $n] JOIN {, $d} T")
    with pytest.raises(xscl.XsclError) as raised:
        xscl.assignment(found, values)
    assert [each.code for each in raised.value.diagnostics] == [code]


@pytest.mark.parametrize(
    ("values", "message", "hint"),
    [
        ({"n": "1", "d": "1 h"}, 'a number, not "1"', "write the number without quotes"),
        ({"n": None, "d": "1 h"}, "a number, not null", None),
        ({"n": True, "d": "1 h"}, "a number, not true", None),
        ({"n": 1, "d": 3600}, "not 3600", 'give it a unit, as a string: `"3600 s"`'),
        ({"n": 1, "d": "0 h"}, 'not "0 h"', "the shortest window is `1 us`; for no bound write"),
        ({"n": 1, "d": "1 month"}, 'not "1 month"', "write days, as in `30 days`"),
    ],
)
def test_an_ill_typed_value_is_shown_as_it_was_given_and_what_to_give(
    values: dict[str, object], message: str, hint: str | None
) -> None:
    with pytest.raises(xscl.XsclError) as raised:
        xscl.assignment(query("S//a[b > $n] JOIN {, $d} T"), values)
    [diagnostic] = raised.value.diagnostics
    assert diagnostic.message.endswith(message)
    assert diagnostic.hint == hint or str(diagnostic.hint).startswith(hint or "?")


def test_a_missing_value_is_shown_where_the_query_names_it() -> None:
    found = query("S//a[b = $within] FOLLOWED BY {, $w} T")
    with pytest.raises(xscl.XsclError) as raised:
        xscl.assignment(found, {"within": "Ann"})
    [diagnostic] = raised.value.diagnostics
    assert found.text[diagnostic.span.start :].startswith("$w}")


def test_a_constructor_may_use_parameters() -> None:
    found = query("SELECT <a>{$greeting, x/b}</a> FROM S//a->x")
    assert found.parameters == (("greeting", "value"),)
    assert isinstance(found.select, Constructor)
    assert found.select.variables == ("x",)


def test_a_row_may_aggregate_the_times_of_documents() -> None:
    found = query("SELECT <r>{max(time(v))} {count(distinct time(v))}</r> FROM S//a->v WINDOW 5 s")
    assert found.rows is not None
    assert len(found.rows.aggregates) == 2
