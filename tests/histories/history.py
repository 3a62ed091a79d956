"""Histories: documents arrive while queries and subscriptions come and go, as text.

A history is a match case whose lines stand in the order in which they happen (see `support.kit`):

    lateness 1 h
    register q0
        S//i->a FOLLOWED BY {a/c = b/c, $p0} S//i->b
    subscribe one q0 {"p0": "1 h"}
    document 1 S 00:05 <i><c>x</c></i>
    register q0 since 0
        S//i[c]
    pause q0

`register` adds a query or replaces the one of that id; what follows `since` is the point that it
looks back to.  `resume`, `remove`, `subscribe NAME QUERY [since N] VALUES`, `unsubscribe NAME`,
and, which changes no match, `drain` (everything accepted is joined) and `restart`.

The oracle judges each stretch for which a query is in force with one assignment by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import oracle
from oracle import InForce
from oracle.lines import render
from support.kit import entries, read_document, us

import xscl
from broker.documents.document import Document, DocumentLine
from xscl.query import Query

__all__ = [
    "Arrive",
    "Change",
    "Drain",
    "Event",
    "History",
    "Register",
    "Restart",
    "Subscribe",
    "Unsubscribe",
    "history_matches",
    "parse_history",
]


@dataclass(frozen=True, slots=True)
class Arrive:
    """A document comes from outside."""

    line: DocumentLine


@dataclass(frozen=True, slots=True)
class Register:
    """A query is registered, anew or for the first time; it may look back."""

    query: Query
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Change:
    """A query is told to `pause`, `resume` or `remove`."""

    verb: str
    query: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Somebody gives the parameters of a query; the subscription may look back."""

    name: str
    query: str
    values: Mapping[str, Any]
    since: int | None = None


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A subscription ends."""

    name: str


@dataclass(frozen=True, slots=True)
class Drain:
    """All that has been accepted is joined."""


@dataclass(frozen=True, slots=True)
class Restart:
    """The process ends, and another one goes on."""


Event = Arrive | Register | Change | Subscribe | Unsubscribe | Drain | Restart


@dataclass(slots=True)
class History:
    """What happens, in order."""

    lateness_us: int = us("1 d")
    events: list[Event] = field(default_factory=list)


def parse_history(text: str) -> History:
    """Read a history."""
    history = History()
    for head, body in entries(re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)):
        word, _, rest = head.partition(" ")
        if word == "lateness":
            history.lateness_us = us(rest.strip())
        else:
            history.events.append(_read(word, rest.strip(), body))
    return history


def _read(word: str, rest: str, body: Sequence[str]) -> Event:
    match word:
        case "document":
            return Arrive(read_document("\n".join([rest, *body]))[1])
        case "register":
            name, _, since = rest.partition(" since ")
            (query,) = xscl.parse("\n".join(body), id=name)
            return Register(query, int(since) if since else None)
        case "pause" | "resume" | "remove":
            return Change(word, rest)
        case "subscribe":
            found = re.fullmatch(r"(\S+) (\S+)(?: since (\d+))? (\{.*\})", rest)
            assert found is not None, rest
            since = found[3]
            values = json.loads(found[4])
            return Subscribe(found[1], found[2], values, int(since) if since else None)
        case "unsubscribe":
            return Unsubscribe(rest)
        case "drain":
            return Drain()
        case "restart":
            return Restart()
    raise AssertionError(f"what is {word!r}?")


def history_matches(history: History) -> list[str]:
    """Return the lines of all matches that the oracle finds, sorted."""
    lines = [event.line for event in history.events if isinstance(event, Arrive)]
    documents = oracle.number_documents(lines)
    in_force = _Registrations(documents).follow(history.events)
    found = oracle.matches_of(in_force, documents, lateness_us=history.lateness_us)
    return sorted(render(match) for match in found)


@dataclass(slots=True)
class _Statement:
    """A query as it was registered last."""

    number: int
    query: Query
    point: int
    is_active: bool = True


Key = tuple[int, str, int]
"""The number of a statement, and an assignment as text, with the point that holds for it."""


class _Registrations:
    """Follows a history, and notes for which documents each query is in force: section 7."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._arrived: list[DocumentLine] = []
        self._newest = 0
        self._statements: dict[str, _Statement] = {}
        self._subscriptions: dict[str, tuple[str, Mapping[str, Any], int]] = {}
        self._begun: dict[Key, InForce] = {}
        self._ended: list[InForce] = []
        self._stated = 0
        self._last: dict[tuple[int, str], InForce] = {}

    def follow(self, events: Sequence[Event]) -> list[InForce]:
        """Return what was in force when."""
        for event in events:
            if isinstance(event, Arrive):
                self._arrived.append(event.line)
                self._newest = len(oracle.number_documents(self._arrived))
            else:
                looks_back = self._change(event)
                self._note(looks_back)
        return [*self._ended, *self._begun.values()]

    def _change(self, event: Event) -> bool:
        """Make a change; return whether it looks back."""
        match event:
            case Register(query, since):
                return self._register(query, since)
            case Change("remove", name):
                del self._statements[name]
                self._subscriptions = {
                    key: each for key, each in self._subscriptions.items() if each[0] != name
                }
            case Change(verb, name):
                self._statements[name].is_active = verb == "resume"
            case Subscribe(name, query_id, values, since):
                point = self._newest
                if since is not None:
                    point = min(max(since, self._statements[query_id].point), self._newest)
                statement = self._statements[query_id]
                canonical = xscl.assignment(statement.query, values)
                self._subscriptions[name] = (query_id, canonical, point)
                if since is not None and not statement.is_active:
                    # What is paused is looked back at all the same, up to here.
                    past = InForce(statement.query, canonical, point, point, self._newest)
                    self._ended.append(past)
                return since is not None
            case Unsubscribe(name):
                del self._subscriptions[name]
        return False

    def _register(self, query: Query, since: int | None) -> bool:
        point = self._newest if since is None else min(since, self._newest)
        present = self._statements.get(query.id)
        is_same = present and present.query.text == query.text
        if not (present and is_same and (not present.is_active or present.point <= point)):
            self._stated += 1
            self._statements[query.id] = _Statement(self._stated, query, point)
        return since is not None

    def _note(self, looks_back: bool) -> None:
        """End what is in force no more, and begin what has come into force."""
        present = dict(self._present())
        for key in self._begun.keys() - present.keys():
            ended = replace(self._begun.pop(key), through=self._newest)
            self._ended.append(ended)
            self._last[key[:2]] = ended
        for key, (query, parameters, point) in present.items():
            if key not in self._begun:
                after = point if looks_back else self._newest
                earlier = self._last.get(key[:2])
                self._begun[key] = InForce(query, parameters, point, after, earlier=earlier)

    def _present(self) -> Iterator[tuple[Key, tuple[Query, Mapping[str, Any], int]]]:
        for statement in self._statements.values():
            if not statement.is_active:
                continue
            query = statement.query
            for parameters, first in self._assignments(query):
                point = max(statement.point, first)
                key = statement.number, json.dumps(parameters, sort_keys=True), point
                yield key, (query, parameters, point)

    def _assignments(self, query: Query) -> Iterator[tuple[Mapping[str, Any], int]]:
        """Yield the assignments that fit a query, each with its earliest point."""
        if not query.parameters:
            yield {}, 0
            return
        points: dict[str, int] = {}
        for name, values, point in self._subscriptions.values():
            if name == query.id and _fit(query, values):
                text = json.dumps(values, sort_keys=True)
                points[text] = min(point, points.get(text, point))
        for text, point in points.items():
            yield json.loads(text), point


_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (float,),
    "value": (str, float),
    "duration": (int,),
}


def _fit(query: Query, values: Mapping[str, Any]) -> bool:
    """Return whether values are for this text of a query, and not for an earlier one."""
    types = dict(query.parameters)
    return values.keys() == types.keys() and all(
        isinstance(value, _TYPES[types[name]]) for name, value in values.items()
    )
