"""Counted chains under MATCH ANY behave as what is listed: in histories, why-not and estimates."""

from __future__ import annotations

import tempfile
from pathlib import Path

import oracle
import pytest
from click.testing import CliRunner
from histories.history import history_matches, parse_history
from histories.runs import Way, run_history
from support.counted_runs import asked
from support.examples import some
from support.kit import document, parse_case, us
from support.runners import lines, run_engine, run_oracle

import xscl
from broker.cli import main
from broker.estimate.decided import matches_of
from broker.matching.costs.budget import DEFAULT_BUDGET
from broker.whynot import Surroundings, why_not
from xscl.counting import counts_chain, is_counted

BY_ELEMENTS = (
    "{s}//a[v->x] FOLLOWED BY {{x < y, 9 s}} S//b[v->y] FOLLOWED BY {{y <= z, 9 s}} S/*[v->z]"
)
BY_STEPS = "{s}//a FOLLOWED BY S//b+ FOLLOWED BY S/* WITHIN 12 s SAME (//k)"
DRAWN = "{s}//a[v->x] FOLLOWED BY {{x < y}} S//b[v->y] FOLLOWED BY S/*[v->z] WITHIN 12 s"

HISTORY = """
lateness 100 s
register publisher
    SELECT * FROM S//a GRACE 0 s PUBLISH P
register q
    {query}
{documents[0]}
pause q
register late since 0
    {query}
{documents[1]}
resume q
{documents[2]}
restart
register other since 6
    {query}
{documents[3]}
remove late
{documents[4]}
document 99 T 00:10:00 arrival=01:00  <z/>
"""


def _documents() -> list[str]:
    """Return stretches of documents, one of which is late."""
    found: list[str] = []
    for number in range(1, 26):
        second = number - 3 * (number == 17)
        kind, key = "abcba"[number * 7 % 5], "xxy"[number % 3]
        xml = f"<{kind}><k>{key}</k><v>{number * 5 % 7}</v></{kind}>"
        found.append(f"document {number} S 00:00:{second:02} arrival=01:00  {xml}")
    return ["\n".join(found[first : first + 5]) for first in range(0, 25, 5)]


@pytest.mark.parametrize(
    ("source", "stream"),
    some([(BY_ELEMENTS, "P"), (BY_ELEMENTS, "S"), (BY_STEPS, "S"), (DRAWN, "P")], 1),
)
def test_statements_come_go_pause_and_look_back(source: str, stream: str) -> None:
    query = f"SELECT <n>{{count()}}</n> FROM {source.format(s=stream)} MATCH ANY"
    query += " WINDOW 0 s HAVING count() > 1 GRACE 0 s"
    assert counts_chain(xscl.parse(query, id="q")[0])
    history = parse_history(HISTORY.format(query=query, documents=_documents()))
    expected = history_matches(history)
    for name in ("q", "late", "other"):
        assert any(f'"{name}"' in line for line in expected), name
    for way in (Way(), Way(shards=3, batch_documents=3, restarts=frozenset([7, 15]))):
        with tempfile.TemporaryDirectory() as directory:
            assert run_history(history, Path(directory), way) == expected


@pytest.mark.parametrize("source", [BY_ELEMENTS, BY_STEPS, DRAWN])
def test_why_not_says_of_what_is_counted_what_it_says_of_what_is_listed(source: str) -> None:
    listed = f"{source.format(s='S')} MATCH ANY"
    counted = f"SELECT <n>{{count()}}</n> FROM {listed} WINDOW 0 s GRACE 0 s"
    kinds = [("a", "x", 1), ("b", "x", 3), ("b", "y", 0), ("a", "x", 4), ("c", "x", 9)]
    lines = [
        document("S", n / 60, f"<{kind}><k>{key}</k><v>{value}</v></{kind}>")
        for n, (kind, key, value) in enumerate(kinds, 1)
    ]
    documents = oracle.number_documents(lines)
    found = []
    for text in (listed, counted):
        [query] = xscl.parse(text, id="q")
        around = Surroundings(documents)
        reasons = [
            why_not(
                query,
                [documents[n - 1] for n in take],
                lateness_us=us("1 d"),
                around=around,
            )
            for take in ([1, 2, 5], [1, 3, 5], [4, 2, 5], [1, 2, 3, 5], [1, 5])
        ]
        found.append([(each.holds, [one.text for one in each.failures()]) for each in reasons])
    assert found[0] == found[1]
    assert found[0][0][0]
    assert len({holds for holds, _ in found[0]}) == 2


@pytest.mark.parametrize("source", [BY_ELEMENTS, BY_STEPS, DRAWN])
def test_as_many_rows_are_estimated_as_there_are(source: str) -> None:
    rows = "WINDOW 0 s HAVING count() > 1 GRACE 0 s"
    text = f"SELECT <n>{{count()}}</n> FROM {source.format(s='S')} MATCH ANY {rows}"
    documents = "\n".join([*_documents(), "tick 26 10:00:00", "----", ""])
    case = asked(text, documents, 100)
    rows_found = run_engine(case)
    sample = oracle.number_documents([each for each in case.lines if each.xml])
    matches, paused = matches_of(case.queries[0], sample, case.lateness_us, DEFAULT_BUDGET)
    assert not paused
    assert matches is not None
    assert matches.expected == len(rows_found) > 1


WITH_A_FILTER = """
lateness 100 s
query q
    {statement}
parameters q {{"least": 3}}
parameters q {{"least": 2}}
document 1 S 00:00:10  <a><p>1</p></a>
document 2 S 00:00:11  <a><p>2</p></a>
document 3 S 00:00:12  <b><p>1</p></b>
document 4 S 00:00:13  <b><p>2</p></b>
document 5 S 00:00:14  <c/>
tick 6 10:00:00
----
"""


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT COMPRESSED FROM S//a[p < $least] FOLLOWED BY {, 1 h} S//b+ GRACE 0 s",
        "S//a[p < $least] FOLLOWED BY {, 1 h} S//b+ {, 1 h} WINDOW 0 s GRACE 0 s",
        "S//a[p < $least] FOLLOWED BY S//b FOLLOWED BY S//c WITHIN 1 h MATCH ANY WINDOW 0 s",
        "S//a[p->p] FOLLOWED BY {p < $least} S//b FOLLOWED BY S//c WITHIN 1 h MATCH ANY WINDOW 0 s",
        "S//a FOLLOWED BY S//b+ WITHIN 1 h MATCH ANY WINDOW 0 s HAVING count() > $least",
    ],
)
def test_what_is_asked_of_a_parameter_is_asked_for_each_of_its_values(statement: str) -> None:
    case = parse_case(WITH_A_FILTER.format(statement=statement).lstrip())
    assert is_counted(case.queries[0])
    expected = lines(run_oracle(case))
    assert expected
    assert lines(run_engine(case, batch_size=2)) == expected


def test_it_is_said_that_a_chain_is_counted_which_does_not_say_that_it_is_one(
    tmp_path: Path,
) -> None:
    source = "S//a FOLLOWED BY {, 1 h} S//b FOLLOWED BY {, 1 h} S//c+ {, 1 h}"
    (tmp_path / "q.xscl").write_text(f"{source} WINDOW 0 s GRACE 0 s")
    said = CliRunner().invoke(main, ["explain", str(tmp_path / "q.xscl")])
    assert said.exit_code == 0
    assert "they are counted, and none is listed" in said.stdout
