"""What LIMIT and DISJOINT have given is of the document number of matches, after crashes too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import product
from pathlib import Path

import pytest
from support.crashing_broker import POINTS, Crash, CrashAt, CrashingBroker
from support.examples import some

import xscl
from broker.documents.document import Document, DocumentLine, tick
from broker.explain.survey import survey
from broker.pipeline.lookback.backfill import LookBackError, check_unread
from broker.whynot import why_not

SECOND_US = 1_000_000
STATEMENTS = {
    "burst": "S//i->a[k->k] WINDOW 60 s BY k HAVING count() >= 3 LIMIT 1 PER 100 s BY k GRACE 40 s",
    "some": "SELECT * FROM S//i->a LIMIT 2 PER 90 s BY a/k GRACE 40 s PUBLISH some",
    "apart": "SELECT DISJOINT * FROM S//i->a FOLLOWED BY {a/k = b/k, 60 s} S//i->b GRACE 40 s",
    "reader": "some//i->a FOLLOWED BY {a/k = b/k, 200 s} some//i->b",
}


class Broker(CrashingBroker):
    """A broker with these statements."""

    def __init__(
        self, directory: Path, reached: Callable[[str], None] = lambda point: None
    ) -> None:
        super().__init__(directory, reached, lateness_us=50 * SECOND_US)

    def live(self, size: int = 6) -> None:
        """Register, accept and process everything that is not there yet."""
        self.catch_up(STATEMENTS, lines(), size)


def lines() -> list[DocumentLine]:
    """Return documents, some late, some at one time."""
    found = []
    for number in range(1, 40):
        second = number * 7 - (number % 5) * 9
        xml = f"<i><k>{'xyz'[number * number % 3]}</k></i>"
        at_us = 1_000_000_000_000_000 + second * SECOND_US
        found.append(DocumentLine("S", xml.encode(), at_us, at_us + 10**9, key=str(number)))
    return [*found, tick(2_000_000_000_000_000)]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, str]]:
    with Broker(tmp_path_factory.mktemp("undisturbed")) as broker:
        broker.live()
        state = broker.found_lines()
    assert {query for query, _ in state} == set(STATEMENTS)
    return state


@pytest.mark.parametrize(("point", "visit"), some(product(POINTS, [1, 2, 3, 5]), 2))
def test_a_crash_at_a_commit_point_changes_nothing_that_is_given(
    tmp_path: Path, undisturbed: list[tuple[str, str]], point: str, visit: int
) -> None:
    crash = CrashAt(point, visit)
    with Broker(tmp_path, crash) as broker, suppress(Crash):
        broker.live()
    assert crash.has_crashed
    with Broker(tmp_path) as broker:
        broker.live()
        assert broker.found_lines() == undisturbed


@pytest.mark.parametrize("size", [1, 3, 40])
def test_batches_change_nothing_that_is_given(
    tmp_path: Path, undisturbed: list[tuple[str, str]], size: int
) -> None:
    with Broker(tmp_path) as broker:
        broker.live(size)
        assert broker.found_lines() == undisturbed


def test_notes_that_nothing_asks_for_any_more_are_gone(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        broker.live()
        # DISJOINT has no WITHIN, so that what it gave is asked for ever.
        assert {note.clause for note in broker.outbox.notes()} == {"DISJOINT"}


@pytest.mark.parametrize("name", ["burst", "some", "apart"])
def test_what_limits_cannot_look_back(tmp_path: Path, name: str) -> None:
    [query] = xscl.parse(STATEMENTS[name], id=name)
    with Broker(tmp_path) as broker, pytest.raises(LookBackError, match="depends on what it gave"):
        check_unread(broker.registry, query)


# -- for people --------------------------------------------------------------------------------


def test_an_explanation_says_what_is_given_of_the_matches() -> None:
    [query] = xscl.parse(STATEMENTS["burst"], id="burst")
    [view] = survey([query], lateness_us=0).queries
    assert view.given == (
        "rows over the matches of the last 1 minute for each k: one for each time at which a match"
        " ends",
        "of these where count() >= 3",
        "at most 1 within 100 seconds for each k",
        "what was given is remembered with its matches, also by a restart",
    )


def documents() -> Iterator[Document]:
    for number in (1, 2):
        at_us = number * SECOND_US
        xml = b"<i><k>x</k></i>"
        yield Document(number, "S", str(number), at_us, at_us, at_us, at_us - 1, xml)


def test_why_not_speaks_of_the_source_and_then_of_what_is_given() -> None:
    first, second = documents()
    [query] = xscl.parse("S//i->a LIMIT 1 PER 1 h GRACE 0 s", id="q")
    found = why_not(query, [second], lateness_us=0)
    assert found.kind == "given"
    assert "LIMIT gives it unless as many were given" in found.text
    [query] = xscl.parse("S//i->a WINDOW 1 h HAVING count() > 9 GRACE 0 s", id="q")
    found = why_not(query, [first, second], lateness_us=0)
    assert (found.kind, found.holds) == ("given", False)
    assert "HAVING does not hold of it, or others are in it too" in found.text
    [query] = xscl.parse("S//i->a WINDOW 0 s GRACE 0 s", id="q")
    found = why_not(query, [first], lateness_us=0)
    assert found.text == "q finds this match; it is in the rows of WINDOW"
    [query] = xscl.parse("S//x->a WINDOW 1 h GRACE 0 s", id="q")
    assert why_not(query, [first], lateness_us=0).kind != "given"
