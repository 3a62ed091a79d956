"""A running broker's engine follows the registry, and everybody numbers variables alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from oracle.lines import read_lines

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine
from broker.registry.queries import QueryState, Registry
from broker.registry.registered import Engines, check_among, published_streams
from broker.registry.subscription import Destination

DAY_US = 86_400_000_000


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "registry.db")


def register(registry: Registry, name: str, text: str, point: int = 0) -> int:
    (query,) = xscl.parse(text, id=name)
    registry.register(query.id, text, version=query.version, point=point)
    return registry.revision()


def made(registry: Registry) -> Engines:
    return Engines(registry, lateness_us=DAY_US)


def test_the_plan_of_a_version_is_that_of_its_engine(registry: Registry) -> None:
    engines = made(registry)
    first = register(registry, "a", "S//i->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b")
    second = register(registry, "b", "S//i[u = 'x']->a FOLLOWED BY {a/t = b/t, 1 h} T//i->b")
    for version in (first, second, first):
        assert engines.plan(version) == engines.make(version).plan


def test_witnesses_of_one_version_are_understood_by_the_engine_that_followed(
    registry: Registry,
) -> None:
    engines = made(registry)
    first = register(registry, "gone", "T//a/b/c->a JOIN {a = b, 1 h} T//d->b")
    running = engines.make(first)
    registry.set_state("gone", QueryState.REMOVED, effective=0)
    second = register(registry, "q", "S//i->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b")
    assert engines.follow(running, second)
    planned = engines.plan(second)
    assert planned == running.plan == engines.make(second).plan
    stream = [Document(n, "S", str(n), n, n, n, n - 1, b"<i><t>x</t></i>") for n in (1, 2)]
    other = engines.make(second)
    step = running.process(other.evaluate(stream), lambda ids: {d.docid: d.xml for d in stream})
    assert [[d.docid for d in match.documents] for match in read_lines(step.matches)] == [[1, 2]]


PARAMETERISED = "S//i[u = $who]->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b"
PULL = Destination.parse("pull")


def assigned(engine: Engine) -> set[str]:
    return {subscriber.parameters["who"] for _, _, subscriber in engine.classes()}


def test_an_engine_follows_single_subscriptions(registry: Registry) -> None:
    engines = made(registry)
    running = engines.make(register(registry, "q", PARAMETERISED))
    first = registry.subscribe("q", PULL, point=0, parameters={"who": "Ann"})
    registry.subscribe("q", PULL, point=0, parameters={"who": "Bob"})
    assert engines.follow(running, registry.revision())
    assert assigned(running) == {"Ann", "Bob"}
    registry.subscriptions.remove(first.id, until=0)
    assert engines.follow(running, registry.revision())
    assert assigned(running) == {"Bob"} == assigned(engines.make(registry.revision()))


def test_who_remains_of_equal_assignments_keeps_what_is_remembered(registry: Registry) -> None:
    engines = made(registry)
    register(registry, "q", PARAMETERISED)
    first = registry.subscribe("q", PULL, point=0, parameters={"who": "x"})
    running = engines.make(registry.revision())
    registry.subscribe("q", PULL, point=1, parameters={"who": "x"})
    assert engines.follow(running, registry.revision())
    xml = b"<i><t>x</t><u>x</u></i>"
    stream = [Document(n, "S", str(n), n, n, n, n - 1, xml) for n in range(1, 5)]

    def found(documents: list[Document]) -> list[list[int]]:
        witnesses = running.evaluate(documents)
        step = running.process(witnesses, lambda ids: {d.docid: d.xml for d in stream})
        return sorted([d.docid for d in match.documents] for match in read_lines(step.matches))

    assert found(stream[:3]) == [[1, 2], [1, 3], [2, 3]]
    registry.subscriptions.remove(first.id, until=3)
    assert engines.follow(running, registry.revision()), "nothing that it needs is missing"
    assert found(stream[3:]) == [[2, 4], [3, 4]]


@pytest.mark.parametrize("text", ["S//i[u > $w]->a", "S//i[u = $w]->a", "S//i[t = 'x']->a"])
def test_a_duration_is_no_number_of_another_text(registry: Registry, text: str) -> None:
    engines = made(registry)
    register(registry, "q", "S//i->a FOLLOWED BY {a/t = b/t, $w} S//i->b")
    values = xscl.assignment(*xscl.parse("S FOLLOWED BY {, $w} S"), {"w": "1 h"})
    registry.subscribe("q", PULL, point=0, parameters=values)
    running = engines.make(registry.revision())
    version = register(registry, "q", text)
    assert engines.follow(running, version)
    values_of = [dict(s.parameters) for _, _, s in engines.make(version).classes()]
    assert [dict(s.parameters) for _, _, s in running.classes()] == values_of
    assert all(not values for values in values_of)


WINDOWED = "S//i[u = $who]->a FOLLOWED BY {a/t = b/t, $within} S//i->b"


def test_what_one_assignment_remembers_does_for_others_that_look_back(registry: Registry) -> None:
    engines = made(registry)
    register(registry, "q", WINDOWED)

    def subscribe(who: str, within: int, since: int | None = None) -> bool:
        registry.subscribe(
            "q", PULL, point=3, since=since, parameters={"who": who, "within": within}
        )
        return engines.follow(running, registry.revision())

    def found(documents: list[Document]) -> list[tuple[str, list[int]]]:
        witnesses = running.evaluate(documents)
        step = running.process(witnesses, lambda ids: {d.docid: d.xml for d in stream})
        matches = [
            (m.parameters["who"], [d.docid for d in m.documents]) for m in read_lines(step.matches)
        ]
        return sorted(matches)

    registry.subscribe("q", PULL, point=1, parameters={"who": "Ann", "within": DAY_US})
    running = engines.make(registry.revision())
    stream = [
        Document(n, "S", str(n), n, n, n, n - 1, f"<i><t>x</t><u>{who}</u></i>".encode())
        for n, who in enumerate(("Bob", "Ann", "Bob", "Eve"), 1)
    ]
    assert found(stream[:3]) == [("Ann", [2, 3])]
    assert subscribe("Bob", DAY_US, since=1)
    assert found(stream[3:]) == [("Ann", [2, 4]), ("Bob", [3, 4])]
    assert not subscribe("Bob", DAY_US, since=0), "no assignment has seen the first document"
    assert not subscribe("Bob", 2 * DAY_US, since=1), "none has so wide a window"


def test_subscriptions_to_another_text_of_a_query_wait_for_it(registry: Registry) -> None:
    engines = made(registry)
    old = register(registry, "q", PARAMETERISED)
    running = engines.make(old)
    new = register(registry, "q", PARAMETERISED.replace("$who", "$name"))
    registry.subscribe("q", PULL, point=0, parameters={"name": "Ann"})
    assert engines.follow(running, old)
    assert list(running.classes()) == list(engines.make(old).classes()) == []
    assert engines.follow(running, new)
    assert list(running.classes()) == []
    assert engines.follow(running, registry.revision())
    assert [s.parameters for _, _, s in running.classes()] == [{"name": "Ann"}]


def test_publishers_are_checked_as_the_registry_has_them(registry: Registry) -> None:
    def text(name: str, reads: str) -> str:
        return f"FROM {reads}//i->a FOLLOWED BY {{a/t = b/t, 1 h}} S//i->b PUBLISH {name}"

    def check(name: str, query: str) -> list[str]:
        try:
            check_among(registry, *xscl.parse(query, id=name))
        except xscl.XsclError as error:
            return [diagnostic.code for diagnostic in error.diagnostics]
        return []

    register(registry, "one", text("One", "S"))
    register(registry, "two", text("Two", "One"))
    assert check("three", text("One", "S")) == ["XS703"]
    assert check("one", text("One", "S")) == []
    assert check("one", text("One", "Two")) == ["XS704"]
    assert published_streams(registry) == {"One", "Two"}
    registry.set_state("two", QueryState.PAUSED, effective=0)
    assert check("one", text("One", "Two")) == []
    register(registry, "one", text("Other", "S"))
    assert published_streams(registry) == {"Other"}
    assert check("three", text("One", "S")) == []
