"""What a restart joins again of documents whose matches are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from support.budget_runs import Running, Way, documents
from support.budgets import UNLIMITED

from broker.matching.boxes.columns import Ints
from broker.matching.hits import Hits
from broker.matching.outcomes.gathered import Gathered
from joins.engines import ENGINES
from joins.memory.tupletable import ClassTuple

TEXTS = {
    "bomb": "S//i->a JOIN {a/lang = b/lang, 1 d} S//i->b",
    "product": "S//i->a JOIN {a/t != b/t, 1 d} S//i->b",
    "filter": "S//i[lang = 'en']",
    "reader": "pairs->p FOLLOWED BY {p//t = x/t, 1 d} S//i->x",
}
READ = {
    "publisher": "FROM S//i->a FOLLOWED BY {a/t = b/t, 20 m} S//i->b PUBLISH pairs",
    "nested": "(S//i->a JOIN {a/t = b/t, 9 m} S//i->b) JOIN {b/lang = c/lang, 1 d} S//i->c",
}
WAYS = [*(Way(engine) for engine in ENGINES), Way(shards=2)]


class Counting:
    """Counts the tuples that an engine's join yields."""

    def __init__(self, running: Running) -> None:
        self._yield = running.engine.processor.tuples
        self.count = 0
        running.engine.processor.tuples = self.tuples  # type: ignore[method-assign]

    def tuples(self, stratum: int) -> Iterator[ClassTuple]:
        for found in self._yield(stratum):
            self.count += 1
            yield found


def absorbed(texts: dict[str, str], way: Way) -> tuple[int, Running]:
    running, stream = Running(texts, UNLIMITED, way), documents()
    counting = Counting(running)
    for start in range(0, 40, 20):
        part = stream[start : start + 20]
        running.engine.absorb(running.engine.evaluate(part), look_up)
    return counting.count, running


def look_up(docids: Iterable[int]) -> dict[int, bytes]:
    xml = {one.docid: one.xml for one in documents()}
    return {docid: xml[docid] for docid in docids}


@pytest.mark.parametrize("way", [Way(), Way(shards=2)], ids=str)
def test_tuples_that_nothing_reads_are_not_made_again(way: Way) -> None:
    publisher = {"publisher": READ["publisher"]}
    few, _ = absorbed(publisher, way)
    as_few, _ = absorbed(TEXTS | publisher, way)
    assert as_few == few > 0


@pytest.mark.parametrize("way", [Way("mmqjp-views"), Way(shards=2)], ids=str)
def test_what_is_read_is_there_after_a_restart(way: Way) -> None:
    stream, texts = documents(), TEXTS | READ
    whole = Running(texts, UNLIMITED, way).feed(stream, 20)
    _, restarted = absorbed(texts, way)
    restarted.feed(stream, 20, 40)
    assert restarted.lines == [line for line in whole.lines if line[1] > 40]
    assert {query for query, *_ in restarted.lines} == texts.keys()


def test_what_has_been_published_is_not_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"publisher": READ["publisher"], "reader": TEXTS["reader"]}
    stream = documents()
    whole, restarted = Running(texts, UNLIMITED), Running(texts, UNLIMITED)
    steps = [
        whole.engine.process(whole.engine.evaluate(stream[a:b]), look_up)
        for a, b in ((0, 40), (40, 60))
    ]
    with monkeypatch.context() as patched:
        patched.setattr(
            "broker.matching.rendering.matches.build",
            lambda *given: pytest.fail("an output is made"),
        )
        witnesses = restarted.engine.evaluate(stream[:40])
        restarted.engine.absorb(witnesses, look_up, steps[0].published)
    found = restarted.engine.process(restarted.engine.evaluate(stream[40:]), look_up)
    assert steps[0].published
    assert found.matches == steps[1].matches
    assert {match.query for match in found.matches} == texts.keys()


@pytest.mark.parametrize(("limit", "is_gathered"), [("", False), (" LIMIT 1 PER 1 h", True)])
def test_matches_of_which_nothing_further_is_asked_are_not_gathered(
    monkeypatch: pytest.MonkeyPatch, limit: str, is_gathered: bool
) -> None:
    gathered: list[object] = []
    add = Gathered.add

    def noting(self: Gathered, hits: Hits) -> Ints:
        gathered.append(hits)
        return add(self, hits)

    monkeypatch.setattr(Gathered, "add", noting)
    running = Running({"filter": TEXTS["filter"] + limit}, UNLIMITED, Way())
    running.feed(documents(), 20)
    assert running.lines
    assert bool(gathered) == is_gathered
