"""A small chain that has a program: compiled loops are called with it before they are needed."""

from __future__ import annotations

from templates.chaindecision import ChainDecision, ChainLink
from templates.decision import TupleStream
from templates.rundecision import ElementStream
from xscl.comparison import Disjunct, Elements, Residual, VariableValue
from xscl.path import Literal
from xscl.query import INFINITE_US, Strategy

__all__ = ["sample_chain"]


def sample_chain(*, is_contiguous: bool) -> ChainDecision:
    """Return a small chain that has a program: its loops are compiled with it."""
    value = Elements(None, "candidate", VariableValue("v"))
    each = (Disjunct(residuals=(Residual(value, ">=", Literal(1.0)),)),)

    def elements(step: int) -> ElementStream:
        return ElementStream(step, TupleStream(f"s{step}", (step,), ("#0", "v"), ("#0", "v")), ())

    links = tuple(
        ChainLink(
            f"+{step}", step == 0, (elements(step),), (Disjunct(),), each, (),
            INFINITE_US, INFINITE_US,
        )
        for step in range(2)
    )  # fmt: skip
    strategy = Strategy.STRICT if is_contiguous else Strategy.NEXT
    documents = (elements(2),) if is_contiguous else ()
    return ChainDecision(strategy, links, (), documents, INFINITE_US, INFINITE_US, 0)
