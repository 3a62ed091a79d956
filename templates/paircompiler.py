"""Compiles decisions of pairs and of tuples alone, and the clauses that hand decided tuples on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING

from templates.absentrows import AbsentRows, absent_rows, hand_on_absent
from templates.box import BAR, NONE_OF, TAKEN, WINDOW, JointData, Place, Test
from templates.built import Built
from templates.clause import Clause, ClauseSource
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
from templates.exceptions import compared_name, spared, spared_by_absent, spared_by_rights
from templates.founddata import AskedOf, ByData, data_asked_of_rights
from templates.haddata import HadData, Operands
from templates.helddata import held_equal, left_over, ways_held
from templates.joingraph import GraphNode, JoinGraph
from templates.measured import in_text, test_of
from templates.ordered import (
    Ordered,
    blocks_of,
    choices,
    predicates_of,
)
from templates.queryclass import QueryClass
from templates.saiddata import data_named
from templates.similarterms import at_zero, scored
from templates.template import template_of
from templates.tuplestreams import tested_below
from xscl.evaluation import compile_condition
from xscl.path import Parameter, PathValue, value_parameters
from xscl.pattern import INEQUALITIES
from xscl.query import (
    Disjunct,
    Query,
    Residual,
    SimilarityJoin,
    operand_parameters,
    term,
)

if TYPE_CHECKING:
    from templates.decisioncompiler import DecisionCompiler, Decisions

__all__ = ["build_pairs", "pairs_clause", "parameters_asked"]


def build_pairs(decisions: Decisions, nodes: Sequence[tuple[Query, Ordered]]) -> Built:
    """Return a decision of pairs, or of tuples alone, with the clauses that it reads."""
    # Of an alternative of which the braces never hold there is no choice.
    some_of = [(each, some) for each in nodes if (some := _choices_of(decisions, *each))]
    nodes, alternatives = [each for each, _ in some_of], [some for _, some in some_of]
    had = HadData(nodes[0][1].kind)
    asking = decisions.asking.get(nodes[0][1].origin, AskedOf.NOTHING)
    asks_each = asking is AskedOf.ROWS
    by_data = _by_data(nodes, asking)
    data: list[tuple[Test, ...]] = []
    for side, own in enumerate(by_data):
        operands = [each.operand(side) for each in chain(*alternatives)]
        asked = data_asked_of_rights(operands, had.of_competing) if own.asks_each else ()
        if asking.is_of_operand and not side:
            asked = _data_of_all(nodes, has_windows=asking is AskedOf.OPERAND_WITH_WINDOWS)
        data.append(asked)
        for each, operand in zip(chain(*alternatives), operands, strict=True):
            each.hand_on(side, operand, own, had.of_competing, data[side])
        had.know([[each.clauses for each in some] for some in alternatives])
    compilers = [each.compiler for each in chain(*alternatives)]
    deciding = [clause for each in chain(*alternatives) for clause in each.clauses]
    compared: set[str] = set()
    taking: list[AbsentRows] = []
    for (statement, node), some in zip(nodes, alternatives, strict=True):
        blocks = tuple(blocks_of(node))
        beside = [each.clauses for each in some]
        for number, unit in enumerate(node.absences):
            rows = list(absent_rows(decisions, statement, blocks, number, unit, beside))
            compilers += [each.compiler for each in rows]
            deciding += [each.clause for each in rows]
            taking += rows
            read = (compared_in(each.asked) for each in rows)
            compared |= decisions.chosen(blocks) & frozenset[str]().union(*read)
    hand_on_absent(taking, had.of_all, asks_each=asks_each)
    of_rights = [had.asked_of_right(each.clauses, each.rest) for each in chain(*alternatives)]
    of_absent = [had.asked_of_absent(each.clause, each.beside, each.rest) for each in taking]
    said = [had.window_of_absent(each.window_us, each.beside) for each in taking]
    is_next = node.kind is DecisionKind.NEXT
    competing = [each.clauses[1] for each in chain(*alternatives)] if is_next else []
    by_rights = spared_by_rights([ways_held(each, had.used[0]) for each in competing])
    of_both = [*had.used[0], *had.used[1]]
    by_absent = spared_by_absent([ways_held(each.clause, of_both) for each in taking], by_rights)
    lefts: list[TupleStream] = []
    fits: list[Fit] = []
    for each, condition in zip(chain(*alternatives), of_rights, strict=True):
        left, *rights = _streams(decisions, each.clauses, node.kind, had.used, by_rights)
        fits += [Fit(left, right, condition, at_zero(each.score)) for right in rights]
        lefts += [] if rights else [left]
    absences: dict[int, list[AbsentCase]] = {}
    for taken, condition, window in zip(taking, of_absent, said, strict=True):
        stream = decisions.absent(taken.clause, of_both, by_absent, asks_each=asks_each)
        names = tuple(sorted({clause.stream for own in taken.beside for clause in own}))
        case = AbsentCase(taken.blocks, stream, condition, names, at_zero(taken.score), window)
        absences.setdefault(taken.unit, []).append(case)
    decision = Decision(
        node.kind,
        tuple(dict.fromkeys(lefts)),
        tuple(dict.fromkeys(fits)),
        tuple(
            Absent.of(absences.get(n, ()), unit.window_us) for n, unit in enumerate(node.absences)
        ),
        node.window_us,
        node.within_us,
        decisions.grace_us,
        node.is_whole,
        had.used,
    )
    built = Built.of(decision, decisions.catalog, compilers, deciding, compared)
    bars = dict.fromkeys(_bars((node for _, node in nodes), node.kind))
    return replace(
        built, bars=tuple(bars), by_data=by_data, data=tuple(data), spared=(by_rights, by_absent)
    )


@dataclass
class _Choice:
    """The operands of a decision under one choice of disjuncts, with what is asked of both.

    It is a `score` that is held against data, and the `rest`.
    """

    compiler: DecisionCompiler
    node: Ordered
    rest: Disjunct
    score: SimilarityJoin | None
    needed: frozenset[str]
    clauses: list[Clause] = field(default_factory=list)

    def operand(self, side: int) -> Clause:
        """Compile an operand."""
        return self.compiler.operand(self.node.operands[side], self.needed)

    def hand_on(
        self,
        side: int,
        operand: Clause,
        by_data: ByData,
        had: Collection[str],
        data: Collection[Test],
    ) -> None:
        """Have the next operand handed on."""
        self.compiler.hand_on(self.node.operands[side], operand, by_data, had, data)
        self.clauses.append(operand)


def _choices_of(decisions: Decisions, statement: Query, node: Ordered) -> list[_Choice]:
    """Return the choices of disjuncts of a decision, none of them compiled yet."""
    absent = [d for unit in node.absences for _, own in unit.blocks for d in own]
    found: list[_Choice] = []
    for choice in choices(node):
        compiler = decisions.compiler(statement, choice)
        asked = [choice[id(node)], *absent]
        needed = decisions.chosen(tuple(blocks_of(node))).union(*map(compiler.terms, asked))
        found.append(_Choice(compiler, node, *scored(choice[id(node)]), needed))
    return found


def _streams(
    decisions: Decisions,
    operands: Operands,
    kind: DecisionKind,
    had: tuple[tuple[str, ...], tuple[str, ...]],
    spared: str | None,
) -> list[TupleStream]:
    """Return the streams of operands, whose values data are equal to that are `had`.

    Of the datum that is `spared` rights have sets.
    """
    first, *others = operands
    streams = [decisions.stream(first).by(had[0])]
    for other in others:
        if kind is DecisionKind.NEXT:
            stream = decisions.competing(other, had[0], spared)
        else:
            stream = decisions.stream(other)
        streams.append(stream.by(had[1]))
    return streams


def _data_of_all(nodes: Sequence[tuple[Query, Ordered]], *, has_windows: bool) -> tuple[Test, ...]:
    """Return all data that anything is held against in what is decided.

    Of its windows those of what is absent may be among them.
    """
    names: set[str] = set()
    for query, node in nodes:
        asked = [*node.disjuncts]
        blocks = [block for unit in node.absences for block, _ in unit.blocks]
        asked += [each for unit in node.absences for _, own in unit.blocks for each in own]
        if node.kind is DecisionKind.NEXT:
            blocks += blocks_of(node.operands[1])
            asked += predicates_of(node.operands[1])
        names |= parameters_asked(query, blocks, asked)
        windows = [unit.window_us for unit in node.absences if has_windows]
        names |= {each.name for each in windows if isinstance(each, Parameter)}
    return data_named(names, nodes[0][0].text_parameters)


def _by_data(nodes: Sequence[tuple[Query, Ordered]], asking: AskedOf) -> tuple[ByData, ...]:
    """Return which operands of a decision are handed on by the data that find them.

    Rights of NEXT are, which compete by them, and what is asked for data that what competes, or is
    absent, is held against as well.
    """
    count, is_next = len(nodes[0][1].operands), nodes[0][1].kind is DecisionKind.NEXT
    own: list[set[str]] = [set() for _ in range(count)]
    beside: set[str] = set()
    for query, node in nodes if nodes[0][0].parameters else ():
        for side, operand in enumerate(node.operands):
            own[side] |= parameters_asked(query, blocks_of(operand), predicates_of(operand))
        for block, asked in (pair for unit in node.absences for pair in unit.blocks):
            beside |= parameters_asked(query, [block], asked)
    if is_next:
        beside |= own[1]
    of_rights = ByData.EACH_ASKED if asking is AskedOf.ROWS else ByData.EACH
    is_asked = asking.is_of_operand
    of_others = (ByData.EACH if each & beside or is_asked else ByData.NO for each in own)
    return tuple(of_rights if is_next and n else each for n, each in enumerate(of_others))


def parameters_asked(query: Query, blocks: Iterable[int], asked: Iterable[Disjunct]) -> set[str]:
    """Return the parameters of some blocks, and of what is asked."""
    of_blocks = (value_parameters(PathValue(query.blocks[block].path)) for block in blocks)
    operands = (operand for each in asked for operand in each.operands())
    return {p.name for p in chain(*of_blocks, *map(operand_parameters, operands))}


def pairs_clause(
    compiler: DecisionCompiler, node: Ordered, where: Disjunct, needed_above: frozenset[str]
) -> Clause:
    """Return the clause of decided tuples, with its operands' before it."""
    decisions, built = compiler.decisions, compiler.attach(node.origin)
    decision, fit = built.decision, compiler.choice[id(node)]
    assert isinstance(decision, Decision)
    blocks = tuple(blocks_of(node))
    needed = needed_above | compiler.terms(where) | compiler.terms(fit) | decisions.chosen(blocks)
    is_next = node.kind is DecisionKind.NEXT
    handed_on = zip(node.operands, built.by_data, built.data, strict=True)
    below = [
        compiler.tuples(each, needed, by_data, decision.had[0] if side and is_next else (), data)
        for side, (each, by_data, data) in enumerate(handed_on)
    ]
    streams = _streams(decisions, below, node.kind, decision.had, built.spared[0])
    if len(streams) > 1:
        had = {d: name for d, name in streams[0].equal if d in decision.had[0]}
        decided = Decided(decision, streams[0], streams[1], conjunction_of(scored(fit)[0], had))
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
            *_taking(decision, built.deciding, built.spared[1]),
            *_sparing(decision, built.deciding, built.spared),
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
        for test in left_over(right, decision.had[0]):
            if test.operator in INEQUALITIES and isinstance(test.data, Parameter):
                yield Test(BAR, _BARRED[test.operator], test.data, form=test.form)


def _taking(
    decision: Decision, deciding: Sequence[Clause], spared_datum: str | None
) -> Iterator[Test]:
    """Yield what says for which data a tuple is not taken away, unless it says what is spared."""
    absent = {case.stream.name for each in decision.absences for case in each.cases}
    read = [each for each in deciding if each.stream in absent]
    had = [*decision.had[0], *decision.had[1]]
    others = (test for each in read for test in left_over(each, had))
    for operator, data, _, form in dict.fromkeys(test[1:] for test in others):
        if isinstance(data, Parameter) and operator in INEQUALITIES:
            yield Test(BAR, _BARRED[operator], data, form=form)
    for own in dict.fromkeys(tuple(held_equal(each)) for each in read if spared_datum is None):
        if {test.datum for test in own} <= set(had):
            continue
        yield (
            own[0]._replace(operator=NONE_OF)
            if len(own) == 1
            else Test(TAKEN, NONE_OF, JointData(own))
        )
    for window_us in dict.fromkeys(each.window_us for each in decision.absences):
        if isinstance(window_us, Parameter):
            yield Test(BAR, ">", window_us)


def _sparing(
    decision: Decision, deciding: Sequence[Clause], data: tuple[str | None, str | None]
) -> Iterator[Test]:
    """Yield what says that a tuple is for some data alone: others are served, or taken away."""
    absent = {case.stream.name for each in decision.absences for case in each.cases}
    rights = {fit.right.name for fit in decision.fits}
    read = ((rights, decision.had[0]), (absent, [*decision.had[0], *decision.had[1]]))
    found = (
        spared(test)
        for datum, (streams, had) in zip(data, read, strict=True)
        for clause in deciding
        if datum is not None and clause.stream in streams
        for test in left_over(clause, had)
        if compared_name(test) == datum
    )
    yield from dict.fromkeys(found)


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
