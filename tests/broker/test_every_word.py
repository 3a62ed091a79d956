"""Every word of conditions, units and clauses runs wherever queries do, and means one thing there.

A small statement for each word is run over the same documents by the oracle, all engines, replay,
shards and an engine that starts again, and asked of why-not, explain and estimate.
"""

from __future__ import annotations

import io
import json
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import oracle
import pytest
from oracle.lines import render
from support.kit import Case, document
from support.runners import ENGINES, EngineName, run_engine, run_oracle

import xscl
from broker.documents.document import Document, DocumentLine, render_time
from broker.estimate import estimate
from broker.estimate.statistics import DAY_US
from broker.explain.survey import survey
from broker.explain.text import SECTIONS, render_query
from broker.matching.match import Match
from broker.pipeline.lookback.replay import LATENESS_US, replay
from broker.pipeline.shards import Join
from broker.whynot import why_not
from xscl.query import Query

PAIR = "S//a->a FOLLOWED BY {a/k = b/k AND %s, 50 min} S//b->b"
KEPT = "S//a->a FOLLOWED BY {a/k = b/k, 50 min} S//b->b WHERE %s"

STATEMENTS = {
    "SAME": "S//a FOLLOWED BY {, 50 min} S//b SAME (//k)",
    "SAME with a literal": "S//a FOLLOWED BY {, 50 min} S//b SAME (//k = '1')",
    "WITHIN": "S//a->a FOLLOWED BY {a/k = b/k, 50 min} S//b->b WITHIN 30 min",
    "braces without a window": "S//a->a FOLLOWED BY {a/k = b/k} S//b->b WITHIN 30 min",
    "no braces": "S//a FOLLOWED BY S//b WITHIN 20 min",
    "units": "(S//a->x | S//c->x) FOLLOWED BY {x/k = y/k, 50 min} (S//b->y | S//c->z)",
    "WHERE": KEPT % "a/n < b/n OR a/w = 'calm'",
    "+": PAIR % "a/n + b/n = 4",
    "-": PAIR % "a/n - b/n > -1",
    "unary -": PAIR % "-a/n < -b/n",
    "*": PAIR % "2 * a/n <= b/n",
    "div": PAIR % "a/n div b/n < 0.9",
    "mod": PAIR % "(a/n + b/n) mod 2 = 1",
    "durations": PAIR % "time(b) - time(a) > 20 min",
    "time": KEPT % "time(b) <= time(a) + 20 min",
    "dur": KEPT % "dur() >= 30 min",
    "start": PAIR % "time(b) - start() < 30 min",
    "end": PAIR % "end() - time(a) < 30 min",
    "revision": PAIR % "revision(b) > revision(a)",
    "exists": PAIR % "exists(b/w)",
    "empty": KEPT % "empty(b/w)",
    "if": PAIR % "if (a/n > 1) then a/n else b/n = 2",
    "contains": PAIR % "contains(a/t, b/t)",
    "contains a constant": PAIR % "contains(b/t, 'our')",
    "starts-with": PAIR % "starts-with(a/t, b/t)",
    "ends-with": KEPT % "ends-with(lower-case(a/t), lower-case(b/t))",
    "matches": PAIR % "matches(a/t, concat('^', b/t, '.*d$'), 'i')",
}

TOLD = {
    "SAME": "value join  //k = //k#2",
    "SAME with a literal": "its own constants: //k = '1', //k#2 = '1'",
    "WITHIN": "residual    dur() <= 30 minutes",
    "braces without a window": "residual    dur() <= 30 minutes",
    "no braces": "residual    dur() <= 20 minutes",
    "units": "units make 4 alternatives",
    "WHERE": "residual    a/n < b/n",
    "+": "a/n + b/n = 4",
    "-": "a/n - b/n > -1",
    "unary -": "-a/n < -b/n",
    "*": "2 * a/n <= b/n",
    "div": "a/n div b/n < 0.9",
    "mod": "(a/n + b/n) mod 2 = 1",
    "durations": "time(b) - time(a) > 20 minutes",
    "time": "time(b) <= time(a) + 20 minutes",
    "dur": "dur() >= 30 minutes",
    "start": "time(b) - start() < 30 minutes",
    "end": "end() - time(a) < 30 minutes",
    "revision": "revision(b) > revision(a)",
    "exists": "exists(b/w)",
    "empty": "empty(b/w)",
    "if": "if (a/n > 1) then a/n else b/n = 2",
    "contains": "contains(a/t, b/t)",
    "contains a constant": "its own constants: contains(b/t, 'our')",
    "starts-with": "starts-with(a/t, b/t)",
    "ends-with": "ends-with(lower-case(a/t), lower-case(b/t))",
    "matches": "matches(a/t, concat('^', b/t, '.*d$'), 'i')",
}
"""What an explanation says of each statement, beside the statement itself."""

TITLES = ("Harbour", "Harbour closed", "closed", "Old harbour", "har")


def lines_of(number: int) -> DocumentLine:
    """Return one of 48 documents, ten minutes apart: some keys come again, with other content."""
    name = "aabbcb"[number % 6]
    weather = "<w>calm</w>" if number % 4 else ""
    inner = f"<k>{number % 2}</k><n>{number % 5}</n><t>{TITLES[number % 5]}</t>{weather}"
    key = f"again {number % 5}" if number % 7 < 2 else None
    return document("S", 10 * number, f"<{name}>{inner}</{name}>", key=key)


LINES = [lines_of(number) for number in range(48)]
QUERIES = [xscl.parse(text, id=name)[0] for name, text in STATEMENTS.items()]


def case() -> Case:
    return Case(queries=list(QUERIES), lines=list(LINES))


Found = dict[str, list[str]]


def by_word(matches: Iterable[Match]) -> Found:
    """Return match lines by the word whose statement has them."""
    found = defaultdict(list)
    for match in matches:
        found[match.query].append(render(match))
    return {word: sorted(found[word]) for word in STATEMENTS}


@cache
def right() -> list[Match]:
    return list(run_oracle(case()))


def pairs_of(word: str) -> set[tuple[int, ...]]:
    return {tuple(d.docid for d in match.documents) for match in right() if match.query == word}


def test_every_word_tells_documents_apart() -> None:
    plain = {"SAME", "no braces", "units"}
    assert all(pairs_of(word) for word in STATEMENTS)
    assert all(pairs_of(word) < pairs_of("SAME") for word in STATEMENTS if word not in plain)


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_is_right(engine: EngineName) -> None:
    assert by_word(run_engine(case(), engine)) == by_word(right())


def test_shards_are_right() -> None:
    spread = run_engine(case(), batch_size=12, processors=lambda: Join(DAY_US, 2).processor(None))
    assert by_word(spread) == by_word(right())


def test_an_engine_that_starts_again_is_right() -> None:
    assert by_word(run_engine(case(), batch_size=20, restart_after=20)) == by_word(right())


def test_replay_is_right(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps(_data(line)) + "\n" for line in LINES))
    out = io.StringIO()
    replay(QUERIES, [path], out, spark=False)
    found = defaultdict(list)
    for line in out.getvalue().splitlines():
        found[json.loads(line)["query"]].append(line)
    assert {word: sorted(found[word]) for word in STATEMENTS} == by_word(right())


def _data(line: DocumentLine) -> dict[str, str]:
    assert line.time_us is not None
    key = {} if line.key is None else {"key": line.key}
    time = render_time(line.time_us)
    return {"stream": line.stream, "time": time, "xml": line.xml.decode(), **key}


def documents() -> list[Document]:
    return oracle.number_documents(LINES)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.id)
def test_why_not_is_right(query: Query) -> None:
    found = pairs_of(query.id)
    missed = sorted(pairs_of("SAME") - found)
    by_docid = {each.docid: each for each in documents()}
    for pair in [*sorted(found)[:4], *missed[:6]]:
        reason = why_not(query, [by_docid[docid] for docid in pair], lateness_us=LATENESS_US)
        assert reason.holds == (pair in found)
        assert reason.holds or list(reason.failures())


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.id)
def test_explain_tells_of_it(query: Query) -> None:
    found = survey([query])
    shown = [name for name in SECTIONS if name != "sql"]
    _, _, told = render_query(found, found.query(query.id), shown).partition("\n\n")
    assert TOLD[query.id] in told


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.id)
def test_an_estimate_is_around_what_is_found(query: Query) -> None:
    [found] = estimate([query], documents())
    assert found.matches_per_day is not None, found.refusal
    times = [each.arrival_us for each in documents()]
    measured = len(pairs_of(query.id)) * DAY_US / (times[-1] - times[0])
    assert found.matches_per_day.low <= measured <= found.matches_per_day.high
