"""What must be so of a broker's directory in the end, whatever was killed when.

By the journal: what was acknowledged is there, and holds for the documents that it must hold for.
By the oracle: the matches are those of the queries and documents that are there, no more, no less,
and so are the rows of tables.
By the receipts: each match was delivered to whom it was owed, under its id, and nothing that was
settled before a kill came again after it.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import oracle
from oracle import InForce
from support.subscribed import every_subscription

from broker.delivery.store import delivery_id
from broker.documents.document import Document
from broker.documents.spool import Spool
from broker.documents.stored import documents_of
from broker.matching.match import Match, parameters_key
from broker.registry.queries import QueryState, RegisteredText, Registry
from broker.registry.registered import parsed
from broker.registry.subscription import Options, Subscription
from kills.traffic import Journal, Receipt

Rows = Mapping[tuple[str, str], Mapping[str, Any]]
"""Rows of tables, by table and key."""

LATENESS_US = 30_000_000
FOREVER = 1 << 62
_FAULTS_SHOWN = 20


@dataclass
class State:
    """What a directory holds while no broker runs on it."""

    documents: dict[int, Document]
    begun: dict[str, RegisteredText]
    removed: dict[str, int]
    subscriptions: list[Subscription]
    matches: list[str]
    rows: Rows
    deliveries: list[dict[str, Any]]
    through: int
    segments: int

    @property
    def is_evaluated(self) -> bool:
        return self.through >= self.segments

    @property
    def settled(self) -> set[str]:
        return {row["id"] for row in self.deliveries if row["state"] == "delivered"}

    @property
    def waiting(self) -> list[str]:
        return [row["id"] for row in self.deliveries if row["state"] == "due"]


@dataclass
class Faults:
    """What is not as it must be."""

    found: list[str] = field(default_factory=list)

    def check(self, holds: object, text: str) -> None:
        if not holds:
            self.found.append(text)

    def add(self, others: Faults, where: str) -> None:
        self.found += [f"{where}: {text}" for text in others.found]

    def shown(self) -> Iterator[str]:
        yield from self.found[:_FAULTS_SHOWN]
        if len(self.found) > _FAULTS_SHOWN:
            yield f"and {len(self.found) - _FAULTS_SHOWN} more"


def settled_in(data: Path) -> set[str]:
    """Return the deliveries that a broker which was killed had written down as made."""
    rows = _read(data, "deliveries.db", "SELECT id FROM delivery WHERE state = 'delivered'")
    return {row["id"] for row in rows}


def documents_in(data: Path) -> dict[int, Document]:
    """Return the documents of a directory by docid; none where no broker has begun yet."""
    if not (data / "spool").exists():
        return {}
    spool = Spool(data / "spool")
    segments = spool.all_segments()
    documents = (each for segment in segments for each in documents_of(spool, segment))
    return {document.docid: document for document in documents}


def state_of(data: Path, known: Mapping[int, Document] | None = None) -> State:
    """Read everything; `known` are documents that may have been deleted since."""
    segments = Spool(data / "spool").last
    with _copied(data) as copy, contextlib.closing(Registry(copy / "registry.db")) as registry:
        begun, removed = {}, {}
        for state in (QueryState.ACTIVE, QueryState.REMOVED):
            for each in registry.queries(states=[state]):
                begun[each.id] = registry.history(each.id)[0]
                if state is QueryState.REMOVED:
                    removed[each.id] = each.effective
        subscriptions = every_subscription(registry)
    return State(
        {**(known or {}), **documents_in(data)},
        begun,
        removed,
        subscriptions,
        [row["id"] for row in _read(data, "outbox.db", "SELECT id FROM match ORDER BY seq")],
        {
            (row["name"], row["key"]): json.loads(row["cells"])
            for row in _read(data, "outbox.db", "SELECT name, key, cells FROM table_row")
        },
        _read(data, "deliveries.db", "SELECT * FROM delivery"),
        through=sum(row["through"] for row in _read(data, "outbox.db", "SELECT * FROM progress")),
        segments=segments,
    )


def expected_of(state: State) -> tuple[list[Match], Rows]:
    """Return what the oracle finds in the documents, by the queries and when they were there.

    Tables are asked alone: their statements publish nothing and read nothing published.
    """
    texts = dict(state.begun)
    shared = parsed(texts.pop("shared")) if "shared" in texts else None
    in_force = [
        InForce(parsed(text), {}, text.point, through=state.removed.get(name, FOREVER))
        for name, text in texts.items()
    ]
    for each in state.subscriptions:
        if shared is not None and each.query == "shared":
            through = FOREVER if each.until is None else each.until
            values = json.loads(each.parameters)
            in_force.append(InForce(shared, values, each.point, through=through))
    documents = [document for _, document in sorted(state.documents.items())]
    free = [each for each in in_force if not each.query.tables]
    ruled = [each for each in in_force if each.query.tables]
    found = oracle.matches_of(free, documents, lateness_us=LATENESS_US)
    decided, left = oracle.matches_and_rows(ruled, documents, lateness_us=LATENESS_US)
    return [*found, *decided], left.rows


def owed_to(subscription: Subscription, matches: Iterable[Match]) -> dict[str, Match]:
    """Return the matches that a subscription gets, by id."""
    return {
        match.id: match
        for match in matches
        if match.query == subscription.query
        and parameters_key(match.parameters) == subscription.parameters
        and min(document.docid for document in match.documents) > subscription.point
        and (subscription.until is None or match.position <= subscription.until)
    }


def judge(
    state: State, journal: Journal, receipts: list[Receipt], settled: Mapping[str, int]
) -> Faults:
    """Compare what a broker has and has sent with what it must.

    `settled` has, for each delivery that was seen to be settled, how many messages had come then.
    """
    faults, (expected, rows) = Faults(), expected_of(state)
    check_acknowledged(state, journal, faults)
    check_matches(state, expected, faults)
    check_rows(state, rows, faults)
    check_deliveries(state, expected, receipts, set(journal.ends), faults)
    for number, receipt in enumerate(receipts):
        is_new = number < settled.get(receipt.id, FOREVER)
        faults.check(is_new, f"delivery {receipt.id} was settled and came again")
    return faults


def judge_copy(before: State, state: State, receipts: list[Receipt]) -> Faults:
    """Compare what a broker on a copy has sent with what it had to, by what the copy held."""
    faults, (expected, rows) = Faults(), expected_of(state)
    check_matches(state, expected, faults)
    check_rows(state, rows, faults)
    for receipt in receipts:
        is_new = receipt.id not in before.settled
        faults.check(is_new, f"delivery {receipt.id} was settled and came again")
    sent = {receipt.id for receipt in receipts if receipt.is_taken} | before.settled
    for subscription in state.subscriptions:
        if subscription.until is None and subscription.options == Options():
            for match in owed_to(subscription, expected):
                is_sent = delivery_id(subscription.id, match) in sent
                faults.check(is_sent, f"{subscription.id}: match {match} was not delivered")
    return faults


def check_acknowledged(state: State, journal: Journal, faults: Faults) -> None:
    """What was acknowledged is there, and began and ended between the right documents."""
    for key, (docid, xml, _) in journal.documents.items():
        stored = state.documents.get(docid)
        is_there = stored is not None and (stored.key, stored.xml.decode()) == (key, xml)
        faults.check(is_there, f"document {docid}, {key}, was acknowledged and is lost")
    for name, (looks_back, asked) in journal.queries.items():
        text = state.begun.get(name)
        faults.check(text is not None, f"query {name} was acknowledged and is lost")
        if text is not None and not looks_back:
            _check_moment(f"query {name} begins", text.point, asked, journal, faults)
    for name, asked in journal.removals.items():
        faults.check(name in state.removed, f"query {name} was removed and is there again")
        if name in state.removed:
            _check_moment(f"query {name} ends", state.removed[name], asked, journal, faults)
    present = {each.id: each for each in state.subscriptions}
    for name, asked in journal.subscriptions.items():
        faults.check(name in present, f"subscription {name} was acknowledged and is lost")
        if name in present:
            point = present[name].point
            _check_moment(f"subscription {name} begins", point, asked, journal, faults)
    for name in journal.ends:
        is_over = name in present and present[name].until is not None
        faults.check(is_over, f"subscription {name} was ended and is there again")


def _check_moment(what: str, point: int, asked: Any, journal: Journal, faults: Faults) -> None:
    """Documents acknowledged before it was asked are before it, those sent after it behind it."""
    for docid, _, document in journal.documents.values():
        is_before = document.last < asked.first and docid > point
        is_behind = document.first > asked.last and docid <= point
        said = f"{what} behind document {point}, and {docid} was on the other side"
        faults.check(not (is_before or is_behind), said)


def check_matches(state: State, expected: list[Match], faults: Faults) -> None:
    """The outbox has what the oracle finds, each once."""
    found, wanted = state.matches, {match.id: match for match in expected}
    faults.check(len(found) == len(set(found)), "a match is in the outbox twice")
    for each in wanted.keys() - set(found):
        match = wanted[each]
        docids = [document.docid for document in match.documents]
        faults.check(False, f"a match of {match.query}, documents {docids}, is lost: {each}")
    for each in set(found) - wanted.keys():
        faults.check(False, f"match {each} is none")


def check_rows(state: State, expected: Rows, faults: Faults) -> None:
    """The outbox has the rows of tables that serial evaluation leaves."""
    for place in sorted(state.rows.keys() | expected.keys()):
        found, wanted = state.rows.get(place), expected.get(place)
        said = f"row {place[1]!r} of table {place[0]} is {found}, and must be {wanted}"
        faults.check(found == wanted, said)


def check_deliveries(
    state: State, expected: list[Match], receipts: list[Receipt], ended: set[str], faults: Faults
) -> None:
    """Everybody has got what they were owed, under its id, and the same each time.

    Who has ended a subscription wants nothing more: `ended` may lack some, and have no other.
    """
    by_path: dict[str, list[Receipt]] = defaultdict(list)
    for receipt in receipts:
        by_path[receipt.path].append(receipt)
    rows: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in state.deliveries:
        rows[row["subscription"]].append(row)
    for subscription in state.subscriptions:
        address = subscription.destination.address
        got = by_path.pop("/" + address.rpartition("/")[2], [])
        _check_one(subscription, owed_to(subscription, expected), got, ended, faults)
        _check_held(subscription, rows[subscription.id], faults)
    for path in by_path:
        faults.check(False, f"{path} got messages, and there is no such subscription")


def _check_one(
    subscription: Subscription,
    owed: Mapping[str, Match],
    got: list[Receipt],
    ended: set[str],
    faults: Faults,
) -> None:
    name = subscription.id
    bodies: dict[str, bytes] = {}
    taken: set[str] = set()
    delivered: dict[str, set[str]] = defaultdict(set)
    for receipt in got:
        same = bodies.setdefault(receipt.id, receipt.body) == receipt.body
        faults.check(same, f"{name}: delivery {receipt.id} said something else the second time")
        matches = _matches_in(receipt.body)
        taken.update(matches if receipt.is_taken else ())
        for match in matches:
            delivered[match].add(receipt.id)
            faults.check(match in owed, f"{name}: match {match} is not owed")
    is_plain = subscription.options == Options()
    for match, ids in delivered.items():
        faults.check(len(ids) == 1, f"{name}: match {match} came under ids {sorted(ids)}")
        if is_plain:
            right = delivery_id(name, match)
            faults.check(ids == {right}, f"{name}: match {match} came as {ids}, not {right}")
    if name not in ended and not subscription.options.throttle:
        for match in owed.keys() - taken:
            faults.check(False, f"{name}: match {match} was not delivered")


def _check_held(subscription: Subscription, rows: list[dict[str, Any]], faults: Faults) -> None:
    """A throttle has let no more through than it says."""
    throttle = subscription.options.throttled
    if throttle is None:
        return
    begun: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        if row["begun_us"] is not None and row["state"] != "suppressed":
            begun[row["key"]].append(row["begun_us"])
    for key, moments in begun.items():
        moments.sort()
        for first, beyond in zip(moments, moments[throttle.count :], strict=False):
            said = f"{subscription.id}: more of {key!r} than {subscription.options.throttle}"
            faults.check(beyond - first >= throttle.within_us, said)


def _matches_in(body: bytes) -> list[str]:
    data = json.loads(body)["data"]
    return [match["id"] for match in data.get("matches", [data])]


def _read(data: Path, name: str, sql: str) -> list[dict[str, Any]]:
    with _copied(data) as copy:
        if not (copy / name).exists():
            return []
        with contextlib.closing(sqlite3.connect(copy / name)) as db:
            db.row_factory = sqlite3.Row
            try:
                return [dict(row) for row in db.execute(sql)]
            except sqlite3.OperationalError:  # killed before the tables were made
                return []


@contextlib.contextmanager
def _copied(data: Path) -> Iterator[Path]:
    """Copy the databases: to open one that was killed would mend it, which is the broker's work.

    Beside a broker that runs, the log of one may go while it is copied; what is read then lags.
    """
    with tempfile.TemporaryDirectory() as name:
        for path in data.glob("*.db*"):
            with contextlib.suppress(FileNotFoundError):
                shutil.copy(path, name)
        yield Path(name)
