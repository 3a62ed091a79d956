"""What explain prints is golden text, and the SQL that it prints runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from support import worked_example as paper
from support.goldens import check_golden, golden_files, golden_ids, write_files

import xscl
from broker.cli import main
from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.explain.data import as_data
from broker.explain.model import Survey
from broker.explain.sharing import sharing
from broker.explain.survey import survey
from broker.explain.text import SECTIONS, render_query
from broker.matching.engine import Engine, RegisteredQuery
from joins.sql.engine import SqlProcessor
from xscl.query import Query

FILES = golden_files("explain")


@pytest.mark.parametrize("path", FILES, ids=golden_ids)
def test_explain_prints_what_is_golden(path: Path, tmp_path: Path) -> None:
    check_golden(path, tmp_path)


def paper_queries() -> list[Query]:
    return [xscl.parse(text, id=name)[0] for name, text in paper.QUERIES.items()]


def statements(found: Survey) -> list[tuple[int, str]]:
    return [(view.number, sql) for view in found.templates for sql in view.sql]


@pytest.mark.parametrize("path", FILES, ids=golden_ids)
def test_the_sql_that_explain_prints_runs(path: Path, tmp_path: Path) -> None:
    write_files(path.read_text().partition("\n----\n")[0], tmp_path)
    found = survey(xscl.load([tmp_path]))
    processor = SqlProcessor(lateness_us=found.lateness_us, engine="mmqjp-views")
    for view in found.classes:
        # A batch for each, so that the tables have the numbers of the templates explained.
        processor.add(view.query_class, view.window_us)
        processor.begin_batch()
    for _, sql in statements(found):
        assert processor.state.run(sql) == []


def test_the_sql_that_explain_prints_finds_table_6_4_f() -> None:
    queries = paper_queries()
    engine = Engine([RegisteredQuery(q) for q in queries], lateness_us=0, engine="mmqjp-views")
    documents = [
        Document(docid, "S", str(docid), docid, docid, docid, FIRST_WATERMARK_US, xml)
        for docid, xml in ((1, paper.D1), (2, paper.D2))
    ]
    xml = {document.docid: document.xml for document in documents}
    engine.process(engine.evaluate(documents), lambda docids: {d: xml[d] for d in docids})
    processor = engine.processor
    assert isinstance(processor, SqlProcessor)
    found = survey(queries, lateness_us=0)
    names = {view.number: view.queries()[0] for view in found.classes}
    rows = set()
    for _, sql in statements(found):
        for number, left, right, _, *nodes in processor.state.run(sql):
            instances = processor.instances([left, right])
            documents_of = [left] * 3 + [right] * 3
            numbers = [instances[i].nodes[n] for i, n in zip(documents_of, nodes, strict=True)]
            rows.add((names[number], instances[left].docid, *numbers))
    assert rows == {row[:8] for row in paper.R_OUT}


def test_equal_definitions_have_one_name_as_in_table_6_4_a() -> None:
    found = survey(paper_queries())
    rows = {
        (view.queries()[0], *(found.name(v) for v in view.query_class.row.variables))
        for view in found.classes
    }
    assert rows == {row[:7] for row in paper.R_T}


def test_one_name_for_two_definitions_is_told_apart() -> None:
    queries = [xscl.parse(text, id=text[0])[0] for text in ("A//x->v", "B//x->v", "C//x->v.2")]
    names = [view.name for view in survey(queries).named()]
    assert len(set(names)) == 3
    assert names[:2] == ["v", "v.2"]


def test_queries_that_differ_in_window_and_constants_are_one_class() -> None:
    text = "S//a[b = '{}']->x FOLLOWED BY {{x/c = y/c, {} h}} S//a->y"
    queries = [xscl.parse(text.format(n, n), id=f"q{n}")[0] for n in range(1, 6)]
    (view,) = survey(queries).classes
    assert view.queries() == ("q1", "q2", "q3", "q4", "q5")
    assert view.window_us == 5 * 3_600_000_000


PAIRS = "S//a->x FOLLOWED BY {x/c = y/c, 1 h} S//a->y"


@pytest.mark.parametrize(
    ("text", "classes"),
    [
        (f"{PAIRS} WITHIN {{n}} min", 1),
        (f"{PAIRS} WHERE dur() >= {{n}} min", 1),
        (f"{PAIRS} WHERE contains(y/d, '{{n}}') AND ends-with(x/d, '{{n}}')", 1),
        ("S//a->x FOLLOWED BY {x/c = y/c} S//a->y FOLLOWED BY S//b WITHIN {n} min", 2),
        ("S//a->x FOLLOWED BY {x/c = y/c} S//a->y JOIN S//b WITHIN {n} min SAME (//k = '{n}')", 2),
    ],
)
def test_statements_written_out_with_other_data_are_the_same_classes(
    text: str, classes: int
) -> None:
    texts = [text.replace("{n}", str(n)) for n in (1, 2, 3)]
    found = survey([xscl.parse(each, id=f"q{n}")[0] for n, each in enumerate(texts)])
    assert [view.queries() for view in found.classes] == [("q0", "q1", "q2")] * classes
    for query in found.queries:
        assert not [note for note in query.notes if note.code == "residual"]


def test_explain_numbers_classes_as_the_engine_evaluates_them() -> None:
    queries = paper_queries()
    engine = Engine([RegisteredQuery(q) for q in queries], lateness_us=0)
    evaluated = {
        (subscriber.query.id, clause.query_class.template, clause.query_class.row)
        for _, clause, subscriber in engine.classes()
    }
    explained = {
        (member.query, view.query_class.template, view.query_class.row)
        for view in survey(queries).classes
        for member in view.members
    }
    assert explained == evaluated


def test_the_form_for_programs_can_be_read_back() -> None:
    data = as_data(survey(paper_queries()))
    assert json.loads(json.dumps(data)) == data
    assert [query["id"] for query in data["queries"]] == ["Q1", "Q2", "Q3"]
    assert {tuple(c["row"]) for c in data["classes"]} == {row[1:7] for row in paper.R_T}


def test_a_query_with_an_error_is_not_explained_but_its_error_shown(tmp_path: Path) -> None:
    (tmp_path / "bad.xscl").write_text("S//a->x FOLLOWED BY {x = y, 1 h} S//b")
    result = CliRunner().invoke(main, ["explain", str(tmp_path)])
    assert result.exit_code == 1
    assert "XS201" in result.output


@pytest.mark.parametrize("path", FILES, ids=golden_ids)
def test_text_has_no_colour_where_it_is_not_a_terminal(path: Path) -> None:
    assert "\x1b" not in path.read_text()


def test_the_deepest_path_is_explained(tmp_path: Path) -> None:
    deepest, below = "/a" * 256, "/a" * 255
    (tmp_path / "deep.xscl").write_text(f"S{deepest}->x JOIN {{x{below} = y, 1 h}} S{deepest}->y")
    result = CliRunner().invoke(main, ["explain", str(tmp_path)])
    assert result.exit_code == 0, result.output


REPEATS = "S//a[v->x] NEXT {, 1 h} S//b[v->y]+ {y > prev(y)} WITHIN 1 h GRACE 1 s"
GUARDED = """
CREATE TABLE worker (id KEY, status DEFAULT 'safe')
;
S//exit[hcw->h1] FOLLOWED BY {h1 = h2, 45 s} S//enter[hcw->h2]
WHERE worker[h2].status = 'safe' GRACE 5 s
"""


def test_a_repetition_is_a_decision_that_says_how_its_runs_are_found() -> None:
    [one] = survey(xscl.parse(REPEATS, id="q")).queries[0].decisions
    assert (one.number, one.kind, one.operands, one.within) == (
        1,
        "NEXT",
        ("block 0", "block 1+"),
        "1 hour",
    )
    assert [(each.unit, each.asked) for each in one.repeated] == [("block 1+", "y > prev(y)")]
    assert not one.is_open


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("S//b[v->y]+ {y > prev(y)} WITHIN 1 h", "counted before they are listed"),
        ("S//b[v->y]+ {y > avg(y)} WITHIN 1 h", "found one by one"),
        ("S//b[v->y]+ {y > prev(y)} WITHIN 1 h WINDOW 0 s GRACE 0 s", "are counted, and none"),
        ("SELECT COMPRESSED FROM S//b+ WITHIN 1 h GRACE 0 s", "drawn as graphs"),
        ("S//a FOLLOWED BY S//b+ WITHIN 1 h MATCH STRICT GRACE 0 s", "first document of its str"),
        ("S//b[v->y]+ {y > $n OR y > prev(y)} WITHIN 1 h", "go on for each $n that is given"),
    ],
)
def test_explain_says_which_runs_are_listed_and_which_are_counted(text: str, how: str) -> None:
    found = survey(xscl.parse(text, id="q"))
    [one] = found.queries[0].decisions
    assert how in one.how
    assert one.is_open == ("GRACE" not in text)
    shown = render_query(found, found.queries[0], ["decisions"])
    assert one.how in shown
    assert ("answered when" in shown) == (not one.is_open)


def test_a_chain_under_match_is_one_decision_with_all_that_it_takes_and_lacks() -> None:
    text = """
    (S//a[v->x] FOLLOWED BY S//b[v->y]+ {y > prev(y), 1 min} FOLD {n = 0 THEN n + y}
        UNLESS {z = x} S//n[v->z] FOLLOWED BY {w = x} S//c[v->w] WITHIN 1 h MATCH NEXT)
    NEXT {, 1 d} S//d
    """
    first, second = survey(xscl.parse(text, id="q")).queries[0].decisions
    assert first.kind == "MATCH NEXT"
    assert first.operands == ("block 0", "block 1+", "block 3")
    [each] = first.repeated
    assert (each.asked, each.gap, each.folds) == ("y > prev(y)", "1 minute", ("n = 0 THEN n + y",))
    assert [(a.unit, a.asked) for a in first.absences] == [("block 2", "x = z")]
    assert second.operands == ("decision 1", "block 4")


def test_equal_repetitions_are_one_decision() -> None:
    repeats = xscl.parse(REPEATS, id="repeats")
    others = xscl.parse(f"SELECT <r/> FROM {REPEATS}", id="others")
    [one] = survey([*repeats, *others]).query("others").decisions
    assert one.others == ("repeats", "others")


def test_what_is_shared_is_said_beside_repetitions_and_tables() -> None:
    repeats = xscl.parse(REPEATS, id="repeats")
    guarded = xscl.parse(GUARDED)
    [first, second] = (
        xscl.parse("S//a->a NEXT {a/k = b/k, 1 h} S//b->b GRACE 1 s", id=name)[0]
        for name in ("first", "second")
    )
    [shared] = sharing(second, [first, *repeats, *guarded])
    assert (shared.decision, shared.query_class) == (
        "block 0 NEXT block 1 within 1 hour",
        ("first",),
    )


LOSSY = """
S//a[k->x] FOLLOWED BY {x = y, 20 s} S//b[k->y] LOSS 0.1 DELAY uniform(0 s, 10 s)
    FOLLOWED BY {y = z, 20 s} S//c[k->z]
    FOLLOWED BY {z = w, 9 s} S//d[k->w] LOSS 0.2 DELAY learned
    FOLLOWED BY {w = v, 9 s} S//e[k->v] CONFIDENCE 0.04 GRACE 0 s
"""


def test_variants_are_shown_with_their_factors_and_what_is_not_asked() -> None:
    [view] = survey(xscl.parse(LOSSY, id="q"), lateness_us=0).queries
    assert [(each.lost, each.title) for each in view.variants] == [
        ((), "all units are there: confidence 1"),
        ((1,), "without block 1 (S): confidence 0.1 at most"),
        ((3,), "without block 3 (S): confidence 0.2 at most"),
    ]
    assert view.variants[1].factors == (
        "0.1 F(T): block 1 (S) lost, T from block 0 to block 2,"
        " LOSS 0.1 DELAY uniform(0 seconds, 10 seconds)",
    )
    assert "learned from the last 1,000 matches" in view.variants[2].factors[0]
    assert view.unasked == (
        "a match has a confidence of 0.04 at least; published documents count with theirs",
        "not asked: without block 1 (S) and block 3 (S): confidence 0.02 at most",
    )
    text = render_query(survey(xscl.parse(LOSSY, id="q"), lateness_us=0), view, ["variants"])
    assert "unless block 1 stands between" in text


@pytest.mark.parametrize("name", SECTIONS)
def test_the_verb_has_every_section_and_shows_it_unasked(name: str, tmp_path: Path) -> None:
    """Variants and tables were made, and no option of the verb had them printed."""
    others = "S//i->a WINDOW 1 h GRACE 0 s; S//i NEXT {, 1 h} S//j GRACE 0 s"
    (tmp_path / "a.xscl").write_text(f"{LOSSY}; {GUARDED}; {others}")
    asked = [arg for q in ("a.1", "worker", "a.3", "a.4", "a.5") for arg in ("--query", q)]
    titles = {}
    for option in (["--section", name], []):
        done = CliRunner().invoke(main, ["explain", str(tmp_path), *asked, *option])
        assert done.exit_code == 0, done.output
        titles[bool(option)] = f"\n{SECTIONS[name][0]}\n" in done.stdout
    assert titles == {True: True, False: name != "sql"}


def test_tables_are_shown_with_who_reads_and_writes_them() -> None:
    rules = GUARDED.replace("GRACE 5 s", "GRACE 5 s ON MATCH SET worker[h2].status = 'warning'")
    reader = "S//mask[hcw->h] WHERE exists(worker[h]) GRACE 5 s ON MATCH DELETE worker[h]"
    queries = [*xscl.parse(rules), *xscl.parse(reader, id="mask")]
    table, rule, mask = survey(queries, lateness_us=0).queries
    assert table.tables == (
        "the table worker, a row for each id",
        "status is 'safe' where no row says otherwise",
        "documents of the stream TABLE.worker load it",
        f"worker is read by {rule.id}, mask",
        f"worker is written by {rule.id}, mask",
    )
    assert rule.tables == (
        "asks worker[h2].status = 'safe', as the transactions before left it",
        "each match sets worker[h2].status to 'warning'",
        "worker is read by mask too",
        "worker is written by mask too",
        "its transactions run one after the other with those of mask",
    )
    assert "each match removes worker[h]" in mask.tables


LOST = (
    "S//i[k = $x]->a FOLLOWED BY {a/t = b/t, 1 h} S//j->b LOSS 0.1 DELAY %s"
    " FOLLOWED BY {b/t = c/t, 1 h} S//k->c CONFIDENCE 0.01"
)


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("S//i->a NEXT {similar(a/t, b/t) >= $x, 1 h} S//i->b", {"parameters"}),
        ("S//i->a NEXT {a/n < b/n + $x, 1 h} S//i->b", {"parameters", "no-value-join"}),
        ("S//i->a NEXT {similar(a/t, b/t) >= 0.5 OR a/n < b/n, 1 h} S//i->b", {"no-value-join"}),
        ("S//i->a NOT FOLLOWED BY {similar(a/t, b/t) >= 0.5, 1 h} S//i->b", set()),
        ("S//i[k = $x] NOT FOLLOWED BY {, $t} S//i[k = $x]", {"parameters"}),
        ("S//i[k = $x] UNLESS {, 1 h} (S//i[k = $x] | S//j)", {"no-value-join", "parameters"}),
        ("S//i[k = $x] NEXT {, 1 h} S//i[k = $x] UNLESS S//j[k != $x]", {"parameters"}),
        ("S//i[k = $x] NEXT {, 1 h} S//i[k != $x]", {"no-value-join", "parameters"}),
        (LOST % "uniform(0 s, 1 h)", {"parameters"}),
        (LOST % "learned", {"decided-parameters"}),
    ],
)
def test_notes_say_what_a_decision_passes_over_and_for_whom_it_is(
    text: str, codes: set[str]
) -> None:
    (query,) = survey(xscl.parse(text, id="q")).queries
    found = {note.code for note in query.notes}
    assert found & {"parameters", "decided-parameters", "no-value-join"} == codes


def test_notes_say_which_expressions_of_select_are_xpath_2() -> None:
    text = "SELECT <o a='{x/@id}'>{x/t}{count(x/t)}{dur()}</o> FROM S//i->x"
    (query,) = survey(xscl.parse(text, id="q")).queries
    assert ["count(x/t)" in note.text for note in query.notes if note.code == "xpath-2"] == [True]


@pytest.mark.parametrize("number", ["'INF'", "'NaN'"])
def test_what_is_compared_with_no_finite_number_is_explained(number: str) -> None:
    found = survey(xscl.parse(f"S//i[w = 'a' or p > {number}]->a", id="q"))
    assert f"p > {number}" in render_query(found, found.queries[0], ["patterns"])


def test_lengths_that_are_given_are_shown_as_parameters_also_where_each_value_is_compiled() -> None:
    braces = "{a/k = b/k AND time(b) > time(a) + $d, $w}"
    text = f"S//i[count(k[. = $x]) = 1]->a FOLLOWED BY {braces} S//i->b LIMIT 1 PER $l"
    found = survey(xscl.parse(text, id="q"))
    shown = render_query(found, found.queries[0], [*SECTIONS])
    assert "time(b) > time(a) + $d" in shown
    assert "its own window: $w" in shown
    assert "at most 1 within $l" in shown
    assert "0 seconds" not in shown
