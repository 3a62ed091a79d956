"""The m-rules of RUMOR, and which of them can be left out.

RUMOR (Hong 2009, chapter 5) makes one plan for all queries: an m-op does the work of a set of
operators, and an m-rule replaces such a set by one m-op.  Rules whose names begin with `s` are for
different operators on the same streams, those with `c` for the same operator on streams that can
share a channel.  Here the rules are not passes over a plan: a query class is the m-op that they
come to.  To leave a rule out is to give operators that differ in what the rule does not mind a
class each.

Invariant: no rule changes a match.
"""

from __future__ import annotations

import enum
from collections.abc import Collection
from dataclasses import replace

from broker.matching.uses import Use
from templates.queryclass import QueryClass

__all__ = ["SWITCHED", "MRule", "point_of", "unshared"]


class MRule(enum.Enum):
    """An m-rule: its name without letters of Greek, and as the dissertation prints it."""

    S_SIGMA = ("s_sigma", "s_σ")
    S_ALPHA = ("s_alpha", "s_α")
    S_JOIN = ("s_join", "s_⋈")
    S_SEQ = ("s_seq", "s_;")
    S_MU = ("s_mu", "s_μ")
    C_ALPHA = ("c_alpha", "c_α")
    C_JOIN = ("c_join", "c_⋈")
    C_SEQ = ("c_seq", "c_;")
    C_MU = ("c_mu", "c_μ")
    C_SIGMA = ("c_sigma", "c_σ")
    C_PI = ("c_pi", "c_π")
    DEFAULT = ("default", "default")

    def __init__(self, plain: str, symbol: str) -> None:
        self.plain = plain
        self.symbol = symbol


SWITCHED = (MRule.S_SIGMA, MRule.S_JOIN, MRule.S_SEQ, MRule.S_MU, MRule.C_JOIN, MRule.C_SEQ)
"""The rules that can be left out.

`s_;` and `s_μ` are left out by the registration points of queries: what is decided is one for
queries that see the same documents.  `c_;` is left out where queries are compiled.
"""


def point_of(number: int, without: Collection[MRule]) -> int:
    """Return where the query of a number is registered, before all documents.

    Where `s_;` or `s_μ` is left out, each query has a point of its own.
    """
    return 0 if {MRule.S_SEQ, MRule.S_MU}.isdisjoint(without) else -number


def unshared(query_class: QueryClass, use: Use, without: Collection[MRule]) -> QueryClass:
    """Return the class of a use where some rules are left out.

    What hands on its tuples in one stream with others (`c_;`) stays one.
    """
    if not without or query_class.decided is not None:
        return query_class
    apart: list[str] = []
    if MRule.S_JOIN in without and not use.clause.is_common:
        apart.append(f"window {use.window_us}")
    if MRule.S_SIGMA in without and not use.clause.is_common:
        apart.append(f"asks {(use.asked.equal, use.asked.excluded, use.asked.bounds)}")
    template = query_class.template
    if MRule.C_JOIN in without:
        template = replace(template, apart=(*query_class.row.variables, *apart))
    return replace(query_class, template=template, apart=tuple(apart))
