"""Each kind of reason, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import oracle
import pytest
from click.testing import CliRunner
from support.goldens import check_golden, golden_files, golden_ids
from support.kit import document, us

import xscl
from broker.cli import main
from broker.documents.document import Document, DocumentLine
from broker.whynot import Reason, why_not
from broker.whynot.nearmiss import near_miss

PAIR = "S//a->x FOLLOWED BY {x/k = y/k, 1 h} S//a->y"


def ask(query: str, *lines: DocumentLine, take: Sequence[int] = (), **options: object) -> Reason:
    """Ask about documents by number, all of them where none is named."""
    [parsed] = xscl.parse(query, id="q")
    documents: Sequence[Document] = oracle.number_documents(list(lines))
    chosen = [documents[n - 1] for n in take] if take else documents
    given = {"lateness_us": us("1 d"), **options}
    return why_not(parsed, chosen, **given)  # type: ignore[arg-type]


def only_failure(reason: Reason) -> Reason:
    assert not reason.holds
    [failure] = reason.failures()
    return failure


def k(*values: str) -> str:
    return "<a>" + "".join(f"<k>{value}</k>" for value in values) + "</a>"


def test_documents_that_match_are_said_to_match() -> None:
    reason = ask(PAIR, document("S", 1, k("v")), document("S", 2, k("v")))
    assert reason.holds
    assert list(reason.failures()) == []
    assert reason.facts["order"] == [0, 1]


def test_documents_may_be_given_in_any_order() -> None:
    lines = [document("S", 1, k("v")), document("S", 2, k("v"))]
    reason = ask(PAIR, *lines, take=[2, 1])
    assert reason.holds
    assert reason.facts["order"] == [1, 0]


def test_a_block_too_few_or_too_many() -> None:
    failure = only_failure(ask(PAIR, document("S", 1, k("v"))))
    assert failure.kind == "documents"
    assert failure.text == "q has 2 blocks, and 1 document given"


def test_one_document_twice() -> None:
    lines = [document("S", 1, k("v")), document("S", 2, k("v"))]
    assert only_failure(ask(PAIR, *lines, take=[1, 1])).kind == "documents"


def test_parameters_without_values() -> None:
    failure = only_failure(ask("S//a[k = $v]", document("S", 1, k("v"))))
    assert failure.kind == "parameters"
    assert "$v" in failure.text


def test_a_stream_that_no_block_reads() -> None:
    failure = only_failure(ask("T//a", document("S", 1, k("v"))))
    assert failure.kind == "stream"
    assert failure.text == "the block reads T, the document is on S"


def test_a_document_from_before_the_registration() -> None:
    failure = only_failure(ask("S//a", document("S", 1, k("v")), registration_point=1))
    assert (failure.kind, failure.hint) == ("registration", "register it with --since")


def test_a_document_that_is_not_xml() -> None:
    assert only_failure(ask("S//a", document("S", 1, "<a>"))).kind == "xml"


@pytest.mark.parametrize(
    ("query", "xml", "text", "hint"),
    [
        ("S//a", "<b/>", "there is no `//a`: the root element is `b`", "what is there: `b`"),
        ("S//a", "<A/>", "there is no `//a`", "names are case-sensitive"),
        (
            "S//a/k",
            "<a><b/></a>",
            "there is no `k`: nothing in `a` (node 0) is called so",
            "what is there: `b`",
        ),
        ("S/k", "<a><k/></a>", "there is no `/k`", "write `//k`"),
        ("S//a[k->k]", "<a/>", "there is no `//a`", None),
        ("S//k", "<a xmlns='urn:n'><k/></a>", "there is no `//k`", "`*:k` would name it"),
        ("S//a/@h", "<a H='1'/>", "has no such attribute", "names are case-sensitive"),
    ],
)
def test_the_step_that_selects_nothing(query: str, xml: str, text: str, hint: str | None) -> None:
    failure = only_failure(ask(query, document("S", 1, xml)))
    assert failure.kind in ("step", "condition")
    if hint is not None:
        assert text in failure.text
        assert hint in (failure.hint or "")


@pytest.mark.parametrize(
    ("condition", "xml", "text", "hint"),
    [
        ("p > 10", "<a><p>8</p></a>", "`[p > 10]` does not hold for `a` (node 0)", None),
        ("p > 10", "<a><p>much</p></a>", "the value is 'much'", "this is no number"),
        ("contains(t, 'Rain')", "<a><t>no rain</t></a>", "the value is 'no rain'", "case"),
        ("not(t = 'x')", "<a><t>x</t></a>", "`[not(t = 'x')]` does not hold", None),
        ("2", "<a/>", "it counts otherwise", None),
        ("position() mod 2 = 0", "<a/>", "it counts otherwise", None),
        ("count(t) = 2", "<a><t/></a>", "`[count(t) = 2]` does not hold", None),
        ("t = 'x' or t = 'y'", "<a><t>z</t></a>", "does not hold", None),
    ],
)
def test_the_condition_that_does_not_hold(
    condition: str, xml: str, text: str, hint: str | None
) -> None:
    failure = only_failure(ask(f"S//a[{condition}]", document("S", 1, xml)))
    assert failure.kind == "condition"
    assert text in failure.text
    assert hint is None or hint in (failure.hint or "")


def test_a_constant_that_is_nearly_there() -> None:
    failure = only_failure(ask("S//a[k = 'Ann']", document("S", 1, k("ann"))))
    assert failure.kind == "constant"
    assert failure.text == "`k` (node 1) is 'ann', not 'Ann': they differ only in case"


def test_what_is_told_is_of_the_node_that_came_furthest() -> None:
    xml = "<r><a><b/></a><a><k>1</k></a></r>"
    failure = only_failure(ask("S//a[k->k][m->m]", document("S", 1, xml)))
    assert "`m`" in failure.text or "[m]" in failure.text


def failure_of_pair(left: str, right: str, query: str = PAIR) -> Reason:
    return only_failure(ask(query, document("S", 1, left), document("S", 2, right)))


def test_values_that_have_nothing_in_common() -> None:
    failure = failure_of_pair(k("a", "b"), k("c"))
    assert failure.kind == "value join"
    assert failure.text == "x/k = y/k: 'a', 'b' on the left, 'c' on the right"
    assert failure.hint is None


@pytest.mark.parametrize(
    ("left", "right", "difference", "rewritten"),
    [
        ("Ann Lee", "ann lee", "case", "lower-case(x/k) = lower-case(y/k)"),
        ("Ann  Lee ", "Ann Lee", "white space", "normalize-space(x/k) = normalize-space(y/k)"),
        ("http://a.org/", "http://a.org", "a trailing slash", "replace(x/k, '/+$', '') ="),
        ("http://a.org", "https://a.org", "http and https", "replace(x/k, '^https?://', '') ="),
        ("http://www.a.org", "http://a.org", "a `www.`", "replace(x/k, '//www\\.', '//') ="),
        ("http://a.org?utm=1", "http://a.org", "what follows", "replace(x/k, '[?#].*$', '') ="),
    ],
)
def test_values_that_are_nearly_equal(
    left: str, right: str, difference: str, rewritten: str
) -> None:
    failure = failure_of_pair(k("other", left), k(right))
    assert f"{left!r} is nearly {right!r}" in failure.text
    assert difference in failure.text
    assert failure.hint is not None
    assert rewritten in failure.hint
    better = PAIR.replace("x/k = y/k", failure.hint.removeprefix("write "))
    assert ask(better, document("S", 1, k(left)), document("S", 2, k(right))).holds


def test_values_that_are_similar_have_no_rewriting() -> None:
    failure = failure_of_pair(k("Heavy rain in Spain"), k("Heavy rain in Spein"))
    assert "a few characters" in failure.text
    assert failure.hint is None


def test_titles_that_are_not_similar_enough() -> None:
    query = PAIR.replace("x/k = y/k", "similar(x/k, y/k) >= 0.5")
    failure = failure_of_pair(k("tanker blockade ends at sea"), k("a ship ends at sea"), query)
    assert failure.kind == "similarity"
    assert failure.text == (
        "similar(x/k, y/k) >= 0.5: 0.43, needed 0.50; missing: 'a', 'blockade', 'ship', 'tanker'"
    )
    assert failure.facts["shared"] == ["at", "ends", "sea"]


def test_a_score_that_is_rounded_to_the_threshold_is_told_apart_from_it() -> None:
    query = PAIR.replace("x/k = y/k", "jaccard(words(x/k), words(y/k)) > 0.667")
    failure = failure_of_pair(k("one two"), k("one two three"), query)
    assert "0.6667, needed more than 0.6670" in failure.text


def test_empty_values_join_nothing() -> None:
    assert "the empty string joins nothing" in failure_of_pair(k(""), k("")).text


def test_a_function_without_values() -> None:
    query = PAIR.replace("x/k = y/k", "host(x/k) = host(y/k)")
    assert failure_of_pair(k("no url"), k("http://a.org"), query).text == (
        "host(x/k) = host(y/k): `host(x/k)` has no value"
    )


def test_a_residual() -> None:
    query = PAIR.replace("x/k = y/k", "x/k = y/k AND x/k != y/k")
    failure = failure_of_pair(k("v"), k("v"), query)
    assert failure.kind == "residual"
    assert failure.text == "x/k#2 != y/k#2: 'v' and 'v'"


def test_a_residual_over_what_is_no_number() -> None:
    query = PAIR.replace("x/k = y/k", "x/k > 3 AND x = y")
    reason = ask(query, document("S", 1, k("many")), document("S", 2, k("many")))
    failure = only_failure(reason)
    assert failure.hint == "numbers are compared, and one side is no number"


@pytest.mark.parametrize(
    ("end", "text"),
    [
        ("WITHIN 30 min", "dur() <= 30 minutes: 40 minutes and 30 minutes"),
        (
            "WHERE time(y) - time(x) < $d",
            "time(y) - time(x) < 30 minutes: 40 minutes and 30 minutes",
        ),
        (
            "WHERE time(y) <= time(x) + 30 min",
            "time(y) <= time(x) + 30 minutes: 2026-01-01T00:41:00Z and 2026-01-01T00:31:00Z",
        ),
        (
            "WHERE time(x) - end() > -90 s",
            "time(x) - end() > -90000000: -40 minutes and -1 minute 30 seconds",
        ),
        ("WHERE 2 * dur() < 1 h", "2 * dur() < 1 hour: 1 hour 20 minutes and 1 hour"),
        ("WHERE dur() div 1 min > 60", "dur() div 60000000 > 60: 40 and 60"),
    ],
)
def test_times_and_lengths_are_told_as_such(end: str, text: str) -> None:
    query = f"S//a->x FOLLOWED BY {{x/k = y/k, 1 h}} S//a->y {end}"
    given = {"d": us("30 m")} if "$" in end else {}
    lines = (document("S", 1, k("7")), document("S", 41, k("7")))
    assert only_failure(ask(query, *lines, parameters=given)).text == text


def test_comparisons_that_hold_only_apart() -> None:
    query = "S//b->b[k->k][m->m] FOLLOWED BY {k = n AND m = o, 1 h} S//b[k->n][m->o]"
    left = "<r><b><k>1</k><m>2</m></b><b><k>3</k><m>4</m></b></r>"
    right = "<r><b><k>1</k><m>4</m></b></r>"
    failure = failure_of_pair(left, right, query)
    assert failure.kind == "together"


def test_the_wrong_order_in_time() -> None:
    query = "S//a->x FOLLOWED BY {x/k = y/k, 1 h} T//a->y"
    reason = ask(query, document("S", 2, k("v")), document("T", 1, k("v")))
    failure = only_failure(reason)
    assert failure.kind == "order"
    assert failure.text == "document 1 ends 1 minute after document 2 starts"


def test_equal_times_never_follow_each_other() -> None:
    failure = only_failure(ask(PAIR, document("S", 1, k("v")), document("S", 1, k("v"))))
    assert failure.kind == "order"
    assert "equal times" in failure.text


def test_a_window_that_is_too_short() -> None:
    failure = only_failure(ask(PAIR, document("S", 0, k("v")), document("S", 61.5, k("v"))))
    assert failure.kind == "window"
    assert failure.text == "1 hour 1 minute apart, 1 hour allowed: 1 minute 30 seconds too far"


def test_a_partner_that_had_been_forgotten() -> None:
    lines = [
        document("S", 0, k("v")),
        document("S", 180, "<b/>"),
        document("S", 30, k("v"), arrival=200),
    ]
    failure = only_failure(ask(PAIR, *lines, take=[1, 3], lateness_us=us("10 m")))
    assert failure.kind == "lateness"
    assert "document 1 came first and had been forgotten when document 3 came" in failure.text
    assert failure.hint == "an allowed lateness of 2 hours keeps it"
    assert ask(PAIR, *lines, take=[1, 3], lateness_us=us("2 h")).holds


def test_an_operator_over_an_operand_without_a_match() -> None:
    query = "S//a->x FOLLOWED BY {x/k = y/k, 1 h} S//a->y FOLLOWED BY {y/k = z/k, 1 h} S//a->z"
    lines = [document("S", 1, k("v")), document("S", 2, k("w")), document("S", 3, k("u"))]
    reason = ask(query, *lines)
    assert [f.kind for f in reason.failures()] == ["value join", "operator"]


def test_the_alternative_that_came_furthest_is_told() -> None:
    query = PAIR.replace("x/k = y/k", "(x/m = y/m OR x/k = y/k)")
    reason = ask(query, document("S", 1, k("Ann")), document("S", 2, k("ann")))
    assert "alternative 2 of 2" in reason.text
    assert only_failure(reason).kind == "value join"


def test_near_misses_are_the_smallest_differences() -> None:
    miss = near_miss("HTTPS://A.org/x/", "http://a.org/x")
    assert miss is not None
    assert set(miss.differences) == {"case", "a trailing slash", "http and https"}
    assert near_miss("  ", "") is None


@pytest.mark.parametrize("path", golden_files("whynot"), ids=golden_ids)
def test_why_not_prints_what_is_golden(path: Path, tmp_path: Path) -> None:
    check_golden(path, tmp_path)


def test_reasons_are_values_for_programs(tmp_path: Path) -> None:
    (tmp_path / "q.xscl").write_text(PAIR)
    for name, value in (("1.xml", "v"), ("2.xml", "V")):
        (tmp_path / name).write_text(k(value))
    files = [str(tmp_path / name) for name in ("q.xscl", "1.xml", "2.xml")]
    result = CliRunner().invoke(main, ["explain", "--why-not", *files, "--format", "json"])
    reason = json.loads(result.stdout)
    assert reason["holds"] is False
    joined = reason["parts"][2]["parts"][-1]
    assert joined["kind"] == "value join"
    assert joined["facts"]["near_miss"]["differences"] == ["case"]
