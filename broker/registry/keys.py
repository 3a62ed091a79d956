"""The terms that the key of a query's matches can have."""

from __future__ import annotations

from collections.abc import Iterator

from broker.registry.subscription import SubscriptionError
from xscl.comparison import operand_variables
from xscl.query import Query

__all__ = ["check_key"]

_SHOWN_MAX = 10


def check_key(query: Query, terms: tuple[str, ...]) -> None:
    """Raise `SubscriptionError` where a term is nothing that a match of the query has."""
    compared = dict.fromkeys(_compared(query))
    for term in terms:
        steps = term.split("/")
        if steps[0] == "output" and len(steps) > 1:
            if not all(steps[1:]) or any(step.startswith("@") for step in steps[1:-1]):
                raise SubscriptionError(
                    f"{term!r} is no path into the output: `output/item/@id` is"
                )
        elif term not in compared:
            names = ", ".join(f"`{name}`" for name in list(compared)[:_SHOWN_MAX]) or "nothing"
            raise SubscriptionError(
                f"{term!r} is no key: {query.id} compares {names}; what SELECT makes is there as"
                " `output/...`"
            )


def _compared(query: Query) -> Iterator[str]:
    """Yield what match lines call the values that a query compares."""
    labels = {variable.name: variable.label for variable in query.variables}
    for operator in query.operators():
        for disjunct in operator.disjuncts:
            for operand in disjunct.operands():
                yield from (labels[name] for name in operand_variables(operand))
