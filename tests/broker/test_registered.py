"""A running broker's engine follows the registry, and everybody numbers variables alike."""

from __future__ import annotations

from pathlib import Path

import pytest

import xscl
from broker.document import Document
from broker.registered import Engines
from broker.registry import QueryState, Registry

DAY_US = 86_400_000_000


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    return Registry(tmp_path / "registry.db")


def register(registry: Registry, name: str, text: str, point: int = 0) -> int:
    (query,) = xscl.parse(text, id=name)
    registry.register(query.id, text, version=query.version, point=point)
    return registry.revision()


def made(registry: Registry) -> Engines:
    return Engines(registry, lateness_us=DAY_US, engine="signatures")


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
    assert [[d.docid for d in match.documents] for match in step.matches] == [[1, 2]]
