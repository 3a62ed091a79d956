"""Statements of sequences, rows, tables and loss: read, formatted, and not run yet."""

from __future__ import annotations

import pickle
import re
from pathlib import Path

import pytest
from generators.sequence_texts import sequence_text
from generators.xscl_queries import commented, mutations
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.reading import codes

import xscl
from xscl.lexer import tokenise
from xscl.path import Literal, Parameter
from xscl.query import (
    INFINITE_US,
    Absence,
    AbsenceKind,
    Call,
    Cell,
    Conditional,
    Disjunct,
    Fold,
    From,
    Operator,
    OperatorKind,
    PathFrom,
    Query,
    Repetition,
    Residual,
    Row,
    SelectKind,
    SimilarityJoin,
    Strategy,
    Unit,
    ValueJoin,
    VariableValue,
    Window,
)
from xscl.reader import read
from xscl.report import Report
from xscl.support import NOT_YET
from xscl.table import DeleteRow, SetCell

HOUR_US = 3_600_000_000
A, B, C = "S//a[k->a]", "S//b[k->b]", "S//c[k->c]"
CASES = (Path(__file__).parent / "worked_sequences.txt").read_text(encoding="utf-8").split("\n\n")

texts = st.integers(0, 2**32).map(sequence_text)


def query(text: str) -> Query:
    """Return the one query of a text without errors, whether a broker runs it or not."""
    [found], diagnostics = xscl.check(text)
    assert [str(each) for each in diagnostics if each.is_error] == []
    return found


def where(condition: str, source: str = f"{A} FOLLOWED BY {{a = b, 1 h}} {B}") -> Disjunct:
    """Return the one disjunct of a WHERE clause."""
    root = query(f"{source} WHERE {condition}").root
    assert isinstance(root, From)
    assert root.where is not None
    [found] = root.where
    return found


def comparison(condition: str) -> Residual:
    """Return the one comparison of a WHERE clause."""
    [found] = where(condition).residuals
    return found


# -- every text -------------------------------------------------------------------------------


@settings(max_examples=examples(40))
@given(texts)
def test_statements_of_the_whole_grammar_have_no_errors(text: str) -> None:
    errors = [each for each in xscl.check(text)[1] if each.is_error]
    # Units and disjunctions may combine in more ways than a query may have.
    assert [str(each) for each in errors if each.code != "XS503"] == []


@settings(max_examples=examples(20))
@given(texts)
def test_parsing_what_was_rendered_gives_the_same_statement(text: str) -> None:
    rendered = xscl.render(text)
    first, second = read(text, id="q"), read(rendered, id="q")
    assert second.queries == first.queries
    assert [(t.name, t.columns) for t in second.tables] == [
        (t.name, t.columns) for t in first.tables
    ]
    assert xscl.render(rendered) == rendered
    assert all(each.text + "\n" == rendered for each in first.queries)


@settings(max_examples=examples(20))
@given(texts, st.data())
def test_comments_are_kept_and_formatting_is_idempotent(text: str, data: st.DataObject) -> None:
    tokens, _ = tokenise(text, Report(text))
    places = [0, *(token.end for token in tokens if token.kind not in ("parameter", "arrow"))]
    with_comments, comments = data.draw(commented(text, places))
    once = xscl.render(with_comments)
    _, kept = tokenise(once, Report(once))
    assert [each.text for each in kept] == comments
    assert xscl.render(once) == once
    assert xscl.check(once, id="q")[0] == xscl.check(text, id="q")[0]


@given(texts)
def test_a_statement_is_a_value(text: str) -> None:
    for found in xscl.check(text)[0]:
        assert pickle.loads(pickle.dumps(found)) == found
        assert isinstance(hash(found), int)


@settings(max_examples=examples(40))
@given(mutations(texts))
def test_mutated_statements_give_a_query_or_diagnostics(text: str) -> None:
    found, diagnostics = xscl.check(text)
    assert found or diagnostics
    assert all(0 <= each.span.start <= each.span.end <= len(text) + 1 for each in diagnostics)
    if not any(each.is_error for each in diagnostics):
        rendered = xscl.render(text)
        assert xscl.render(rendered) == rendered
        assert xscl.check(rendered)[0] == found


@pytest.mark.parametrize("text", CASES)
def test_the_worked_cases_are_read_normalised_and_formatted(text: str) -> None:
    reading = read(text)
    assert [str(each) for each in reading.diagnostics if each.is_error] == []
    assert reading.queries or reading.tables
    rendered = xscl.render(text)
    assert xscl.render(rendered) == rendered
    assert read(rendered).queries == reading.queries


# -- what runs --------------------------------------------------------------------------------

LOSSY = f"{A} FOLLOWED BY {{a = b, 1 h}} {B} LOSS 0.1 DELAY exp(1 h) FOLLOWED BY {{b = c, 1 h}} {C}"

LEARNED = LOSSY.replace("exp(1 h)", "learned")

AWAY = "S//d NOT JOIN {, 1 h} S//e"

NOT_RUN = {
    "kind beside WINDOW": f"SELECT DISJOINT * FROM {A} WINDOW 1 h",
    "table beside COMPRESSED": f"SELECT COMPRESSED FROM {A}+ WITHIN 1 h ON MATCH DELETE t[1]",
    "confidence": f"{A} JOIN {{a = b AND confidence() > 0.5, 1 h}} {B}",
    "LOSS in parentheses": f"S//d JOIN {{, 1 h}} ({LOSSY})",
    "LOSS beside +": f"{LOSSY} FOLLOWED BY {{, 1 h}} S//d+",
    "LOSS beside NOT in parentheses": f"{LOSSY} FOLLOWED BY {{, 1 h}} ({AWAY})",
    "LOSS beside outcome": f"{LOSSY} LIMIT 1 PER 1 h",
    "learned beside a table": f"{LEARNED} WHERE t[a].n = 3",
    "LOSS beside MATCH": f"{LOSSY} MATCH NEXT",
    "inner table": f"({A} WHERE t[a].n = 3) JOIN {{, 1 h}} {B}",
}


def test_each_construct_has_a_statement_below() -> None:
    assert set(NOT_RUN) == set(NOT_YET)


@pytest.mark.parametrize("construct", sorted(NOT_YET))
def test_what_is_not_run_is_a_warning_where_it_is_checked_and_an_error_where_it_runs(
    construct: str,
) -> None:
    text = NOT_RUN[construct]
    [warning] = [each for each in xscl.check(text)[1] if each.code == "XS800"]
    assert not warning.is_error
    assert NOT_YET[construct] in warning.message
    assert text[warning.span.start : warning.span.end]
    with pytest.raises(xscl.XsclError) as raised:
        xscl.parse(text)
    [error] = [each for each in raised.value.diagnostics if each.is_error]
    assert (error.code, error.message) == ("XS800", warning.message)


@pytest.mark.parametrize(
    "condition",
    [
        "a + 1 > 3",
        "-a < b",
        "dur() > 3 min",
        "if (a > 3) then a else b = 3",
        "contains(a, b)",
        "exists(a)",
        "time(a) < end()",
        "revision(a) = 0",
    ],
)
def test_conditions_run(condition: str) -> None:
    assert xscl.parse(f"{A} JOIN {{a = b AND {condition}, 1 h}} {B}")


@pytest.mark.parametrize("least", ["0", "0.5", "1"])
def test_a_reader_can_reach_every_confidence_as_what_it_reads_may_be_certain(least: str) -> None:
    assert xscl.check(f"{A} CONFIDENCE {least}")[1] == []
    with pytest.raises(xscl.XsclError, match="at most 1"):
        xscl.parse(f"{A} CONFIDENCE 1.5")


@pytest.mark.parametrize("known", ["a", "'x'", "$x", "concat($x, 's')", "$x + 1"])
def test_what_a_lossy_unit_must_equal_is_asked_of_what_is_left(known: str) -> None:
    _, found = xscl.check(LOSSY.replace("a = b", f"b = {known}"))
    assert "XS509" not in [each.code for each in found]


def test_files_with_what_is_not_run_are_not_loaded(tmp_path: Path) -> None:
    path = tmp_path / "q.xscl"
    path.write_text(NOT_RUN["confidence"], encoding="utf-8")
    with pytest.raises(xscl.XsclError, match=r"does not run `confidence\(\)` in a condition yet"):
        xscl.load([path])


def test_one_message_names_all_that_is_not_run() -> None:
    text = f"SELECT DISJOINT * FROM {A} JOIN {{a = b AND confidence() > 0.5, 1 h}} {B} WINDOW 1 h"
    [found] = [each for each in xscl.check(text)[1] if each.code == "XS800"]
    wanted = (
        "this broker does not run DISJOINT or COMPRESSED beside WINDOW"
        " and `confidence()` in a condition yet"
    )
    assert found.message == wanted


def test_every_choice_of_elements_is_what_runs_without_match() -> None:
    assert xscl.parse("S FOLLOWED BY {, 1 h} T+ {, 1 h} MATCH ANY")


# -- the tree ---------------------------------------------------------------------------------


def test_next_is_a_kind_of_operator() -> None:
    assert query(f"{A} NEXT {{a = b, 1 h}} {B}").root == Operator(
        OperatorKind.NEXT,
        0,
        1,
        (Disjunct((ValueJoin(VariableValue("a"), VariableValue("b")),)),),
        Window(HOUR_US),
    )


def test_unless_takes_away_from_what_its_operator_gives() -> None:
    root = query(f"{A} FOLLOWED BY {{, 1 h}} {B} UNLESS {{a = c, 2 h}} {C}").root
    assert isinstance(root, Absence)
    assert (root.kind, root.absent, root.window) == (AbsenceKind.BETWEEN, 2, Window(2 * HOUR_US))
    assert isinstance(root.operand, Operator)
    assert root.disjuncts == (Disjunct((ValueJoin(VariableValue("a"), VariableValue("c")),)),)


def test_unless_behind_the_first_operand_looks_back() -> None:
    for text in (f"{A} UNLESS {{, 1 h}} {B}", f"({A} WITHIN 1 h) UNLESS {{, 1 h}} {B}"):
        root = query(text).root
        assert isinstance(root, Absence)
        assert root.kind is AbsenceKind.BEFORE


def test_not_stands_behind_what_it_is_asked_of() -> None:
    root = query(f"{A} NOT FOLLOWED BY {{a = b, 1 h}} {B} JOIN {{a = c, 1 h}} {C}").root
    assert isinstance(root, Operator)
    assert isinstance(root.left, Absence)
    assert root.left.kind is AbsenceKind.AFTER
    root = query(f"{A} NOT JOIN {{a = b, 1 h}} {B}").root
    assert isinstance(root, Absence)
    assert root.kind is AbsenceKind.AROUND


def test_a_repetition_has_conditions_a_gap_and_values() -> None:
    text = f"{A} NEXT {{, 1 h}} {B}+ {{b = a, 1 h}} WHILE {{b > prev(b)}} FOLD {{n = a THEN n + 1}}"
    root = query(text).root
    assert isinstance(root, Operator)
    a, b, n = VariableValue("a"), VariableValue("b"), VariableValue("n")
    assert root.right == Repetition(
        1,
        (Disjunct((ValueJoin(a, b),)),),
        Window(HOUR_US),
        (Disjunct((), (Residual(b, ">", Call("prev", (b,))),)),),
        (Fold("n", a, Call("+", (n, Literal(1.0)))),),
    )


def test_alternatives_may_bind_one_name_each() -> None:
    found = query(f"(S//a[k->x] | S//b[k->x]) JOIN {{x/t = c, 1 h}} {C}")
    assert isinstance(found.root, Operator)
    assert found.root.left == Unit((0, 1))
    assert [(v.name, v.block) for v in found.variables if v.name == "x"] == [("x", 0), ("x", 1)]
    assert [v.block for v in found.variables if v.name == "x/t"] == [0, 1]
    [disjunct] = found.root.disjuncts
    assert disjunct.value_joins == (ValueJoin(VariableValue("x/t"), VariableValue("c")),)
    assert codes("(S//a[k->x][j->x] | S//b[k->x])") == ["XS202"]
    assert codes("(S//a[k->x] | S//b) JOIN {, 1 h} T//c[k->x]") == ["XS202"]


def test_clauses_of_a_from_stand_around_it() -> None:
    root = query(
        f"{A} FOLLOWED BY {{a = b}} {B} WITHIN 1 h SAME (//@id, /*/t = 'x') MATCH ANY WHERE a > 3"
    ).root
    assert isinstance(root, From)
    assert root.within == Window(HOUR_US)
    assert [key.literal for key in root.keys] == [None, Literal("x")]
    assert root.strategy is Strategy.ANY
    assert root.where == (Disjunct((), (Residual(VariableValue("a"), ">", Literal(3.0)),)),)
    assert isinstance(root.node, Operator)
    assert root.node.window == Window(INFINITE_US)


def test_within_of_a_from_around_it_bounds_an_operator_too() -> None:
    assert codes("S FOLLOWED BY (T NEXT U) WITHIN 1 h") == []
    assert codes("S FOLLOWED BY (T NEXT U WITHIN 1 h)") == ["XS106"]
    assert codes("S FOLLOWED BY {} T; S FOLLOWED BY T") == ["XS107", "XS106"]


def test_parentheses_that_say_nothing_are_dropped() -> None:
    assert xscl.render(f"({A} JOIN {{, 1 h}} {B}) NEXT {{, 1 h}} (({C}))") == (
        f"{A} JOIN {{, 1 hour}} {B} NEXT {{, 1 hour}} {C}\n"
    )
    kept = f"({A} FOLLOWED BY {{, 1 hour}} {B}) UNLESS {{, 1 hour}} {C}\n"
    assert xscl.render(kept) == kept


# -- values -----------------------------------------------------------------------------------


def test_arithmetic_is_calls() -> None:
    a, b = VariableValue("a"), VariableValue("b")
    assert comparison("(a + b) * 2 - -3 >= a div b mod 4").left == Call(
        "-", (Call("*", (Call("+", (a, b)), Literal(2.0))), Literal(-3.0))
    )
    assert comparison("-a > 3").left == Call("-", (a,))
    assert xscl.render(f"{A} WHERE (a + 1) * 2 > 3").endswith("WHERE (a + 1) * 2 > 3\n")


def test_a_duration_is_a_number_of_microseconds() -> None:
    assert comparison("time(b) - time(a) < 30 min").right == Literal(1_800_000_000.0)
    assert xscl.render(f"{A} WHERE dur() > 90 min").endswith("WHERE dur() > 90 minutes\n")


def test_if_and_tables_are_operands() -> None:
    a = VariableValue("a")
    residual = comparison("if (a > 3) then a/b else a = t[a].n")
    assert residual.left == Conditional(
        (Disjunct((), (Residual(a, ">", Literal(3.0)),)),),
        PathFrom("a", query("S//x[./b]").blocks[0].path.steps[0].predicates[0].path),  # type: ignore[union-attr]
        a,
    )
    assert residual.right == Cell(Row("t", a), "n")
    assert where("exists(t[a])").tests == (Call("exists", (Row("t", a),)),)


def test_tests_stand_beside_comparisons() -> None:
    found = where("contains(a, b) AND empty(a/x) AND matches(a, '^x', 'i')")
    assert [test.function for test in found.tests] == ["contains", "empty", "matches"]
    assert found.residuals == ()


def test_a_path_that_need_not_be_there_is_no_variable_of_the_block() -> None:
    found = query(f"{A} WHERE exists(a/x) AND a/y = 'z'")
    assert [v.name for v in found.variables if v.is_path] == ["a/y"]


def test_similarity_between_the_operands_is_a_join() -> None:
    words = [Call("words", (VariableValue(name),)) for name in "ab"]
    root = query(f"{A} JOIN {{similar(b, a) >= $t, 1 h}} {B}").root
    assert isinstance(root, Operator)
    assert root.disjuncts[0].similarity_joins == (
        SimilarityJoin("jaccard", words[0], words[1], ">=", Parameter("t"), is_turned=True),
    )
    assert codes(f"{A} JOIN {{similar(b, a) >= 0.6, 1 h}} {B}", warnings=True) == []
    assert where("similar(a, b) >= 0.6").similarity_joins == ()
    assert "XS506" in codes(f"{A} JOIN {{0.2 < similar(b, a), 1 h}} {B}", warnings=True)


def test_rows_of_a_window_are_grouped() -> None:
    found = query(f"{A} WINDOW 0 s BY a HAVING sum(a) > 3 LIMIT 3 PER 1 h BY a GRACE 0 s")
    assert found.rows is not None
    assert (found.rows.length, found.rows.keys) == (Window(0), (VariableValue("a"),))
    assert found.limit is not None
    assert (found.limit.count, found.limit.keys) == (3.0, (VariableValue("a"),))
    assert found.grace == 0


def test_actions_set_cells_and_delete_rows() -> None:
    found = query(f"{A} ON MATCH SET t[a].n = t[a].n + 1, DELETE u['x']")
    row = Row("t", VariableValue("a"))
    assert found.actions == (
        SetCell(Cell(row, "n"), Call("+", (Cell(row, "n"), Literal(1.0)))),
        DeleteRow(Row("u", Literal("x"))),
    )
    assert [(use.table, use.is_written) for use in found.tables] == [
        ("t", True),
        ("t", False),
        ("u", True),
    ]


def test_disjoint_and_compressed_are_names_where_a_variable_is_called_so() -> None:
    assert query("SELECT DISJOINT * FROM S").kind is SelectKind.DISJOINT
    assert query("SELECT disjoint FROM S->disjoint").kind is SelectKind.ALL
    assert query("SELECT compressed FROM S//a->compressed").kind is SelectKind.ALL
    assert query("SELECT disjoint < 3 FROM S->disjoint").kind is SelectKind.ALL


def test_a_table_and_a_variable_with_a_predicate_are_told_apart() -> None:
    assert query("S->t WHERE exists(t[a])").tables == ()
    [use] = query("S->x WHERE exists(t[x])").tables
    assert use.table == "t"


# -- parameters -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        (
            f"{A} NEXT {{a = $v, $w}} {B} WITHIN $t",
            {"v": "value", "w": "duration", "t": "duration"},
        ),
        (f"{A} WHERE dur() > $d AND a + $n > 3", {"d": "duration", "n": "number"}),
        (f"{A} WHERE time(a) - $d > $t", {"d": "duration", "t": "number"}),
        (f"{A} WHERE time(a) - start() > $d", {"d": "duration"}),
        (f"{A} WHERE revision(a) = $n", {"n": "number"}),
        (f"{A} SAME (//@id = $k)", {"k": "value"}),
        (f"{A} LIMIT $n PER $w CONFIDENCE $c", {"n": "number", "w": "duration", "c": "number"}),
        (f"{A} JOIN {{similar(a, b) > $t, 1 h}} {B}", {"t": "number"}),
        (f"{A} JOIN {{contains(a, $s), 1 h}} {B}", {"s": "string"}),
        (f"{A} WHERE t[$k].n = 3 ON MATCH SET t[a].n = $v", {"k": "value", "v": "value"}),
        (f"{A} WINDOW $w HAVING count() > $n", {"w": "duration", "n": "number"}),
        (f"{A}+ {{, $g}}", {"g": "duration"}),
    ],
)
def test_a_parameter_has_the_type_of_its_place(text: str, kinds: dict[str, str]) -> None:
    assert dict(query(text).parameters) == kinds


# -- rules with several cases -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"{A} FOLLOWED BY {{a = n, 1 h}} {B}+ FOLD {{n = b THEN b}}", "XS204"),
        (f"{A} FOLLOWED BY {{, 1 h}} {B}+ FOLD {{a = 1 THEN 2}}", "XS202"),
        (f"{A} FOLLOWED BY {{, 1 h}} {B} UNLESS {{c = a}} {C} WHERE c = 'x'", "XS211"),
        (f"{A} FOLLOWED BY {{a = c, 1 h}} {B} UNLESS {C}", "XS211"),
        (f"{A}+ WHILE {{a > prev(a)}}", "XS802"),
        (f"{A} FOLLOWED BY {{, 1 h}} {B}+ {{last(b) > 3}}", "XS805"),
        (f"{A} FOLLOWED BY {{, 1 h}} {B}+ {{count(b) > 3}}", "XS805"),
        (f"{A} WHERE count() > 3", "XS805"),
        (f"{A}+ {{, 1 h}} WHERE sum(prev(a)) > 3", "XS806"),
        (f"{A}+ {{, 1 h}} WHERE prev(a) > 3", "XS804"),
        (f"{A} WHERE argmax(a, a) > 3", "XS807"),
        (f"{A} WHERE time() > 3", "XS302"),
        (f"{A} WHERE start(a) > 3", "XS302"),
        (f"{A} WHERE words(a) = 'x'", "XS305"),
        (f"{A} WHERE string-length(a) > 3", "XS305"),
        (f"{A} WHERE nothing(a) > 3", "XS301"),
        (f"{A} SAME (//@id->x)", "XS309"),
        (f"{A} SAME (//a/..)", "XS303"),
        (f"{A} JOIN {{a = b AND exists(t[a]), 1 h}} {B}", "XS901"),
        (f"{A} WINDOW 1 h HAVING a = 'x'", "XS902"),
        (f"SELECT <r>{{argmax(a)}}</r> FROM {A} WINDOW 1 h", "XS302"),
        (f"SELECT <r>{{count(z)}}</r> FROM {A} WINDOW 1 h", "XS201"),
        (f"SELECT c FROM {A} NOT JOIN {{, 1 h}} {C}", "XS211"),
        (f"SELECT COMPRESSED FROM {A} NEXT {{, 1 h}} {B}+", "XS903"),
        (f"SELECT COMPRESSED FROM {A} FOLLOWED BY {{, 1 h}} {B}+ MATCH STRICT", "XS903"),
        (f"SELECT COMPRESSED FROM {A}+ {{a > avg(a), 1 h}}", "XS903"),
        (f"SELECT COMPRESSED FROM {A}+ {{, 1 h}} FOLLOWED BY {{, 1 h}} {B}", "XS903"),
        (f"SELECT COMPRESSED FROM {A}+ {{, 1 h}} WHERE dur() > 3 s", "XS903"),
        (f"SELECT COMPRESSED FROM {A}+ {{, 1 h}} LIMIT 1 PER 1 h", "XS903"),
        (f"{A} JOIN {{, 1 h}} {B} MATCH ANY", "XS815"),
        (f"({A} NEXT {{, 1 h}} {B}) FOLLOWED BY {{, 1 h}} {C} MATCH ANY", "XS815"),
        (f"{A} FOLLOWED BY {{, 1 h}} {B} NOT JOIN {{, 1 h}} {C} MATCH ANY", "XS815"),
        (f"{A} LOSS 0.1 DELAY learned FOLLOWED BY {{, 1 h}} {B}", "XS911"),
        (f"{A} NEXT {{, 1 h}} {B} LOSS 0 DELAY learned NEXT {{, 1 h}} {C}", "XS911"),
        (f"{A} NOT JOIN {{, 1 h}} {B} LOSS $e DELAY exp(1 h)", "XS605"),
        (f"{A} NOT JOIN {{, 1 h}} {B} LOSS 0.1 DELAY learned", "XS910"),
        (f"{A} FOLLOWED BY {{, 1 h}} {B} UNLESS {C} LOSS 0.1 DELAY learned", "XS910"),
        (f"{A} NOT JOIN {{, 1 h}} {B} LOSS 0.1 DELAY cdf(9 s: 0.5, 1 s: 1)", "XS910"),
        (f"{A} NOT JOIN {{, 1 h}} {B} LOSS 0.1 DELAY cdf(1 s: 0.5, 9 s: 2)", "XS910"),
        (f"{A} NOT JOIN {{, 1 h}} {B} LOSS 0.1 DELAY exp(INF)", "XS910"),
        (f"{A} NOT JOIN {{, 1 h}} {B} LOSS 0.1 DELAY exp(0 s)", "XS910"),
        (f"{A} WITHIN 0 s", "XS401"),
        (f"{A} LIMIT 3 PER 0 s", "XS401"),
        (f"{A} GRACE -1 s", "XS401"),
        (f"{A} GRACE 1 month", "XS402"),
        (f"FROM {A} PUBLISH CLOCK", "XS212"),
        ("CREATE TABLE t (n DEFAULT 0)", "XS904"),
        ("CREATE TABLE t (a KEY, b KEY)", "XS904"),
        ("CREATE TABLE t (a KEY, b DEFAULT $v)", "XS605"),
        ("CREATE TABLE t (a KEY); S->x WHERE t[x].b = 3", "XS906"),
        (f"{A} WITHIN 1 h WITHIN 2 h", "XS117"),
        (f"{A} GRACE 1 h WINDOW 1 h", "XS117"),
        (f"{A} FOLLOWED BY {{, 1 h}} ({B}+ | {C})", "XS110"),
        (f"{A} UNLESS {{, 1 h}} ({B} FOLLOWED BY {{, 1 h}} {C})", "XS813"),
        (f"{A} MATCH LATER", "XS101"),
        (f"{A} NOT {B}", "XS101"),
        (f"{A} ON MATCH SET t[a] = 3", "XS101"),
        (f"{A} ON MATCH DELETE t[a].n", "XS101"),
        (f"{A} WHERE if (a > 3) then a = 3", "XS101"),
        (f"{A} WHERE a > 3 OR", "XS101"),
    ],
)
def test_a_broken_rule_has_its_code(text: str, code: str) -> None:
    assert codes(text)[:1] == [code]


def test_each_wrong_aggregate_is_told_once_where_it_stands() -> None:
    select = '<r n="{count(a, a)}">{argmax(a)}, {max(a)}</r>'
    _, found = xscl.check(f"SELECT {select} FROM {A} WINDOW 1 h GRACE 1 h")
    assert [(each.code, each.span.start, each.hint) for each in found] == [
        ("XS302", 14, "as in `count()`"),
        ("XS302", 29, "as in `argmax(x, y)`"),
    ]


def many(count: int, text: str, separator: str) -> str:
    return separator.join(text.format(index) for index in range(count))


@pytest.mark.parametrize(
    ("most", "text"),
    [
        (16, lambda n: f"({many(n, 'S//a{}', ' | ')})"),
        (8, lambda n: f"S FOLLOWED BY {{, 1 h}} T {many(n, 'UNLESS U//a{}', ' ')}"),
        (4, lambda n: f"S FOLLOWED BY {{, 1 h}} T SAME ({many(n, '//a{}', ', ')})"),
        (16, lambda n: f"S//a->x+ {{, 1 h}} FOLD {{{many(n, 'n{} = 1 THEN 2', ', ')}}}"),
        (
            3,
            lambda n: " FOLLOWED BY {, 1 h} ".join(
                ["S", *["S//b LOSS 0.1 DELAY learned"] * n, "S CONFIDENCE 0.05"]
            ),
        ),
        (64, lambda n: f"S->x JOIN {{{many(n, 'x = y/a{}', ' OR ')}, 1 h}} T->y"),
    ],
)
def test_what_there_may_be_at_most(most: int, text: object) -> None:
    assert callable(text)
    assert codes(text(most)) == []
    assert codes(text(most + 1)) in (["XS811"], ["XS503"])


def test_the_page_names_each_limit() -> None:
    page = (Path(__file__).parents[2] / "docs" / "diagnostics.md").read_text(encoding="utf-8")
    assert re.search(r"16 alternatives.*8 UNLESS.*4 paths.*16 values.*8 variants", page, re.DOTALL)
