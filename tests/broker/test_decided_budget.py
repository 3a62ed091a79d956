"""A tick that decides a night of honest tuples pauses nobody; what explodes is paused all the same.

What was decided counts at the newest document behind it, apart at each position.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import product

import pytest
from support.budget_runs import MINUTE_US, Running, documents, run
from support.budgets import UNLIMITED
from support.examples import some

from broker.documents.document import CLOCK, Document
from broker.matching.costs.budget import Budget

QUIET = "S//i->a NOT FOLLOWED BY {a/t = b/t, 12 h} R//i->b"
SILENCE = {
    "quiet": QUIET,
    "published": f"SELECT a/t FROM {QUIET} PUBLISH quiet",
    "reader": "quiet//t->p",
    "above": f"({QUIET}) JOIN {{a/t = c/t, 2 d}} S//i->c",
}
BOMB = "S//i->a FOLLOWED BY {a/lang = b/lang, 40 m} S//i->b UNLESS {a/t = c/t} R//i->c"


def night(count: int, first: int = 1) -> list[Document]:
    """Return documents of a minute each, a tick a day later, and another document."""
    day = documents(count)
    watermark_us = max(one.end_us for one in day)
    after_us = (count + 24 * 60) * MINUTE_US
    times = (after_us, after_us, after_us, watermark_us)
    later = Document(
        count + 2, "S", "later", *(after_us + MINUTE_US,) * 3, after_us, b"<i><t>later</t></i>"
    )
    stream = [*day, Document(count + 1, CLOCK, "", *times, b""), later]
    return [replace(one, docid=one.docid + first - 1) for one in stream]


BUDGETS = [
    replace(UNLIMITED, matches_per_document=15),
    replace(UNLIMITED, bytes_per_document=20_000),
    replace(UNLIMITED, pairs_per_document=15),
    replace(UNLIMITED, matches_per_1000_documents=100),
]


@cache
def free_night() -> Running:
    return run(SILENCE, UNLIMITED, night(60, first=971))


@pytest.mark.parametrize(("budget", "batch"), some(product(BUDGETS, [1, 7, 70]), 2), ids=str)
def test_a_tick_after_a_silent_night_pauses_nobody(budget: Budget, batch: int) -> None:
    stream = night(60, first=971)
    free = free_night()
    found = run(SILENCE, budget, stream, batch)
    assert found.pauses == []
    assert sorted(found.lines) == sorted(free.lines)
    at_tick = Counter(name for name, docid, _ in found.lines if docid == 1_031)
    assert at_tick["quiet"] == at_tick["published"] == at_tick["reader"] == 60
    assert at_tick["above"] > 15


def test_what_a_tick_decides_of_tuples_counts_at_the_newest_document_of_each() -> None:
    tuples = "S//a FOLLOWED BY {, 1 h} S//b"
    quiet = {"quiet": f"({tuples}) NOT FOLLOWED BY {{, 2 h}} R//c"}
    stream = [
        replace(one, stream="S", xml=b"<a/>" if one.docid == 1 else b"<b/>")
        if one.docid <= 20
        else one
        for one in night(20)
    ]
    found = run(quiet, replace(UNLIMITED, matches_per_document=5), stream)
    assert found.pauses == []
    assert len(found.of("quiet")) == 15


def newest(line: str) -> int:
    return max(int(document["docid"]) for document in json.loads(line)["documents"])


def first_over(running: Running, most: int) -> int:
    """Return the first position at which a document has too many matches."""
    counts = Counter((position, newest(line)) for _, position, line in running.lines)
    return min(position for (position, _), count in counts.items() if count > most)


def crossing(running: Running, most: int) -> int:
    """Return the first position at which matches of one block of documents are too many."""
    return sorted(position for _, position, _ in running.lines)[most]


@pytest.mark.parametrize("batch", some([1, 7, 70], 1))
def test_a_document_that_explodes_pauses_its_query_where_that_is_decided(batch: int) -> None:
    stream = documents(60)
    free = run({"bomb": BOMB}, UNLIMITED, stream)
    found = run(
        {"bomb": BOMB, **SILENCE}, replace(UNLIMITED, matches_per_document=18), stream, batch
    )
    [pause] = [pause for pause in found.pauses if pause.query == "bomb"]
    assert pause.docid == first_over(free, 18)
    assert "alone has more than 18 matches" in pause.reason
    assert found.of("bomb") == free.of("bomb", before=pause.docid) != []


@pytest.mark.parametrize("batch", some([1, 7, 70], 1))
def test_a_block_of_documents_has_a_budget_for_what_is_decided_too(batch: int) -> None:
    stream = documents(60)
    free = run({"bomb": BOMB}, UNLIMITED, stream)
    found = run({"bomb": BOMB}, replace(UNLIMITED, matches_per_1000_documents=150), stream, batch)
    [pause] = found.pauses
    assert pause.docid == crossing(free, 150)
    # What stands alone is no inner operator: tuples of none are among the matches.
    assert pause.reason.startswith(f"documents 1 to {pause.docid} have more than 150 matches (")


@pytest.mark.parametrize("after", some(range(15, 45, 5), 1))
def test_what_has_been_decided_in_a_block_outlives_the_process(after: int) -> None:
    stream, budget = documents(60), replace(UNLIMITED, matches_per_1000_documents=300)
    whole = run({"bomb": BOMB}, budget, stream)
    found = Running({"bomb": BOMB}, budget).feed(stream[:after], 10)
    found.restart(stream[:after]).feed(stream, 10, after)
    assert found.pauses == whole.pauses != []
    assert found.lines == whole.lines


def test_what_a_tick_decides_is_held_in_memory_together() -> None:
    stream = night(60)
    found = run(SILENCE, replace(UNLIMITED, output_bytes_per_1000_documents=9_000), stream)
    paused = {pause.query: pause.docid for pause in found.pauses}
    assert paused["quiet"] == 61
    assert "bytes of output" in found.pauses[0].reason
