"""Compiles the elements of a block, and how they say data that statements are given."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from templates.box import Test
from templates.clause import Clause
from templates.founddata import ByData, by_datum, data_said
from templates.hadtests import HadTest
from templates.helddata import asked_of_had, equal_terms
from templates.rundecision import ElementStream, datum_term
from xscl.counting import is_counted
from xscl.query import (
    Block,
    Disjunct,
    From,
    Operand,
    Query,
    Residual,
    VariableValue,
    operand_terms,
    operand_variables,
    term,
)
from xscl.sought import as_sought

if TYPE_CHECKING:
    from templates.decisioncompiler import DecisionCompiler, Decisions

__all__ = ["BlockElements", "compile_elements", "data_of_all", "hand_on"]


@dataclass(slots=True)
class BlockElements:
    """The elements of a block, compiled with all that is asked of them, but not handed on yet.

    Values of some keys of SAME are `given`.  Where they may say data, what stands before says those
    that are `known`.  Those that `are_tested` carry what is held against data, which is asked
    behind.
    """

    decisions: Decisions
    compiler: DecisionCompiler
    clause: Clause
    block: int
    node: From | int
    keys: tuple[str, ...]
    given: tuple[str, ...]
    known: Collection[str] | None
    by_data: ByData
    are_tested: bool

    @property
    def data(self) -> tuple[Test, ...]:
        """What they say of data that are not given as keys."""
        said = data_said(self.clause, self.known or (), self.by_data)
        return tuple([test for test in said if test.datum not in self.given])

    def hand_on(self, data: Sequence[Test]) -> ElementStream:
        """Return their stream; they are for each of some data that they are not held against."""
        clause, known, decisions = self.clause, self.known, self.decisions
        self.compiler.hand_on(self.node, clause, self.by_data, known or (), data)
        chosen = decisions.chosen_of_elements(self.block) & set(clause.carried)
        names: list[str] = []
        had: tuple[HadTest, ...] = ()
        if known is not None and not is_counted(decisions.query):
            said = [datum for datum in equal_terms(clause) if datum not in self.given]
            # Those that are known stand first.
            names = sorted(said, key=lambda datum: (datum not in known, datum))
            if not self.are_tested:
                had = asked_of_had(clause, {datum: datum_term(datum) for datum in known}).had
        if self.are_tested:
            found = decisions.told_apart(clause, names)
        else:
            found = decisions.stream(clause, had).by(names)
        stream = replace(found, chosen=tuple(sorted(chosen)))
        return ElementStream(self.block, stream, self.keys, self.given, tuple(names), had)


def hand_on(elements: Iterable[BlockElements], data: Sequence[Test]) -> tuple[ElementStream, ...]:
    """Return the streams of the blocks of a unit; see `BlockElements.hand_on`."""
    return tuple([each.hand_on(data) for each in elements])


def data_of_all(elements: Iterable[BlockElements]) -> tuple[Test, ...]:
    """Return the data by which some elements are handed on, where each is asked."""
    said = (test for each in elements if each.by_data.asks_each for test in each.data)
    return tuple(by_datum(dict.fromkeys(said)))


def compile_elements(
    decisions: Decisions,
    statement: Query,
    block: int,
    keys: Sequence[str],
    operands: Sequence[Operand],
    *,
    are_tested: bool = False,
    known: Collection[str] | None = None,
    seeks: bool = False,
    asks_each: bool = False,
) -> BlockElements:
    """Compile the elements of a block with all that is asked of them.

    See `BlockElements`.  It `seeks` data that nothing says, or `asks_each`.
    """
    own = tuple(v for v in statement.variables if v.block == block and v.name[0] != "+")
    names = {v.name for v in own}
    named = {} if is_counted(decisions.query) else decisions.same.given()
    given = {key: named[key] for key in keys if key in named}
    equal = Disjunct(residuals=tuple(Residual(VariableValue(k), "=", p) for k, p in given.items()))
    node = From(block, where=(equal,)) if given else block
    alone = replace(statement, variables=own)
    if seeks:
        alone = replace(alone, blocks=_sought(statement, block, known or ()))
    compiler = decisions.compiler(alone, {id(node): equal})
    asked = [each for each in operands if names.issuperset(operand_variables(each))]
    values = [VariableValue(name) for each in asked for name in operand_variables(each)]
    compiler.look_at([*asked, *values, *map(VariableValue, keys)])
    terms = {term(each) for operand in asked for each in operand_terms(operand)}
    needed = terms | decisions.chosen_of_elements(block) | {decisions.query.blocks[block].root}
    by_data = ByData.NO
    if known is not None and statement.parameters:
        by_data = ByData.EACH_ASKED if asks_each else ByData.EACH
    clause = compiler.operand(node, frozenset(needed))
    of_keys = tuple(parameter.name for parameter in given.values())
    return BlockElements(
        *(decisions, compiler, clause, block, node, tuple(keys), of_keys),
        *(known, by_data, are_tested),
    )


def _sought(statement: Query, block: int, known: Collection[str]) -> tuple[Block, ...]:
    """Return the blocks of a statement, one of which finds the data that nothing says."""
    blocks = [*statement.blocks]
    had = {datum.partition(" (")[0] for datum in known}
    blocks[block] = replace(
        blocks[block], path=as_sought(blocks[block].path, statement.text_parameters, had)
    )
    return tuple(blocks)
