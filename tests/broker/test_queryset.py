"""Queries come and go while documents flow, and nothing of the others shows."""

from __future__ import annotations

import random

import pytest
from oracle.lines import read_lines, render
from support.examples import examples, size
from support.runners import SOME_ENGINES

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine
from broker.matching.limits import MatchingLimits
from broker.matching.match import Match
from broker.matching.queries.registration import RegisteredQuery, SetChange
from joins.engines import EngineName

TEXTS = {
    "title": "S//i->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b",
    "both": "S//i->a JOIN {a/t = b/t AND a/u = b/u, 30 m} S//i->b",
    "ann": "S//i[u = 'x']",
    "chain": "(S//i->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b) FOLLOWED BY {b/u = c/u, 1 h} S//i->c",
    "pairs": "FROM S//i->a FOLLOWED BY {a/u = b/u, 20 m} S//i->b PUBLISH P",
    "reader": "P//i->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b",
}


def query(name: str, text: str | None = None) -> xscl.Query:
    (parsed,) = xscl.parse(text or TEXTS[name], id=name)
    return parsed


def documents(seed: int, count: int = 24) -> list[Document]:
    random_ = random.Random(seed)
    found: list[Document] = []
    watermark_us = -(1 << 63)
    for docid in range(1, count + 1):
        time_us = (docid * 5 + random_.randint(-10, 10)) * 60_000_000
        t, u = (random_.choice("xyz") for _ in range(2))
        xml = f"<i><t>{t}</t><u>{u}</u></i>".encode()
        key = str(docid)
        found.append(Document(docid, "S", key, time_us, time_us, time_us, watermark_us, xml))
        watermark_us = max(watermark_us, time_us)
    return found


def one(docid: int, second: int, xml: str) -> Document:
    time_us = second * 1_000_000
    return Document(docid, "S", str(docid), time_us, time_us, time_us, 0, xml.encode())


class Running:
    """An engine fed one document at a time."""

    def __init__(self, queries: list[RegisteredQuery], engine: EngineName) -> None:
        self.engine = Engine(queries, lateness_us=86_400_000_000, engine=engine)
        self.matches: list[Match] = []

    def feed(self, batch: list[Document]) -> None:
        xml = {one.docid: one.xml for one in batch}
        self.known = {**getattr(self, "known", {}), **xml}
        step = self.engine.process(
            self.engine.evaluate(batch), lambda ids: {i: self.known[i] for i in ids}
        )
        self.matches += read_lines(step.matches)

    def lines(self, query_id: str) -> list[str]:
        return [render(match) for match in self.matches if match.query == query_id]


@pytest.mark.parametrize("engine", SOME_ENGINES)
@pytest.mark.parametrize("seed", range(examples(1)))
def test_a_query_added_later_finds_what_its_registration_point_says(
    seed: int, engine: EngineName
) -> None:
    stream = documents(seed)
    for name in TEXTS:
        first = [RegisteredQuery(query("pairs"))] if name == "reader" else []
        late = Running(
            [*first, *([RegisteredQuery(query("title"))] if name != "title" else [])], engine
        )
        late.feed(stream[:10])
        late.engine.queries.add(RegisteredQuery(query(name), registration_point=10))
        late.feed(stream[10:17])
        late.feed(stream[17:])
        alone = Running([*first, RegisteredQuery(query(name), registration_point=10)], engine)
        alone.feed(stream)
        assert late.lines(name) == alone.lines(name), name


@pytest.mark.parametrize("engine", SOME_ENGINES)
def test_a_removed_query_finds_nothing_more_and_the_others_go_on(engine: EngineName) -> None:
    stream = documents(5)
    running = Running([RegisteredQuery(query(name)) for name in TEXTS], engine)
    running.feed(stream[:12])
    before = {name: running.lines(name) for name in TEXTS}
    running.engine.queries.remove("both")
    running.engine.queries.remove("reader")
    running.feed(stream[12:])
    undisturbed = Running([RegisteredQuery(query(name)) for name in TEXTS], engine)
    undisturbed.feed(stream)
    for name in TEXTS:
        expected = before[name] if name in ("both", "reader") else undisturbed.lines(name)
        assert running.lines(name) == expected, name


def test_removing_every_query_leaves_everything_as_new() -> None:
    running = Running([RegisteredQuery(query(name)) for name in TEXTS], "signatures")
    new = Engine([], lateness_us=0)
    for name in random.Random(1).sample(sorted(TEXTS), len(TEXTS)):
        running.engine.queries.remove(name)
    assert running.engine.plan == new.plan
    assert list(running.engine.classes()) == []
    assert running.engine.processor.strata == []
    assert running.engine.queries.catalog.names == {}


def test_a_stream_that_comes_to_be_published_is_read_one_stratum_later() -> None:
    stream = documents(2)
    running = Running([RegisteredQuery(query("reader"))], "signatures")
    assert running.engine.processor.strata == [0]
    running.engine.queries.add(RegisteredQuery(query("pairs")))
    assert running.engine.processor.strata == [0, 1]
    running.feed(stream)
    together = Running([RegisteredQuery(query(n)) for n in ("pairs", "reader")], "signatures")
    together.feed(stream)
    assert running.lines("reader") == together.lines("reader") != []
    running.engine.queries.remove("pairs")
    assert running.engine.processor.strata == [0]


def tuples(matches: list[Match]) -> list[tuple[list[int], str]]:
    return sorted(([d.docid for d in m.documents], repr(m.witnesses)) for m in matches)


PARAMETERISED = {
    "data": "S//i[u = $who]->a FOLLOWED BY {a/t = b/t, $within} S//i->b",
    "text": "S//i->a FOLLOWED BY {a/t = b/t AND a/u = $who, $within} S//i->b",
    "unlike": "S//i->a FOLLOWED BY {a/t = b/t AND a/u != $who, $within} S//i->b",
    "filter": "S//i[not(u = $who)]->a FOLLOWED BY {a/t = b/t, $within} S//i->b",
}


@pytest.mark.parametrize("name", PARAMETERISED)
def test_an_assignment_finds_what_the_query_with_its_values_finds(name: str) -> None:
    stream = documents(7)
    minute = 60_000_000
    running = Running([RegisteredQuery(query(name, PARAMETERISED[name]))], "signatures")
    for who, within in (
        ("x", 20 * minute),
        ("x", 40 * minute),
        ("y", 40 * minute),
        ("x", 20 * minute),
    ):
        running.engine.queries.assign(name, {"who": who, "within": within})
    running.feed(stream)
    for who, within in (("x", 20), ("x", 40), ("y", 40)):
        text = PARAMETERISED[name].replace("$who", f"'{who}'").replace("$within", f"{within} m")
        plain = Running([RegisteredQuery(query(name, text))], "signatures")
        plain.feed(stream)
        given = {"who": who, "within": within * minute}
        found = tuples([match for match in running.matches if match.parameters == given])
        assert found == tuples(plain.matches) != []


def test_readers_of_a_stream_reach_back_behind_its_longest_window() -> None:
    hour_us = 3_600_000_000
    published = query("P", "FROM S//i->a FOLLOWED BY {a/t = b/t, $w} S//i->b PUBLISH P")
    short, long = {"w": hour_us}, {"w": 5 * hour_us}
    pair = RegisteredQuery(published, 0, (short,))
    running = Running([pair, RegisteredQuery(query("reader"))], "signatures")
    assert running.engine.queries.retention_us == 2 * hour_us
    assert running.engine.follow(SetChange(assigned=[("P", long, 0)]))
    assert running.engine.queries.retention_us == 6 * hour_us


def test_an_assignment_that_is_taken_back_finds_nothing_more() -> None:
    running = Running([RegisteredQuery(query("data", PARAMETERISED["data"]))], "signatures")
    plan = running.engine.plan
    for who in "xyz":
        running.engine.queries.assign("data", {"who": who, "within": 3_600_000_000})
    assert running.engine.plan is plan, "an assignment asks nothing new of evaluation"
    for who in "xyz":
        running.engine.queries.unassign("data", {"who": who, "within": 3_600_000_000})
    running.feed(documents(3))
    assert running.matches == []


def test_many_assignments_are_one_class() -> None:
    running = Running([RegisteredQuery(query("data", PARAMETERISED["data"]))], "signatures")
    for i in range(size(1_000, 20_000)):
        running.engine.queries.assign("data", {"who": f"person {i}", "within": 3_600_000_000})
    running.engine.queries.assign("data", {"who": "x", "within": 3_600_000_000})
    running.feed([one(1, 0, "<i><t>1</t><u>x</u></i>"), one(2, 60, "<i><t>1</t><u>y</u></i>")])
    assert [match.parameters["who"] for match in running.matches] == ["x"]
    assert len({number for number, _, _ in running.engine.classes()}) == 1


EXCLUDING = "S//i->a FOLLOWED BY {{a/t = b/t AND a/u != {}, 1 h}} S//i->b"


@pytest.mark.parametrize("engine", SOME_ENGINES)
def test_queries_that_exclude_words_of_their_own_are_one_class(engine: EngineName) -> None:
    texts = {word: EXCLUDING.format(f"'{word}'") for word in ("x", "y", "")}
    texts["either"] = EXCLUDING.format("'x' AND a/u != 'y'")
    texts["asked"] = EXCLUDING.format("'x' AND a/u = 'y'")
    running = Running([RegisteredQuery(query(name, text)) for name, text in texts.items()], engine)
    parameterised = RegisteredQuery(query("given", EXCLUDING.format("$word")))
    running.engine.queries.add(parameterised)
    for word in ("x", "z", 1.5):
        running.engine.queries.assign("given", {"word": word})
    running.feed([one(1, 0, "<i><t>1</t><u>x</u></i>"), one(2, 60, "<i><t>1</t></i>")])
    running.feed([one(3, 120, "<i><t>2</t><u>y</u></i>"), one(4, 180, "<i><t>2</t></i>")])
    running.feed([one(5, 240, "<i><t>3</t><u/></i>"), one(6, 300, "<i><t>3</t></i>")])
    left_out = {name: {1, 3, 5} for name in texts}
    for match in running.matches:
        if match.query != "given":
            left_out[match.query].remove(match.documents[0].docid)
    assert left_out == {"x": {1}, "y": {3}, "": {5}, "either": {1, 3}, "asked": {1, 5}}
    given = {(m.parameters["word"], m.documents[0].docid) for m in running.matches if m.parameters}
    assert given == {("x", 3), ("x", 5), ("z", 1), ("z", 3), ("z", 5)}
    # The number is compared as a number, behind the join; all others differ in constants alone.
    assert len({number for number, _, _ in running.engine.classes()}) == 2


def registered(names: str, **points: int) -> list[RegisteredQuery]:
    return [RegisteredQuery(query(name), points.get(name, 0)) for name in names.split()]


def becoming(names: str, **points: int) -> SetChange:
    return SetChange(registered(names, **points), gone=set(TEXTS).difference(names.split()))


@pytest.mark.parametrize("engine", SOME_ENGINES)
def test_an_engine_that_follows_finds_what_one_made_anew_finds(engine: EngineName) -> None:
    stream = documents(8)
    running = Running(registered("title both pairs"), engine)
    running.feed(stream[:8])
    before = len(running.lines("both"))
    versions = [
        becoming("title pairs reader chain", reader=8, chain=8),
        becoming("title reader chain both", reader=8, chain=8, both=16),
    ]
    for i, version in enumerate(versions):
        assert running.engine.follow(version)
        running.feed(stream[8 * (i + 1) : 8 * (i + 2)])
    # `reader` has lost its publisher in the last version, and `both` came back with a later point.
    anew = Running(list(versions[1].queries), engine)
    anew.feed(stream)
    for name in ("title", "chain"):
        assert running.lines(name) == anew.lines(name), name
    assert running.lines("both")[before:] == anew.lines("both")
    middle = Running(list(versions[0].queries), engine)
    middle.feed(stream[:16])
    found = [line for line in running.lines("reader") if line in middle.lines("reader")]
    assert found == middle.lines("reader") != []


@pytest.mark.parametrize("engine", SOME_ENGINES)
def test_a_nested_query_with_a_new_text_finds_what_one_that_was_never_another_finds(
    engine: EngineName,
) -> None:
    text = "(S//i->a JOIN {a/u = b/u, 1 h} S//i[u->v]->b) FOLLOWED BY {v = c/u, 1 h} S//i->c"
    again = RegisteredQuery(query("chain", text), 12)
    stream = documents(9)
    running = Running(registered("chain"), engine)
    running.feed(stream[:12])
    before = len(running.lines("chain"))
    assert running.engine.follow(SetChange([again]))
    running.feed(stream[12:])
    anew = Running([again], engine)
    anew.feed(stream)
    assert running.lines("chain")[before:] == anew.lines("chain") != []


@pytest.mark.parametrize("kept", [0, 1_000])
def test_what_a_query_published_stays_for_its_readers_when_it_is_gone(kept: int) -> None:
    stream = documents(5, count=40)
    texts = {**TEXTS, "more": "FROM S//i->a JOIN {a/t = b/t, 2 h} S//i->b PUBLISH Q"}
    names = ("pairs", "reader", "more")
    queries = [RegisteredQuery(query(name, texts[name])) for name in names]
    running = Running(queries, "signatures")
    running.engine = Engine(queries, lateness_us=0, limits=MatchingLimits(published=kept))
    running.feed(stream[:20])
    assert running.engine.follow(SetChange(gone=["pairs"]))
    before = len(running.matches)
    for document in stream[20:]:
        running.feed([document])
    later = [match for match in running.matches[before:] if match.query == "reader"]
    assert {match.documents[0].docid <= 20 < match.documents[1].docid for match in later} == {True}


READS_PUBLISHED = [
    *(
        f"P//i FOLLOWED BY {{, 1 h}} P//i SAME (//t) MATCH {strategy} GRACE 0 s"
        for strategy in ("NEXT", "STRICT", "PARTITION")
    ),
    "P//i[t->x] WINDOW 2 h BY x HAVING count() >= 2",
    "P//i FOLLOWED BY {, 1 h} P//i WINDOW 2 h GRACE 4 h",
    "SELECT COMPRESSED FROM P//i[t->v]+ WITHIN 1 h GRACE 5 h",
    "P//i FOLLOWED BY {, 1 h} P//i UNLESS {, 3 h} P//k GRACE 4 h",
    "P//i FOLLOWED BY {, 1 h} P//k LOSS 0.1 DELAY exp(30 min) FOLLOWED BY {, 1 h} P//i GRACE 2 h",
]


@pytest.mark.parametrize("text", READS_PUBLISHED)
def test_what_has_been_published_is_read_on_when_it_is_much(text: str) -> None:
    stream = documents(5, count=20)
    made, reader = query("made", "SELECT * FROM S//i->a PUBLISH P"), query("reader", text)
    found = []
    for kept in (0, 1_000):
        queries = [RegisteredQuery(each) for each in (made, reader)]
        running = Running(queries, "signatures")
        running.engine = Engine(queries, lateness_us=0, limits=MatchingLimits(published=kept))
        for start in range(0, len(stream), 4):
            running.feed(stream[start : start + 4])
        found.append(running.lines("reader"))
    assert found[0] == found[1] != []


def test_equal_nested_queries_remember_their_tuples_once() -> None:
    stream = documents(5, count=40)
    found, remembered = [], []
    for copies in (1, 5):
        queries = [RegisteredQuery(query(f"chain{i}", TEXTS["chain"])) for i in range(copies)]
        running = Running(queries, "signatures")
        running.feed(stream)
        of_each = [
            [(m.position, m.roots) for m in running.matches if m.query == registered.query.id]
            for registered in queries
        ]
        assert all(own == of_each[0] != [] for own in of_each)
        found.append(of_each[0])
        remembered.append(running.engine.figures()["documents"])
    assert found[0] == found[1]
    assert remembered[0] == remembered[1] > len(stream)


@pytest.mark.parametrize("engine", SOME_ENGINES)
def test_equal_nested_queries_see_documents_after_their_own_points(engine: EngineName) -> None:
    stream = documents(5, count=40)
    queries = [
        RegisteredQuery(query(f"chain{point}", TEXTS["chain"]), point) for point in (0, 9, 20)
    ]
    together = Running(queries, engine)
    together.feed(stream)
    for registered in queries:
        alone = Running([registered], engine)
        alone.feed(stream)
        own = [m for m in together.matches if m.query == registered.query.id]
        assert [render(m) for m in own] == [render(m) for m in alone.matches] != []


@pytest.mark.parametrize("engine", SOME_ENGINES)
def test_a_later_query_may_test_what_nobody_compared_before(engine: EngineName) -> None:
    text = "S//i->a FOLLOWED BY {a/t = b/t AND %s, 1 h} S//i->b"
    shown = "SELECT x, y FROM S//i[t->s][u->x] FOLLOWED BY {s = r, 1 h} S//i[t->r][u->y]"
    stream = documents(9)
    running = Running([RegisteredQuery(query("shown", shown))], engine)
    running.feed(stream[:12])
    later = [
        RegisteredQuery(query(str(i), text % residual), 12)
        for i, residual in enumerate(["a/u != b/u", "a/u != 'x'", "b/u != 'x'"])
    ]
    assert running.engine.follow(SetChange(later))
    running.feed(stream[12:])
    anew = Running(later, engine)
    anew.feed(stream)
    for one in later:
        assert running.lines(one.query.id) == anew.lines(one.query.id) != []


def test_an_engine_says_when_it_lacks_the_state_to_follow() -> None:
    running = Running(registered("title"), "signatures")
    running.feed(documents(1)[:10])
    assert not running.engine.follow(becoming("title both", both=9))
    assert running.engine.follow(becoming("title both", both=10))
    assert not running.engine.follow(becoming("title both"))
    assert "both" in running.engine.queries


def test_following_the_same_set_changes_nothing() -> None:
    running = Running(registered("title both pairs reader chain"), "signatures")
    before = running.engine.plan, list(running.engine.classes())
    assert running.engine.follow(becoming("title both pairs reader chain"))
    assert (running.engine.plan, list(running.engine.classes())) == before


def test_an_assignment_sees_documents_after_its_own_point() -> None:
    stream = documents(7)
    parsed = query("data", PARAMETERISED["data"])
    values = {"who": "x", "within": 3_600_000_000}
    late = RegisteredQuery(parsed, 2, (values,), (12,))
    running = Running([late], "signatures")
    running.feed(stream)
    assert running.matches
    assert all(d.docid > 12 for match in running.matches for d in match.documents)
    assert running.engine.follow(SetChange([RegisteredQuery(parsed, 2)]))
    assert list(running.engine.classes()) == []


def test_single_assignments_come_and_go() -> None:
    parsed = query("data", PARAMETERISED["data"])
    hour, day = ({"who": "x", "within": us} for us in (3_600_000_000, 86_400_000_000))
    running = Running([RegisteredQuery(parsed, 0, (hour,), (0,))], "signatures")
    running.feed(documents(7))
    assert not running.engine.follow(SetChange(assigned=[("data", day, 3)]))
    assert running.engine.follow(SetChange(assigned=[("data", day, 24), ("data", hour, 0)]))
    assert running.engine.queries.retention_us == 86_400_000_000
    assert running.engine.follow(SetChange(assigned=[("data", day, None), ("data", day, None)]))
    assert running.engine.queries.retention_us == 3_600_000_000
    assert running.engine.follow(SetChange(assigned=[("data", hour, None)]))
    assert list(running.engine.classes()) == []


@pytest.mark.parametrize("asked", ["u = $who", "u > $who"])
def test_operands_are_kept_for_the_longest_window_that_is_asked_for(asked: str) -> None:
    hour_us = 3_600_000_000
    inner = f"(S//i[{asked}]->a FOLLOWED BY {{a/t = b/t, $within}} S//i->b)"
    parsed = query("nested", f"{inner} FOLLOWED BY {{b/t = c/t, 1 h}} S//i->c")
    queries = Running([RegisteredQuery(parsed)], "signatures").engine.queries
    hour, day, none = (
        {"who": who, "within": hours * hour_us} for who, hours in (("1", 1), ("1", 24), ("-", 1))
    )
    for values in (hour, day, none):
        queries.assign("nested", values)
    assert queries.retention_us == 25 * hour_us
    queries.unassign("nested", day)
    assert queries.retention_us == 2 * hour_us
    queries.unassign("nested", none)
    queries.unassign("nested", hour)
    assert [*queries.fan_out.uses()] == []
    queries.assign("nested", none)
    queries.unassign("nested", none)
    assert not queries._members["nested"].handed_on._shared
