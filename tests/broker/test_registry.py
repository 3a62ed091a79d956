from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from broker.registry.file import _STEPS, RegistryError
from broker.registry.queries import QueryState, Registry
from broker.registry.subscription import (
    Destination,
    DestinationKind,
    Digest,
    Options,
    Subscription,
    SubscriptionError,
    SubscriptionState,
)
from broker.settings.database import connect

HOOK = Destination.parse("https://example.org/hook")
PULL = Destination.parse("pull")


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    registry = Registry(tmp_path / "registry.db")
    yield registry
    registry.close()


def test_queries_are_counted_as_they_are_now(registry: Registry) -> None:
    for name in ("a", "b", "c", "d"):
        registry.register(name, "S//x->x", version="1", point=0)
    registry.set_state("b", QueryState.PAUSED, effective=0)
    registry.set_state("c", QueryState.REMOVED, effective=0)
    counts = registry.state_counts()
    assert counts == {QueryState.ACTIVE: 2, QueryState.PAUSED: 1, QueryState.REMOVED: 1}
    assert len(registry.queries(states=tuple(QueryState))) == sum(counts.values())


def test_a_query_is_registered_once_and_replaced_by_a_new_version(registry: Registry) -> None:
    first = registry.register("Q1", "S//a", version="v1", point=10)
    assert registry.register("Q1", "S//a", version="v1", point=20) == first
    second = registry.register("Q1", "S//b", version="v2", point=30)
    assert second.revision > first.revision
    assert [query.point for query in registry.queries()] == [30]
    assert [query.version for query in registry.history("Q1")] == ["v1", "v2"]


def test_the_registry_can_be_read_as_it_was(registry: Registry) -> None:
    registry.register("Q1", "S//a", version="v1", point=0)
    registry.register("Q2", "S//b", version="v1", point=0)
    then = registry.revision()
    registry.set_state("Q1", QueryState.PAUSED, effective=5, reason="too many matches")
    registry.register("Q2", "S//c", version="v2", point=6)
    assert [(q.id, q.version) for q in registry.queries(as_of=then)] == [("Q1", "v1"), ("Q2", "v1")]
    assert [(q.id, q.version) for q in registry.queries()] == [("Q2", "v2")]
    paused = registry.query("Q1")
    assert (paused.state, paused.effective, paused.reason) == ("paused", 5, "too many matches")


def test_the_same_text_leaves_a_query_paused_and_another_one_does_not(registry: Registry) -> None:
    registry.register("Q1", "S//a", version="v1", point=0)
    registry.set_state("Q1", QueryState.PAUSED, effective=5, reason="too many matches")
    then = registry.revision()
    again = registry.register("Q1", "S//a", version="v1", point=7, since=0)
    assert (again.state, again.effective, again.reason) == ("paused", 5, "too many matches")
    assert registry.backfills() == []
    assert registry.queries(as_of=then) == registry.queries() == []
    assert registry.register("Q1", "S//b", version="v2", point=7).state is QueryState.ACTIVE


def test_a_removed_query_can_only_be_registered_anew(registry: Registry) -> None:
    registry.register("Q1", "S//a", version="v1", point=0)
    registry.set_state("Q1", QueryState.REMOVED, effective=1)
    with pytest.raises(RegistryError):
        registry.set_state("Q1", QueryState.ACTIVE, effective=2)
    assert registry.register("Q1", "S//a", version="v1", point=3).state is QueryState.ACTIVE


REGISTER_TWENTY = """
import sys
from broker.registry.queries import Registry
registry = Registry(sys.argv[1])
for number in range(20):
    registry.register(f"Q{sys.argv[2]}.{number}", "S//a", version="v", point=number)
registry.close()
"""


def test_several_processes_make_one_order_of_revisions(tmp_path: Path) -> None:
    # Also the making of the file is theirs: they all begin at once.
    processes = [
        subprocess.Popen([sys.executable, "-c", REGISTER_TWENTY, tmp_path / "r.db", str(start)])
        for start in range(4)
    ]
    assert [process.wait() for process in processes] == [0] * 4
    registry = Registry(tmp_path / "r.db")
    queries = registry.queries()
    assert len({query.revision for query in queries}) == len(queries) == registry.revision() == 80
    registry.close()


def test_subscriptions_with_equal_values_share_an_assignment(registry: Registry) -> None:
    registry.subscribe("Q1", HOOK, point=9, parameters={"who": "Ann", "within": 1})
    registry.subscribe("Q1", PULL, point=4, parameters={"within": 1, "who": "Ann"})
    registry.subscribe("Q1", PULL, point=5, parameters={"within": 1.0, "who": "Ann"})
    assert list(registry.subscriptions.assignments("Q1")) == [
        ('{"who":"Ann","within":1.0}', 5),
        ('{"who":"Ann","within":1}', 4),
    ]


def test_assignments_are_read_as_of_a_revision(registry: Registry) -> None:
    early = registry.subscribe("Q1", PULL, point=4, parameters={"who": "Ann"})
    first = registry.revision()
    registry.subscribe("Q1", PULL, point=6, parameters={"who": "Ann"})
    registry.subscribe("Q1", PULL, point=6, parameters={"who": "Bob"})
    second = registry.revision()
    registry.subscriptions.remove(early.id, until=9)
    third = registry.revision()

    def points(as_of: int | None = None) -> list[int]:
        return [point for _, point in registry.subscriptions.assignments("Q1", as_of=as_of)]

    assert (points(first), points(second), points(third), points()) == ([4], [4, 6], [6, 6], [6, 6])
    ann, bob = (("Q1", f'{{"who":"{name}"}}') for name in ("Ann", "Bob"))
    changed = registry.subscriptions.changed_assignments
    assert list(changed(first, second)) == [(*ann, 4), (*bob, 6)]
    assert list(changed(second, first)) == [(*ann, 4), (*bob, None)]
    assert list(changed(second, third)) == [(*ann, 6)]
    assert list(changed(third, third)) == []


def test_subscriptions_end_with_their_query_in_one_change(registry: Registry) -> None:
    registry.register("Q1", "S//a", version="v", point=0)
    made = registry.subscribe("Q1", HOOK, point=0, parameters={"who": "Ann"})
    before = registry.revision()
    registry.set_state("Q1", QueryState.REMOVED, effective=7)
    assert registry.revision() == before + 1
    assert registry.subscriptions.get(made.id).until == 7
    assert list(registry.subscriptions.assignments("Q1")) == []
    assert list(registry.subscriptions.assignments("Q1", as_of=before)) == [('{"who":"Ann"}', 0)]
    assert (registry.subscriptions.count("Q1"), registry.subscriptions.counts()) == (0, {})
    registry.register("Q1", "S//a", version="v", point=9)
    registry.set_state("Q1", QueryState.REMOVED, effective=11)
    assert registry.subscriptions.get(made.id).until == 7


def test_options_and_destinations_come_back_as_they_were_given(registry: Registry) -> None:
    options = Options(digest=Digest.DAILY, batch_max=7, rate_per_s=2.5, owner="o@example.org")
    made = registry.subscribe("Q1", HOOK, point=3, options=options)
    again = registry.subscriptions.get(made.id)
    assert (again.options, again.destination, again.point) == (options, HOOK, 3)
    assert again.secrets[0].value.startswith("whsec_")


def test_only_webhooks_have_a_key(registry: Registry) -> None:
    assert registry.subscribe("Q1", PULL, point=0).secrets == ()


def test_an_old_key_ends_with_the_overlap(tmp_path: Path) -> None:
    now = [1_000]
    registry = Registry(tmp_path / "r.db", now_us=lambda: now[0])
    made = registry.subscribe("Q1", HOOK, point=0)
    new = registry.subscriptions.rotate_secret(made.id, overlap=timedelta(microseconds=50))
    values = [secret.value for secret in registry.subscriptions.get(made.id).secrets]
    assert values == [new, made.secrets[0].value]
    now[0] += 51
    assert [secret.value for secret in registry.subscriptions.get(made.id).secrets] == [new]
    registry.close()


def test_changes_are_read_from_where_the_reader_stopped(registry: Registry) -> None:
    made = [registry.subscribe("Q1", HOOK, point=0) for _ in range(5)]
    first = registry.subscriptions.changed_sent(0, limit=3)
    rest = registry.subscriptions.changed_sent(first[-1].revision, first[-1].id)
    assert [each.id for each in [*first, *rest]] == [each.id for each in made]
    registry.subscriptions.remove(made[0].id, until=0)
    (changed,) = registry.subscriptions.changed_sent(rest[-1].revision, rest[-1].id)
    assert (changed.id, changed.state) == (made[0].id, SubscriptionState.REMOVED)


def test_who_sends_hears_nothing_of_subscriptions_that_pull(registry: Registry) -> None:
    pulled = [Subscription(f"sub_{n}", "Q1", "{}", PULL, 0) for n in range(3)]
    sent = [Subscription(f"sub_{n}", "Q1", "{}", HOOK, 0) for n in (9, 7, 8)]
    registry.subscriptions.add([*pulled, *sent])
    found = registry.subscriptions.changed_sent(0, limit=2)
    found += registry.subscriptions.changed_sent(found[-1].revision, found[-1].id)
    assert [each.id for each in found] == ["sub_7", "sub_8", "sub_9"]
    registry.subscriptions.remove("sub_1", until=0)
    assert registry.subscriptions.changed_sent(found[-1].revision, found[-1].id) == []


def test_many_subscriptions_are_added_in_one_transaction(registry: Registry) -> None:
    many = [Subscription(f"sub_{n}", "Q1", "{}", PULL, 0) for n in range(1_000)]
    assert registry.subscriptions.add(many) == 1_000
    assert registry.subscriptions.add(many) == 0
    assert registry.revision() == 2


@pytest.mark.parametrize("text", ['{"batch_max": 0}', '{"colour": 1}', "[]", '{"digest": "x"}'])
def test_options_that_cannot_be_are_refused(text: str) -> None:
    with pytest.raises(SubscriptionError):
        Options.parse(text)


@pytest.mark.parametrize(
    "text", ["https://", "http:///path", "https://a b/", "ftp://x", "", "x", "https://u:p@h/"]
)
def test_a_destination_that_cannot_be_reached_is_refused(text: str) -> None:
    with pytest.raises(SubscriptionError):
        Destination.parse(text)


def test_a_destination_is_written_as_it_is_read() -> None:
    for text in ("https://a.example/x?y=1", "ann@example.org", "pull", "apprise:slack://x"):
        assert str(Destination.parse(text)) == text
    assert Destination.parse("pull").kind is DestinationKind.PULL


def test_nothing_is_said_of_a_change_that_the_disk_did_not_take(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    registry = Registry(tmp_path / "registry.db")
    # A constraint that is looked at when a transaction ends fails where a full disk does.
    registry._file.db.executescript("""
        PRAGMA foreign_keys = ON;
        CREATE TABLE room (id INTEGER PRIMARY KEY);
        CREATE TABLE page (room INTEGER REFERENCES room DEFERRABLE INITIALLY DEFERRED);
        CREATE TRIGGER full AFTER INSERT ON query BEGIN INSERT INTO page VALUES (1); END;
    """)
    with caplog.at_level("INFO"), pytest.raises(sqlite3.IntegrityError):
        registry.register("q", "S//a", version="v1", point=0)
    assert registry.queries() == []
    assert "the query is active" not in caplog.text
    registry._file.db.execute("DROP TRIGGER full")
    with caplog.at_level("INFO"):
        registry.register("q", "S//a", version="v1", point=0)
    assert "the query is active from document 1 on" in caplog.text
    registry.close()


def test_look_backs_of_the_format_before_are_of_the_statement_that_they_name(
    tmp_path: Path,
) -> None:
    path = tmp_path / "registry.db"
    db = connect(path, _STEPS[:5])
    for revision, version, text in ((1, "v1", "S//a"), (2, "v2", "S//b")):
        row = ("q", version, text, "active", 5, 5, "", 0)
        db.execute(
            "INSERT INTO query (id, version, text, state, point, effective, reason, changed_us,"
            f" revision) VALUES (?, ?, ?, ?, ?, ?, ?, ?, {revision})",
            row,
        )
    db.execute("INSERT INTO backfill VALUES ('q', 'v1', '{}', 0, 5), ('gone', 'v1', '{}', 0, 5)")
    db.close()
    registry = Registry(path)
    [waiting] = registry.backfills()
    assert (waiting.revision, waiting.query, waiting.point, waiting.through) == (1, "q", 0, 5)
    registry.close()
