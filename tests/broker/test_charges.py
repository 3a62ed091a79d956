"""Agrees: queries are charged in columns, or told each charge; both stop at the same documents."""

from __future__ import annotations

import random

import numpy as np
from support.examples import size

from broker.matching.costs.begun import Begun
from broker.matching.costs.budget import Budget, Spent
from broker.matching.costs.charges import (
    Charges,
    FoundCharges,
    HandedOnCharges,
    PaymentCharges,
)
from broker.matching.costs.commoncounts import Counted
from broker.matching.costs.payments import Payments, Price
from broker.matching.costs.spending import Spending
from broker.matching.usegroups import GroupColumns

QUERIES = ("few", "some", "many")
BOUNDS = {
    "matches_per_document": 30,
    "matches_per_1000_documents": 150,
    "pairs_per_document": 60,
    "bytes_per_document": 25_000,
    "output_bytes_per_1000_documents": 40_000,
}
BUDGETS = (
    Budget(**BOUNDS),
    *(Budget(**dict.fromkeys(BOUNDS, 0) | {name: most}) for name, most in BOUNDS.items()),
)

Result = tuple[dict[str, tuple[int, str]], list[Spent]]


def charges(chance: random.Random, first: int) -> Charges:
    """Return charges of one kind, for documents of a batch."""
    count = chance.randint(1, 12)
    which = np.array([min(chance.randrange(6), 2) for _ in range(count)])
    docids = np.array([first + chance.randrange(40) for _ in range(count)])
    newest = docids - np.array([chance.choice((0, 0, 0, 5)) for _ in range(count)])
    kind = chance.randrange(3)
    if kind == 0:
        which, docids, newest = np.unique(np.stack([which, docids, newest]), axis=1)
        tuples = np.array([chance.randrange(1, 25) for _ in which])
        sizes = tuples * chance.randrange(200)
        return FoundCharges(QUERIES, which, docids, newest, tuples, sizes, tuples // 2)
    if kind == 1:
        streams = np.array([chance.randrange(2) for _ in range(count)])
        counts = np.array([chance.randrange(1, 20) for _ in range(count)])
        return HandedOnCharges(QUERIES, which, docids, newest, ("p", "q"), streams, counts)
    readings = ((500, 0), (900, 20))
    rows = zip(which.tolist(), docids.tolist(), newest.tolist(), strict=True)
    payments = Payments()
    for payer, docid, near in rows:
        cost = chance.randrange(chance.choice((3_000, 3_000, 30_000)))
        leaves = chance.randrange(3), 7
        price = Price(cost + 1_400, cost // 9, cost, leaves, readings)
        payments.add([payer], docid, near, price)
    return PaymentCharges.of(QUERIES, payments)


def shared(chance: random.Random, first: int) -> Counted:
    """Return tuples that some queries all have, in documents of a batch."""
    queries = [QUERIES, QUERIES[1:], QUERIES[:1]][chance.randrange(3)]
    nothing = np.zeros((len(queries), 0), np.int64)
    uses = GroupColumns(np.arange(len(queries)), queries, nothing, nothing)
    count, apart = chance.choice((5, 12, 80)), chance.choice((1, 40))
    docids = np.array([first + chance.randrange(apart) for _ in range(count)])
    newest = docids - np.array([chance.choice((0, 0, 0, 5)) for _ in range(count)])
    weights = [(1, chance.randrange(2), chance.randrange(200)) for _ in range(count)]
    nothing = np.zeros((count, 0), np.int64)
    return Counted(chance.choice("rs"), uses, nothing, docids, newest, np.array(weights))


def spent(seed: int, *, are_told: bool) -> Result:
    """Return where queries stop and why, and what they have spent after some batches."""
    chance = random.Random(seed)
    stopped: dict[str, tuple[int, str]] = {}
    begun, behind = Begun(), list[Spent]()
    for batch in range(chance.randint(1, 3)):
        first = 960 + 40 * batch
        spending = Spending(BUDGETS[seed % len(BUDGETS)], lambda query: 1, begun)
        for step in range(chance.randint(1, 10)):
            spending.begin(step // 2)
            if chance.random() < 0.4:
                counted = shared(chance, first)
                for query in counted.uses.queries if are_told else ():
                    spending.of(query)
                spending.hand_on(counted)
            made = charges(chance, first)
            for which in np.unique(made.which).tolist() if are_told else ():
                spending.of(QUERIES[which])
            spending.charge(made)
        stopped |= {tally.query: (tally.limit, tally.reason()) for tally in spending.over()}
        behind = spending.carry_on(first + 39)
    return stopped, sorted(each for each in behind if each.matches or each.nbytes)


def test_queries_stop_at_the_same_documents_told_or_not() -> None:
    """What is charged in columns is what tallies count charge by charge."""
    seeds = range(size(60, 300))
    outcomes = [spent(seed, are_told=False) for seed in seeds]
    assert outcomes == [spent(seed, are_told=True) for seed in seeds]
    assert {reason.split()[0] for stopped, _ in outcomes for _, reason in stopped.values()} >= {
        "document",
        "documents",
        "an",
        "the",
    }
    assert sum(not stopped for stopped, _ in outcomes) > 12
    assert sum(len(left) for _, left in outcomes) > 120


def test_a_query_within_its_budget_has_no_tally() -> None:
    """Nobody looks at a charge that cannot matter; what it adds to the block is there."""
    spending = Spending(BUDGETS[0], lambda query: 1, Begun())
    one = np.array([0])
    spending.charge(FoundCharges(("few",), one, one + 3, one + 3, one + 2, one + 100, one + 1))
    assert spending.opened("few") is None
    assert spending.over() == []
    assert [*spending.carry_on(3)] == [Spent("few", 1, 0, 0, 1, 100)]
