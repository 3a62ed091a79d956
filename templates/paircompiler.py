"""Compiles decisions of pairs and of tuples alone, and the clauses that hand decided tuples on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from templates.box import BAR, NONE_OF, TAKEN, WINDOW, JointData, Place, Test
from templates.built import Built
from templates.clause import Clause, ClauseSource
from templates.comparisons import held_against_data
from templates.conjunctions import compared_in, conjunction_of, split
from templates.datatests import data_test
from templates.decision import (
    Absent,
    AbsentCase,
    Decided,
    Decision,
    DecisionKind,
    Fit,
    TupleStream,
)
from templates.founddata import ByData
from templates.helddata import equal_terms, held_equal
from templates.joingraph import GraphNode, JoinGraph
from templates.measured import in_text, test_of
from templates.ordered import (
    AbsentUnit,
    Ordered,
    blocks_of,
    choices,
)
from templates.queryclass import QueryClass
from templates.similarterms import at_zero, scored
from templates.template import template_of
from templates.tuplestreams import tested_below
from xscl.evaluation import compile_condition
from xscl.path import Parameter
from xscl.pattern import INEQUALITIES
from xscl.query import (
    Disjunct,
    From,
    Query,
    Residual,
    term,
)

if TYPE_CHECKING:
    from templates.decisioncompiler import DecisionCompiler, Decisions

__all__ = ["build_pairs", "pairs_clause"]


def build_pairs(decisions: Decisions, nodes: Sequence[tuple[Query, Ordered]]) -> Built:
    """Return a decision of pairs, or of tuples alone, with the clauses that it reads."""
    compilers: list[DecisionCompiler] = []
    lefts: list[TupleStream] = []
    fits: list[Fit] = []
    absences: dict[int, list[AbsentCase]] = {}
    deciding: list[Clause] = []
    compared: set[str] = set()
    taking: list[_Taking] = []
    for statement, node in nodes:
        blocks = tuple(blocks_of(node))
        absent = [d for unit in node.absences for _, own in unit.blocks for d in own]
        beside: set[str] = set()
        for choice in choices(node):
            compiler = decisions.compiler(statement, choice)
            compilers.append(compiler)
            fit = choice[id(node)]
            asked = [fit, *absent]
            needed = decisions.chosen(blocks).union(*map(compiler.terms, asked))
            own = _operands(compiler, node, needed)
            deciding += own
            streams = [decisions.stream(own[0])]
            streams += [decisions.stream(each, node.kind) for each in own[1:]]
            beside.update(each.name for each in streams)
            if len(streams) > 1:
                rest, join = scored(fit)
                left, right = streams
                fits.append(Fit(left, right, conjunction_of(rest), at_zero(join)))
            else:
                lefts += streams
        own_names = tuple(sorted(beside))
        for number, unit in enumerate(node.absences):
            for compiler, clause, disjunct in _absent(decisions, statement, blocks, unit):
                compilers.append(compiler)
                deciding.append(clause)
                taking.append(_Taking(number, blocks, clause, disjunct, own_names))
                compared |= decisions.chosen(blocks) & compared_in(disjunct)
    operands = [[*lefts, *(fit.left for fit in fits)], [fit.right for fit in fits]]
    held, held_side = _held(operands, [each.clause for each in taking])
    if held_side == 0:
        lefts = [left.by(held) for left in lefts]
        fits = [replace(fit, left=fit.left.by(held)) for fit in fits]
    else:
        fits = [replace(fit, right=fit.right.by(held)) for fit in fits]
    for each in taking:
        rest, join = scored(each.asked)
        stream, condition = decisions.absent(each.clause, held), conjunction_of(rest)
        case = AbsentCase(each.blocks, stream, condition, each.beside, at_zero(join))
        absences.setdefault(each.unit, []).append(case)
    decision = Decision(
        node.kind,
        tuple(dict.fromkeys(lefts)),
        tuple(dict.fromkeys(fits)),
        tuple(
            Absent(tuple(dict.fromkeys(absences[number])), unit.window_us)
            for number, unit in enumerate(node.absences)
        ),
        node.window_us,
        node.within_us,
        decisions.grace_us,
        node.is_whole,
        held,
        held_side,
    )
    built = Built.of(decision, decisions.catalog, compilers, deciding, compared)
    bars = dict.fromkeys(_bars((node for _, node in nodes), node.kind))
    return replace(built, bars=tuple(bars))


class _Taking(NamedTuple):
    """A stream of an absent unit, which has a number, and what is asked of its tuples."""

    unit: int
    blocks: tuple[int, ...]
    clause: Clause
    asked: Disjunct
    beside: tuple[str, ...]


def _held(
    operands: Sequence[Sequence[TupleStream]], absent: Sequence[Clause]
) -> tuple[tuple[str, ...], int]:
    """Return the data that values of an operand and of what is absent are equal to, and which.

    Of what is absent all have them that have any; the operand is the one with more of them.
    """
    found: list[set[str]] = []
    for streams in operands:
        known = [{datum for datum, _ in each.equal} for each in streams]
        of_operand = set.intersection(*known) if known else set()
        of_absent = [of_operand & dict(equal_terms(each)).keys() for each in absent]
        having = [each for each in of_absent if each]
        found.append(set.intersection(*having) if having else set())
    side = max(range(len(found)), key=lambda i: len(found[i]))
    return tuple(sorted(found[side])), side


def _absent(
    decisions: Decisions, statement: Query, blocks: Sequence[int], unit: AbsentUnit
) -> Iterator[tuple[DecisionCompiler, Clause, Disjunct]]:
    """Yield what an absent unit reads: a stream for each block and disjunct."""
    for block, disjuncts in unit.blocks:
        variables = tuple(v for v in statement.variables if v.block in (*blocks, block))
        alone = replace(statement, variables=variables)
        names = {v.name for v in statement.variables if v.block == block}
        for disjunct in disjuncts:
            own, rest = held_against_data(disjunct, names, decisions.compiler(alone, {}).texts)
            node = From(block, where=(own,))
            compiler = decisions.compiler(alone, {id(node): own})
            # A key leads from the document, so that the block itself must be asked for.
            needed = compiler.terms(rest) | {decisions.query.blocks[block].root}
            absent = node if own != Disjunct() else block
            clause = compiler.tuples(absent, needed, ByData.TOGETHER)
            yield compiler, clause, rest


def _operands(compiler: DecisionCompiler, node: Ordered, needed: frozenset[str]) -> list[Clause]:
    """Compile the operands of a decision; rights of NEXT compete by the data that find them."""
    is_next = node.kind is DecisionKind.NEXT
    return [
        compiler.tuples(operand, needed, ByData.EACH if is_next and side else ByData.NO)
        for side, operand in enumerate(node.operands)
    ]


def pairs_clause(
    compiler: DecisionCompiler, node: Ordered, where: Disjunct, needed_above: frozenset[str]
) -> Clause:
    """Return the clause of decided tuples, with its operands' before it."""
    decisions, built = compiler.decisions, compiler.attach(node.origin)
    decision, fit = built.decision, compiler.choice[id(node)]
    assert isinstance(decision, Decision)
    blocks = tuple(blocks_of(node))
    needed = needed_above | compiler.terms(where) | compiler.terms(fit) | decisions.chosen(blocks)
    below = _operands(compiler, node, needed)
    streams = [decisions.stream(below[0])]
    streams += [decisions.stream(each, node.kind) for each in below[1:]]
    streams[decision.held_side] = streams[decision.held_side].by(decision.held)
    if len(streams) > 1:
        decided = Decided(decision, streams[0], streams[1], conjunction_of(scored(fit)[0]))
    else:
        decided = Decided(decision, streams[0])
    roots = tuple((GraphNode(each.tuple_variables[0], -1, True),) for each in below)
    template, row, _ = template_of(JoinGraph(roots))
    read = (*below, *built.deciding)
    stratum = 1 + max(each.query_class.stratum for each in read)
    own = built.compared & decisions.chosen(blocks)
    sources = tuple(ClauseSource(None, each, each.query_class.stratum + 1, 0) for each in below)
    tested, where_else = _tested(where, below, compiler.texts)
    residuals, tests, guard = split(where_else)
    compared = own.union(compared_in(fit), compared_in(where), *(each.compared for each in below))
    retention_us = decision.retention_us
    clause = Clause(
        query_class=QueryClass(template, row, False, stratum, decided),
        blocks=tuple(block for each in below for block in each.blocks),
        window_us=retention_us,
        sources=sources,
        places={},
        box=(
            *(test for s, each in enumerate(below) for test in tested_below(each, s)),
            *tested,
            *_scores(fit, below),
            *_steps(decision, below),
            *_taking(decision, built.deciding),
            *built.bars,
        ),
        residuals=residuals,
        tests=tests,
        condition=compile_condition(residuals, tests),
        compared=tuple(sorted(compared)),
        carried=tuple(sorted(needed_above | compared)),
        similar=in_text(below, fit),
        deciding=built.deciding,
        origin=node.origin,
        guard=guard,
    )
    compiler.clauses.append(clause)
    return clause


def _tested(
    where: Disjunct, below: Sequence[Clause], texts: Collection[str]
) -> tuple[list[Test], Disjunct]:
    """Return the tests of values against parameters in WHERE, and what else is asked there."""
    places = _places(below)
    tests: list[Test] = []
    others: list[Residual] = []
    for residual in where.residuals:
        found = data_test(residual, texts)
        if found is not None and isinstance(found[1].data, Parameter):
            value, test = found
            tests.append(Test(places[term(value)], *test))
        else:
            others.append(residual)
    return tests, replace(where, residuals=tuple(others))


def _places(below: Sequence[Clause]) -> dict[str, Place]:
    """Return where the values are that operands hand on."""
    return {
        name: Place(side, -1, position)
        for side, clause in enumerate(below)
        for position, name in enumerate(clause.carried, 1)
    }


def _steps(decision: Decision, below: Sequence[Clause]) -> Iterator[Test]:
    """Yield what says for which data a tuple was decided: its own window, or all behind its bar."""
    if isinstance(decision.window_us, Parameter):
        if decision.is_graded:
            yield Test(WINDOW, "=", decision.window_us)
        else:
            yield Test(BAR, ">", decision.window_us)
    if any(fit.right.threshold for fit in decision.fits):
        [_, right] = below
        for test in right.box:
            if test.operator in INEQUALITIES and isinstance(test.data, Parameter):
                yield Test(BAR, _BARRED[test.operator], test.data)


def _taking(decision: Decision, deciding: Sequence[Clause]) -> Iterator[Test]:
    """Yield what says for which data a tuple is not taken away."""
    absent = {case.stream.name for each in decision.absences for case in each.cases}
    read = [each for each in deciding if each.stream in absent]
    for operator, data in dict.fromkeys(test[1:3] for each in read for test in each.box):
        if isinstance(data, Parameter) and operator in INEQUALITIES:
            yield Test(BAR, _BARRED[operator], data)
    for own in dict.fromkeys(tuple(held_equal(each)) for each in read):
        if {test.datum for test in own} <= set(decision.held):
            continue
        yield (
            own[0]._replace(operator=NONE_OF)
            if len(own) == 1
            else Test(TAKEN, NONE_OF, JointData(own))
        )
    for window_us in dict.fromkeys(each.window_us for each in decision.absences):
        if isinstance(window_us, Parameter):
            yield Test(BAR, ">", window_us)


def _scores(fit: Disjunct, below: Sequence[Clause]) -> Iterator[Test]:
    """Yield the test of a measure of both operands that is held against data."""
    _, join = scored(fit)
    if join is not None:
        places = _places(below)
        yield test_of(join.residual, places.__getitem__)


def _bars(nodes: Iterable[Ordered], kind: DecisionKind) -> Iterator[Test]:
    """Yield for which thresholds a tuple was decided, by scores of pairs, or of what is absent."""
    for node in nodes:
        asked = [each for unit in node.absences for _, own in unit.blocks for each in own]
        if kind is DecisionKind.NEXT:
            asked += node.disjuncts
        for join in filter(None, (scored(each)[1] for each in asked)):
            assert isinstance(join.threshold, Parameter)
            yield Test(BAR, _BARRED[join.operator], join.threshold)


_BARRED = {">": "<=", ">=": "<", "<": ">=", "<=": ">"}
"""How a bar is held against data, by how values are held against it."""
