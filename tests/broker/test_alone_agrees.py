"""A statement finds what it finds alone, and is paused where and for what it is paused alone."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import oracle
from generators.kinds import KINDS, RULES
from hypothesis import given, settings
from hypothesis import strategies as st
from support.budgets import UNLIMITED
from support.examples import examples
from support.kit import Case, parse_case
from support.runners import DEFAULT_ENGINE, engine_of

import xscl
from broker.matching.costs.budget import Budget, Spent
from broker.matching.limits import DEFAULT_MATCHING_LIMITS, MatchingLimits
from joins.budget.limits import DEFAULT_RUN_LIMITS

NAMES = [name for name, kind in KINDS.items() if kind is not RULES and name != "lossy"]
"""Kinds of statements that need no other one, and are always counted alike."""

COMPARING = (
    "S//*->a JOIN {a = b, 9 s} S//*->b",
    "T//*->a JOIN {a = b, 9 s} T//*->b",
    "S//*[k->x][p->y]->a FOLLOWED BY {a = b, 9 s} T//*[k->z]->b",
    "S//a->a FOLLOWED BY {, 9 s} S//b[k->x]->b+ {b != 'x' AND x != 'y'}",
    "S//b->a NEXT {, 9 s} T//a[p->x]->b WHERE a != b AND x != 'q'",
    "S//*[k->x][p->y]->a FOLLOWED BY {x != y, 2 s} S//*[k->z]->b"
    " NOT FOLLOWED BY {z = w, 3 s} S//*[k->w]->c",
)
"""Statements that compare the values of what others may only show."""


def crowd(chance: random.Random) -> Case:
    """Return a case with the statements of others, and some that compare much."""
    name = chance.choice(NAMES)
    case = parse_case(KINDS[name].case(chance.randrange(1 << 20)))
    for number in range(chance.randint(1, 3)):
        kind = KINDS[name if chance.randrange(3) else chance.choice(NAMES)]
        other = parse_case(kind.case(chance.randrange(1 << 20)))
        for query in other.queries:
            own = f"{query.id} of {number}"
            case.queries.append(replace(query, id=own))
            case.registered[own] = other.registered.get(query.id, 0)
            case.assignments[own] = other.assignments.get(query.id, [])
    case.queries += [
        xscl.parse(text, id=f"compares {number}")[0]
        for number, text in enumerate(chance.sample(COMPARING, 2))
    ]
    # Whoever reads what another publishes depends on it.
    case.queries = [query for query in case.queries if not query.publish]
    chance.shuffle(case.queries)
    return case


BOUNDS: Mapping[str, Callable[[random.Random], int]] = {
    "matches_per_document": lambda chance: chance.randint(1, 4),
    "matches_per_1000_documents": lambda chance: chance.randint(1, 20),
    "pairs_per_document": lambda chance: chance.randint(1, 8),
    "bytes_per_document": lambda chance: chance.randint(400, 6_000),
    "output_bytes_per_1000_documents": lambda chance: chance.randint(1, 1_500),
}


def bounds(chance: random.Random) -> tuple[Budget, MatchingLimits]:
    """Return bounds that some statements reach: one of a budget, or all, or those of runs."""
    kind = chance.choice((*BOUNDS, "runs", "all", "counted"))
    if kind == "counted":
        return replace(UNLIMITED, output_bytes_per_1000_documents=1 << 40), DEFAULT_MATCHING_LIMITS
    given = {name: make(chance) for name, make in BOUNDS.items() if kind in (name, "all")}
    budget = replace(UNLIMITED, **given)
    if kind not in ("runs", "all"):
        return budget, DEFAULT_MATCHING_LIMITS
    runs = replace(
        DEFAULT_RUN_LIMITS,
        runs=chance.randint(1, 6),
        elements=chance.randint(1, 5),
        steps=chance.randint(2, 40),
        bits=chance.randint(2, 30),
        heads=chance.randint(1, 12),
    )
    return budget, replace(DEFAULT_MATCHING_LIMITS, runs=runs)


@dataclass
class Found:
    """What has been found of each statement, and where and why it was paused."""

    lines: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    pauses: dict[str, tuple[int, str]] = field(default_factory=dict)
    spent: list[Spent] = field(default_factory=list)

    def of(self, name: str) -> object:
        """Return what there is of one statement."""
        return self.lines.get(name), self.pauses.get(name)

    def spent_by(self, name: str) -> list[Spent]:
        """Return what a statement has been charged with in the end."""
        return [each for each in self.spent if each.query == name]


def run(case: Case, batch: int, budget: Budget, limits: MatchingLimits) -> Found:
    found, documents = Found(), oracle.number_documents(case.lines)
    engine = engine_of(case, DEFAULT_ENGINE, limits=limits, budget=budget)
    xml = {document.docid: document.xml for document in documents}
    for start in range(0, len(documents), batch):
        witnesses = engine.evaluate(documents[start : start + batch])
        step = engine.process(witnesses, lambda docids: {docid: xml[docid] for docid in docids})
        for match in step.matches:
            found.lines.setdefault(match.query, []).append((match.position, match.line))
        found.pauses |= {each.query: (each.docid, each.reason) for each in step.pauses}
        found.spent = [*step.spent]
    return found


@settings(max_examples=examples(4))
@given(st.integers(0, (1 << 32) - 1))
def test_who_else_is_there_changes_nothing(seed: int) -> None:
    chance = random.Random(seed)
    case, batches = crowd(chance), (1, 7, 1_000)
    given = bounds(chance)
    batch = chance.choice(batches)
    together = run(case, batch, *given)
    for query in case.queries:
        own_batch = chance.choice((batch, *batches))
        alone = run(replace(case, queries=[query]), own_batch, *given)
        assert together.of(query.id) == alone.of(query.id), query.id
        if own_batch == batch and query.id not in alone.pauses:
            # Else it is that of a part of the documents.
            assert together.spent_by(query.id) == alone.spent_by(query.id), query.id
