"""Compiles repetitions: the streams that runs are found in, and the clause that hands them on.

Of elements everything is handed on that any condition of the query asks of them, or SELECT: so a
run is found once, whatever is asked of it above.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import chain
from typing import TYPE_CHECKING

from templates.box import Test, place_at, terms_tested
from templates.built import Built
from templates.chaindecision import ChainDecision, DecidedChains
from templates.clause import Clause, ClauseSource
from templates.conjunctions import compared_in, elements_behind, split
from templates.elements import of_candidate
from templates.founddata import ByData, by_datum
from templates.givenconstants import given_tests, known_us
from templates.helddata import equal_terms, held_equal
from templates.joingraph import GraphNode, JoinGraph
from templates.measured import in_text
from templates.ordered import Repeated, asked_of_elements, blocks_of, choices, predicates_of
from templates.paircompiler import parameters_asked
from templates.queryclass import QueryClass
from templates.runconstants import data_read, given_of, lengths_of, with_gap_asked, with_said
from templates.rundecision import (
    AbsentElement,
    Begin,
    CountedKey,
    Counting,
    DecidedRuns,
    FoldValue,
    RunDecision,
    datum_term,
)
from templates.runelements import BlockElements, compile_elements, data_of_all, hand_on
from templates.saiddata import SaidData
from templates.template import template_of
from templates.tuplestreams import tested_below
from xscl.comparison import Elements, operands_below
from xscl.counting import is_counted
from xscl.evaluation import compile_condition
from xscl.pattern import TuplePattern
from xscl.query import (
    Disjunct,
    Operand,
    Query,
    SelectKind,
    SimilarityJoin,
    operand_terms,
    term,
)
from xscl.sequence import units_of

if TYPE_CHECKING:
    from templates.clausecompiler import Compiler
    from templates.decisioncompiler import DecisionCompiler, Decisions

__all__ = [
    "asked_anywhere",
    "build_runs",
    "given_keys",
    "handed_on",
    "runs_clause",
    "said_data",
    "tested_behind",
]


def build_runs(decisions: Decisions, nodes: Sequence[tuple[Query, Repeated]]) -> Built:
    """Return a repetition with the clauses that it reads."""
    compilers: list[Compiler] = []
    deciding: list[Clause] = []
    begins: list[Begin] = []
    counting = _counting(decisions, nodes[0][0]) if is_counted(decisions.query) else None
    keys = () if counting is None else counting.keys
    of_left = {term(t) for key in keys for t in operand_terms(key.operand)}
    asks_each = nodes[0][1].origin in decisions.asking
    if asks_each:
        nodes = [(statement, with_gap_asked(node)) for statement, node in nodes]
    by_left, by_elements = data_read(nodes) if asks_each and counting is None else ((), ())
    said = SaidData.of(by_left, by_elements)
    by_data = ByData.EACH_ASKED if by_left else _by_data(nodes)
    seeks = bool(nodes[0][0].parameters) and counting is None and not asks_each
    lefts: list[Clause] = []
    for statement, node in nodes:
        folds = tuple(FoldValue(*each) for each in node.folds)
        for choice in choices(node):
            first = choice[id(node)]
            absent = tuple(each.asked for each in node.absences)
            begin = Begin(None, first, node.each, node.go_on, folds, node.left_keys, absent)
            if node.operand is not None:
                compiler = decisions.compiler(statement, choice)
                compilers.append(compiler)
                asked = compiler.terms(first).union(*map(compiler.terms, node.further()))
                needed = decisions.chosen(tuple(blocks_of(node.operand))) | asked | of_left
                lefts.append(compiler.tuples(node.operand, needed, by_data, (), by_left))
            begins.append(begin)
    deciding += lefts
    known = _known(lefts)
    statement, node = nodes[0]
    operands = asked_anywhere(decisions)
    operands += [
        below.operand
        for key in keys
        for below in operands_below(key.operand)
        if isinstance(below, Elements) and below.operand is not None
    ]

    def compiled(
        blocks: Sequence[int], keys: Sequence[Sequence[str]], known: Collection[str]
    ) -> list[BlockElements]:
        found = [
            compile_elements(
                *(decisions, statement, block, own, operands),
                known=known,
                seeks=seeks,
                asks_each=asks_each,
            )
            for block, own in zip(blocks, keys, strict=True)
        ]
        compilers.extend(each.compiler for each in found)
        deciding.extend(each.clause for each in found)
        return found

    repeated = compiled(node.unit.blocks, node.keys, known)
    known_behind = known.union(str(test.datum) for test in repeated[0].data)
    away = [compiled(each.unit.blocks, each.keys, known_behind) for each in node.absences]
    of_absent = (test for test in data_of_all(chain(*away)) if test.datum not in known)
    data = by_datum({*data_of_all(repeated), *of_absent, *by_elements})
    elements_read = hand_on(repeated, data)
    absences = tuple(
        AbsentElement(
            each.step,
            hand_on(own, data_of_all(own)),
            (),
            known_us(each.window_us),
        )
        for each, own in zip(node.absences, away, strict=True)
    )
    read = [*elements_read, *(each for absent in absences for each in absent.elements)]
    asked_for = {datum for each in read for datum in each.data}
    asked_for.update(str(test.datum) for test in by_left)
    of_had = {value.term for each in read for test in each.had for value in test.given}
    had = [datum for datum in known if datum in asked_for or datum_term(datum) in of_had]
    # Those that elements say as well stand first.
    had.sort(key=lambda datum: (datum not in elements_read[0].data, datum))
    if lefts:
        begins = [
            replace(begin, left=decisions.told_apart(left, had))
            for begin, left in zip(begins, lefts, strict=True)
        ]
    begins = [with_said(begin, said) for begin in begins]
    lengths = tuple(lengths_of(node))
    are_said = asks_each and counting is None
    decision = RunDecision(
        node.is_next,
        tuple(dict.fromkeys(begins)),
        elements_read,
        known_us(node.gap_us),
        known_us(node.window_us),
        node.within_us,
        known_us(node.retention_us),
        decisions.grace_us,
        node.unit.run,
        absences,
        counting,
        tuple(had),
        () if asks_each else given_of(nodes, lefts, read),
        () if are_said else lengths,
        lengths if are_said else (),
    )
    # Each alternative of what stands before compares what it binds.
    of_absences = (each.compared for _, other in nodes for each in other.absences)
    compared = frozenset[str]().union(*of_absences)
    built = Built.of(decision, decisions.catalog, compilers, deciding, compared)
    return replace(built, by_data=(by_data,), data=(by_left,), said=said)


def _by_data(nodes: Sequence[tuple[Query, Repeated]]) -> ByData:
    """Return whether what stands before is handed on by the data that find it.

    It is where elements, or what must be absent, are held against them too.
    """
    statement, node = nodes[0]
    if not statement.parameters or node.operand is None:
        return ByData.NO
    beside = [*node.unit.blocks, *(b for absent in node.absences for b in absent.unit.blocks)]
    own = [
        parameters_asked(query, blocks_of(n.operand), predicates_of(n.operand))
        for query, n in nodes
        if n.operand is not None
    ]
    is_asked = set[str]().union(*own) & parameters_asked(statement, beside, ())
    return ByData.EACH if is_asked else ByData.NO


def _known(lefts: Sequence[Clause]) -> set[str]:
    """Return the data that values of all that stands before are equal to."""
    return set.intersection(*(set(equal_terms(left)) for left in lefts)) if lefts else set()


def _counting(decisions: Decisions, statement: Query) -> Counting:
    """Return how the runs of a statement are counted."""
    query = decisions.query
    blocks = [block for unit in units_of(query.root) for block in unit]
    visible = tuple((block, query.visible_in([block])) for block in blocks)
    read = () if statement.rows is None else statement.rows.keys
    keys = []
    for key in read:
        of_elements = any(isinstance(each, Elements) for each in operands_below(key))
        keys.append(CountedKey(of_candidate(key) if of_elements else key, of_elements))
    has_steps = query.kind is SelectKind.COMPRESSED
    data = tuple(place for place, _ in decisions.same.asked_behind())
    return Counting(decisions.point, visible, has_steps, tuple(keys), data)


def tested_behind(
    decisions: Decisions, carried: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[Test, ...]]:
    """Return the terms of counted runs that are held against data, and how; they stand last."""
    asked = [parameter for _, parameter in decisions.same.asked_behind()]
    first = 1 + len(carried)
    tests = [Test(place_at(0, -1, first + i), "=", each) for i, each in enumerate(asked)]
    return terms_tested([test.place for test in tests]), tuple(tests)


def given_keys(
    decisions: Decisions, carried: Sequence[str], keys: Iterable[str]
) -> tuple[Test, ...]:
    """Return that keys which tuples carry have the values of parameters."""
    given = decisions.same.given()
    return tuple(
        Test(place_at(0, -1, 1 + carried.index(key)), "=", given[key])
        for key in keys
        if key in given
    )


def asked_anywhere(decisions: Decisions) -> list[Operand]:
    """Return what is asked of elements, also where alternatives differ behind the repetition."""
    operands: list[Operand] = []
    for statement in decisions.statements:
        operands += asked_of_elements(statement.root)
        operands += elements_behind(statement)
    return operands


def runs_clause(
    compiler: DecisionCompiler, node: Repeated, where: Disjunct, needed_above: frozenset[str]
) -> Clause:
    """Compile what hands on the runs of a repetition, with what stands before them."""
    decisions = compiler.decisions
    built = compiler.attach(node.origin)
    decision = built.decision
    assert isinstance(decision, RunDecision)
    first, unit = compiler.choice[id(node)], node.unit
    blocks = tuple(blocks_of(node))
    needed = needed_above | compiler.terms(where) | compiler.terms(first) | set(node.left_keys)
    needed |= decisions.chosen(blocks)
    [by_data], [data], said = built.by_data, built.data, built.said
    assert said is not None
    below = []
    if node.operand is not None:
        below.append(compiler.tuples(node.operand, needed, by_data, (), data))
    left = decisions.told_apart(below[0], decision.had) if below else None
    carried = tuple(
        sorted({unit.run, *node.run_keys, *(t for each in below for t in each.carried)})
    )
    tested = below[0].tested_terms if below else ()
    # What is tested of the left operand stands behind the terms of the run.
    box = tuple(t for each in below for t in tested_below(replace(each, carried=carried), 0))
    if not below:
        box = given_keys(decisions, carried, node.run_keys)
    told = tuple(f"{unit.run}${datum}" for datum in decision.data)
    box += tuple(said_data(decision, built.deciding, 1 + len(carried) + len(tested)))
    tested += told
    if decision.counting is not None:
        carried = (unit.run,)
        tested, box = tested_behind(decisions, carried)
    given = tuple(f"{unit.run}$${each.parameter}" for each in decision.given)
    box += given_tests(decision.given, 1 + len(carried) + len(tested))
    tested += given
    runs = DecidedRuns(
        *(decision, left, said.conjunction(first), "", carried, tested, ()),
        *(unit.run, node.run_keys, told, given),
    )
    plain_keys = {key for key in node.left_keys if key[0] != "+"}
    steps_compared = [compared_in(each) for each in (first, where, *node.each_step())]
    plain_keys |= built.compared & decisions.chosen(blocks)
    compared = frozenset(plain_keys).union(*steps_compared, *(each.compared for each in below))
    if decision.counting is not None:
        compared = frozenset()
    read = (*below, *built.deciding)
    counts = "" if decision.counting is None else unit.run
    similar = () if decision.counting is not None else in_text(below or (None,), first)
    return handed_on(
        compiler,
        node.origin,
        runs,
        blocks,
        read,
        where,
        compared,
        needed_above,
        similar,
        counts,
        box,
    )


def said_data(
    decision: RunDecision | ChainDecision, read: Sequence[Clause], first: int
) -> Iterator[Test]:
    """Yield that what elements say are data; a run carries it from a place on."""
    elements = (
        decision.elements if isinstance(decision, RunDecision) else decision.links[0].elements
    )
    stream = elements[0].stream.name
    [clause] = (each for each in read if each.stream == stream)
    tests = {test.datum: test for test in held_equal(clause)}
    for number, datum in enumerate(decision.data, first):
        yield tests[datum]._replace(place=place_at(0, -1, number))


def handed_on(
    compiler: DecisionCompiler,
    origin: int,
    decided: DecidedRuns | DecidedChains,
    blocks: tuple[int, ...],
    read: tuple[Clause, ...],
    where: Disjunct,
    compared: frozenset[str],
    needed_above: frozenset[str],
    similar: tuple[SimilarityJoin, ...],
    counts: str = "",
    box: tuple[Test, ...] = (),
) -> Clause:
    """Return the clause of the tuples of runs, a stream of which is named here by its content.

    `read` are the clauses of all that they are made of, `similar` the similarity joins of the
    tuples, `box` what is tested of them against data.
    """
    stream = f"#{blake2b(repr(decided).encode(), digest_size=16).hexdigest()}"
    pattern = TuplePattern(stream, decided.terms)
    compiler.patterns.append(pattern)
    variables = compiler.catalog.add(pattern)
    named = replace(decided, stream=stream, variables=variables)
    template, row, _ = template_of(JoinGraph(((GraphNode(variables[0], -1, True),),)))
    stratum = 1 + max(each.query_class.stratum for each in read)
    residuals, tests, guard = split(where)
    clause = Clause(
        query_class=QueryClass(template, row, False, stratum, named),
        blocks=blocks,
        window_us=0,
        sources=(),
        places={},
        box=(),
        residuals=residuals,
        tests=tests,
        condition=compile_condition(residuals, tests),
        compared=tuple(sorted(name for name in compared if name[0] != "+")),
        carried=decided.carried,
        similar=similar,
        stream=stream,
        tuple_variables=variables,
        deciding=read,
        origin=origin,
        counts=counts,
    )
    tuples = replace(
        clause,
        window_us=decided.decision.kept_us,
        stream="",
        tuple_variables=(),
        sources=(ClauseSource(None, clause, stratum, 0),),
        box=box,
        carried=tuple(sorted(needed_above.union(clause.compared))),
        guard=guard,
    )
    compiler.clauses.append(tuples)
    return tuples
