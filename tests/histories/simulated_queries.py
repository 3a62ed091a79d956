"""The queries of a simulated broker: a stand-in for many histories, the real engine for some.

Both change while documents flow, and both know what must have been found in the end.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol

import oracle
from oracle import InForce
from support.standin import StandInEngine, is_partner
from support.subscribed import every_subscription

import xscl
from broker.documents.spool import Spool
from broker.documents.stored import document_of
from broker.matching.match import MatchDocument
from broker.matching.queries.registration import NOTHING, SetChange
from broker.pipeline.beside import Due
from broker.pipeline.evaluation import PlanStore
from broker.pipeline.lookback.backfill import backfill, first_waiting
from broker.pipeline.outbox import Outbox
from broker.pipeline.steps import Pipeline
from broker.registry.queries import QueryState, Registry
from broker.registry.registered import (
    Engines,
    assigned_back,
    is_registered,
    looking_back,
    parsed,
)
from broker.registry.subscription import Destination

__all__ = ["Queries", "RealQueries", "RuledQueries", "StandInQueries"]

Row = tuple[dict[str, Any], int]
"""A document as the spool has it, and its registry version."""

Rows = Mapping[tuple[str, str], Mapping[str, str | float]]
"""The cells of rows by table and key."""

FOREVER = 1 << 62
PULL = Destination.parse("pull")
WINDOW_US = 40
LATENESS_US = 30

TEXTS = (
    "S//d->a FOLLOWED BY {a/v = b/v, 40 us} S//d->b",
    "S//d->a JOIN {a/v = b/v, 20 us} S//d->b",
    "S//d[v = '1']->a",
    "(S//d->a FOLLOWED BY {a/v = b/v, 20 us} S//d->b) FOLLOWED BY {b/v = c/v, 20 us} S//d->c",
    "S//d->a NEXT {a/v = b/v, 40 us} S//d->b GRACE 10 us",
    "S//d->a NOT FOLLOWED BY {a/v = b/v, 20 us} S//d->b GRACE 5 us",
    "S//d->a FOLLOWED BY {a/v = b/v, 30 us} S//d->b UNLESS {a/v > c/v} S//d->c",
)
FIRST = {
    "publisher": "FROM S//d->a FOLLOWED BY {a/v = b/v, 10 us} S//d->b PUBLISH P",
    "reader": "P//d->a FOLLOWED BY {a/v = b/v, 30 us} S//d->b",
    "shared": "S//d->a FOLLOWED BY {a/v = b/v, $within} S//d->b",
    "quiet": "FROM S//d->a NOT FOLLOWED BY {a/v = b/v, 10 us} S//d->b GRACE 5 us PUBLISH Q",
    "after": "Q//d->a JOIN {a/v = b/v, 30 us} S//d->b",
    "q0": TEXTS[0],
}
RULES = {
    "t": "CREATE TABLE t (v KEY, n DEFAULT 0, is_many DEFAULT 'no', last DEFAULT '')",
    "count": """SELECT * FROM S//d->a FOLLOWED BY {a/v = b/v, 20 us} S//d->b GRACE 5 us
        ON MATCH SET t[b/v].n = t[b/v].n + 1 PUBLISH C""",
    "mark": """C//d->a WHERE t[a/v].n >= 2 GRACE 5 us
        ON MATCH SET t[a/v].is_many = 'yes', SET t[a/v].n = 0""",
    "few": "SELECT * FROM S//d->a WHERE t[a/v].is_many = 'no' GRACE 5 us PUBLISH F",
}
RULE_TEXTS = (
    "S//d->a WHERE t[a/v].n > 0 GRACE 5 us",
    "S//d->a NEXT {a/v = b/v, 20 us} S//d->b GRACE 5 us ON MATCH SET t[b/v].last = b/n",
    "F//d->a NOT FOLLOWED BY {a/v = b/v, 10 us} S//d->b GRACE 5 us",
)


class Queries(Protocol):
    """The queries that one life of the broker has, and whether its clock ticks for them."""

    is_ticking: bool
    is_looking_back: bool

    def prepared(self, chosen: random.Random, point: int) -> SetChange:
        """Return a query that is to see what comes behind a point; nothing if none looks back."""

    def register(self, change: SetChange, newest_docid: int) -> Due | None:
        """Register it, and return since when it is, None where it is not as it was prepared."""

    def look_back(self, outbox: Outbox, spool: Spool) -> None:
        """Find what those who look back are to find in documents that are joined."""

    def looked_back_at(self) -> int | None:
        """Return the oldest document that is to be looked back at."""

    def pipeline(self, spool: Spool, outbox: Outbox, plans: PlanStore, **others: Any) -> Pipeline:
        """Return the pipeline that evaluates them; it gets `others` too."""

    def version(self) -> int:
        """Return the registry version of the next document."""

    def change(self, chosen: random.Random, newest_docid: int) -> None:
        """Change them from the next document on."""

    def expected(self, documents: Mapping[int, Row]) -> tuple[list[str], Rows]:
        """Return the ids of all matches in the order of the outbox, and the rows of all tables."""

    def close(self) -> None:
        """Die with the process."""


class StandInQueries:
    """One query, by the stand-in engine, whose name is its version; kept in a file."""

    is_ticking = False
    is_looking_back = False

    def prepared(self, chosen: random.Random, point: int) -> SetChange:
        return NOTHING

    def register(self, change: SetChange, newest_docid: int) -> Due | None:
        return None

    def look_back(self, outbox: Outbox, spool: Spool) -> None:
        pass

    def looked_back_at(self) -> int | None:
        return None

    def __init__(self, directory: Path) -> None:
        self._path = directory / "version"

    def pipeline(self, spool: Spool, outbox: Outbox, plans: PlanStore, **others: Any) -> Pipeline:
        def engine(version: int) -> StandInEngine:
            return StandInEngine(WINDOW_US, query=f"v{version}")

        return Pipeline(spool, outbox, engine, plans, **others)

    def version(self) -> int:
        return int(self._path.read_text()) if self._path.exists() else 1

    def change(self, chosen: random.Random, newest_docid: int) -> None:
        self._path.write_text(str(self.version() + 1))

    def expected(self, documents: Mapping[int, Row]) -> tuple[list[str], Rows]:
        """Return the ids of all matches, by looking at every pair of documents."""
        found = []
        for (docid, (row, _)), (later_docid, (later, version)) in combinations(
            sorted(documents.items()), 2
        ):
            earlier = MatchDocument(docid, row["stream"], row["key"], row["end_us"])
            here = MatchDocument(later_docid, later["stream"], later["key"], later["end_us"])
            is_equal = _value(row["xml"]) == _value(later["xml"])
            if is_equal and is_partner(earlier, here, later["watermark_us"], WINDOW_US):
                found.append((here.docid, f"v{version}", f"v{version}:{earlier.key}:{here.key}"))
        return [match_id for _, _, match_id in sorted(found)], {}

    def close(self) -> None:
        pass


class RealQueries:
    """A registry whose queries come and go, and the engines that follow it."""

    is_ticking = True
    is_looking_back = True
    first: Mapping[str, str] = FIRST
    texts: Sequence[str] = TEXTS

    def __init__(self, directory: Path) -> None:
        self._registry = Registry(directory / "registry.db", now_us=lambda: 0)
        self._engines = Engines(self._registry, lateness_us=LATENESS_US)
        if not self._registry.revision():
            for name, text in self.first.items():
                self._register(name, text, 0)

    def pipeline(self, spool: Spool, outbox: Outbox, plans: PlanStore, **others: Any) -> Pipeline:
        return Pipeline(
            spool,
            outbox,
            self._engines.make,
            plans,
            plan_of=self._engines.plan,
            follow=self._engines.follow,
            **others,
        )

    def version(self) -> int:
        return self._registry.revision()

    def prepared(self, chosen: random.Random, point: int) -> SetChange:
        """Return a query stated anew, one that is new, or an assignment that nobody has."""
        registry = self._registry
        names = [each.id for each in registry.queries() if each.id.startswith("q")]
        what = chosen.random()
        if what < 0.3:
            shared = parsed(registry.query("shared"))
            return assigned_back(shared, {"within": chosen.choice([10, 20, 40])}, point)
        name = chosen.choice(names) if what < 0.1 and names else f"q{self.version()}back"
        return looking_back(registry, _query(chosen.choice(self.texts), name), point)

    def register(self, change: SetChange, newest_docid: int) -> Due | None:
        for each in change.queries:
            self._register(
                each.query.id, each.query.text, newest_docid, since=each.registration_point
            )
        for name, values, point in change.assigned:
            self._registry.subscribe(name, PULL, point=newest_docid, since=point, parameters=values)
        is_due = is_registered(self._registry, change)
        return Due(self.version(), newest_docid) if is_due else None

    def look_back(self, outbox: Outbox, spool: Spool) -> None:
        backfill(self._registry, outbox, spool, lateness_us=LATENESS_US)

    def looked_back_at(self) -> int | None:
        return first_waiting(self._registry.backfills())

    def change(self, chosen: random.Random, newest_docid: int) -> None:
        removable = [each.id for each in self._registry.queries() if each.id.startswith("q")]
        if "shared" in self.first and chosen.random() < 0.4:
            self._change_subscriptions(chosen, newest_docid)
        elif removable and chosen.random() < 0.4:
            name = chosen.choice(removable)
            self._registry.set_state(name, QueryState.REMOVED, effective=newest_docid)
        else:
            self._register(f"q{self.version()}", chosen.choice(self.texts), newest_docid)

    def _change_subscriptions(self, chosen: random.Random, newest_docid: int) -> None:
        subscriptions = self._registry.subscriptions
        present = sorted(subscriptions.find(), key=lambda each: each.revision)
        if present and chosen.random() < 0.5:
            subscriptions.remove(chosen.choice(present).id, until=newest_docid)
        else:
            values = {"within": chosen.choice([10, 30])}
            self._registry.subscribe("shared", PULL, point=newest_docid, parameters=values)

    def expected(self, documents: Mapping[int, Row]) -> tuple[list[str], Rows]:
        """Return the ids of all matches that the oracle finds, and the rows that they leave."""
        stored = [document_of(docid, row) for docid, (row, _) in sorted(documents.items())]
        in_force = list(self._in_force())
        shared = parsed(self._registry.query("shared")) if "shared" in self.first else None
        for each in every_subscription(self._registry):
            through = FOREVER if each.until is None else each.until
            assert shared is not None
            in_force.append(
                InForce(shared, json.loads(each.parameters), each.point, through=through)
            )
        found, left = oracle.matches_and_rows(in_force, stored, lateness_us=LATENESS_US)
        ids = [match.id for match in found]
        return sorted(set(ids)) if self.is_looking_back else ids, left.rows

    def _in_force(self) -> Iterator[InForce]:
        """Yield every statement of a query without parameters, up to the next one of it."""
        states = (QueryState.ACTIVE, QueryState.REMOVED)
        for name in {each.id for each in self._registry.queries(states=states)} - {"shared"}:
            history = self._registry.history(name)
            ends = [each.effective for each in history[1:]]
            for text, through in zip(history, [*ends, FOREVER], strict=True):
                if text.state is QueryState.ACTIVE:
                    yield InForce(parsed(text), {}, text.point, through=through)

    def close(self) -> None:
        self._registry.close()

    def _register(self, name: str, text: str, point: int, since: int | None = None) -> None:
        query = _query(text, name)
        self._registry.register(name, text, version=query.version, point=point, since=since)


class RuledQueries(RealQueries):
    """A registry whose queries read tables and write them."""

    is_looking_back = False
    first = RULES
    texts = RULE_TEXTS


def _query(text: str, name: str) -> xscl.Query:
    (query,) = xscl.parse(text, id=name)
    return query


def _value(xml: bytes) -> bytes:
    [value] = re.findall(rb"<v>(.*?)</v>", xml)
    return value
