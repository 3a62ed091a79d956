"""What a decision of pairs, or of tuples alone, reads of its absent units."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from templates.clause import Clause
from templates.comparisons import held_against_data
from templates.founddata import ByData, data_asked
from templates.haddata import Operands
from templates.ordered import AbsentUnit
from templates.similarterms import scored
from xscl.path import Parameter
from xscl.query import Disjunct, From, Query, SimilarityJoin

if TYPE_CHECKING:
    from templates.decisioncompiler import DecisionCompiler, Decisions

__all__ = ["AbsentRows", "absent_rows", "hand_on_absent"]


class AbsentRows(NamedTuple):
    """A stream of an absent unit, which has a number, and what is `asked` of its tuples.

    It is a `score` that is held against data, and the `rest`, asked `beside` the operands of its
    own statement.
    """

    unit: int
    window_us: int | Parameter
    blocks: tuple[int, ...]
    beside: Sequence[Operands]
    compiler: DecisionCompiler
    node: int | From
    clause: Clause
    asked: Disjunct
    rest: Disjunct
    score: SimilarityJoin | None


def absent_rows(
    decisions: Decisions,
    statement: Query,
    blocks: tuple[int, ...],
    number: int,
    unit: AbsentUnit,
    beside: Sequence[Operands],
) -> Iterator[AbsentRows]:
    """Yield what an absent unit reads for each block and disjunct; nothing is handed on yet."""
    for block, disjuncts in unit.blocks:
        variables = tuple(v for v in statement.variables if v.block in (*blocks, block))
        alone = replace(statement, variables=variables)
        names = {v.name for v in statement.variables if v.block == block}
        for disjunct in disjuncts:
            own, asked = held_against_data(disjunct, names, decisions.compiler(alone, {}).texts)
            node = From(block, where=(own,))
            compiler = decisions.compiler(alone, {id(node): own})
            # A key leads from the document, so that the block itself must be asked for.
            needed = compiler.terms(asked) | {decisions.query.blocks[block].root}
            absent = node if own != Disjunct() else block
            clause = compiler.operand(absent, needed)
            given = number, unit.window_us, blocks, beside, compiler, absent, clause, asked
            yield AbsentRows(*given, *scored(asked))


def hand_on_absent(taking: Sequence[AbsentRows], had: Collection[str], *, asks_each: bool) -> None:
    """Have all streams of absent units handed on.

    Where each datum is asked, a stream that is held against one says all data of these streams.
    """
    by_data, held = ByData.TOGETHER, frozenset[Clause]()
    if asks_each:
        by_data = ByData.TOGETHER_ASKED
        asked = ((each.clause, data_asked([each.clause], had)) for each in taking)
        held = frozenset(c for c, data in asked if any(each.datum not in had for each in data))
    every = data_asked(held, had)
    for each in taking:
        data = every if each.clause in held else ()
        each.compiler.hand_on(each.node, each.clause, by_data, had, data)
