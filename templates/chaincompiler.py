"""Compiles chains under MATCH: the streams that runs over them are found in, and what is handed on.

Of elements everything is handed on that any condition of the query asks of them, or SELECT, as of
those of a repetition (`templates.runcompiler`).  STRICT and PARTITION read all documents of the
chain's streams besides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from templates.box import Test
from templates.built import Built
from templates.chaindecision import (
    ChainDecision,
    ChainLink,
    DecidedChains,
    HandedOnStep,
)
from templates.clause import Clause
from templates.conjunctions import compared_in
from templates.elements import RepeatedUnit, of_elements, operand_with_elements
from templates.founddata import ByData, by_datum, finds_by_data
from templates.givenconstants import (
    GivenDatum,
    GivenLength,
    asked_of_gap,
    given_tests,
    known_us,
    named_lengths,
)
from templates.optionalpaths import fresh_paths
from templates.ordered import Chained, ChainStep
from templates.paircompiler import parameters_asked
from templates.runcompiler import (
    asked_anywhere,
    given_keys,
    handed_on,
    said_data,
    tested_behind,
)
from templates.rundecision import (
    AbsentElement,
    CountedKey,
    Counting,
    ElementStream,
    FoldValue,
)
from templates.runelements import (
    BlockElements,
    compile_elements,
    data_of_all,
    hand_on,
)
from templates.saiddata import SaidData, data_named, parameters_read
from templates.tuplestreams import tested_below
from xscl.counting import counts_chain
from xscl.path import ANY, Axis, NodeTest, Path, Step
from xscl.query import (
    Block,
    Disjunct,
    Operand,
    Query,
    SelectKind,
    Strategy,
    Variable,
    VariableValue,
    operand_variables,
)

if TYPE_CHECKING:
    from templates.clausecompiler import Compiler
    from templates.decisioncompiler import DecisionCompiler, Decisions

__all__ = ["build_chain", "chain_clause"]

_EVERY = "#every"
"""The variable of the root of a document that is read whatever it is."""


class _Reading:
    """The streams that a chain reads, as they are compiled."""

    def __init__(
        self,
        decisions: Decisions,
        nodes: Sequence[tuple[Query, Chained]],
        keys: Sequence[CountedKey],
    ) -> None:
        self._decisions = decisions
        self._statements = [statement for statement, _ in nodes]
        of_keys = of_elements(key.operand for key in keys)
        self._operands: list[Operand] = [*of_keys, *asked_anywhere(decisions)]
        self.compilers: list[Compiler] = []
        self.deciding: list[Clause] = []
        self.by_data = _by_data(decisions, *nodes[0])

    def elements(
        self,
        unit: RepeatedUnit,
        keys: Sequence[tuple[str, ...]],
        *,
        known: Collection[str] = (),
        are_tested: bool = False,
    ) -> list[BlockElements]:
        """Compile the elements of a unit; see `compile_elements`."""
        found: list[BlockElements] = []
        for block, own in zip(unit.blocks, keys, strict=True):
            statement = next(s for s in self._statements if _has_block(s, block))
            elements = compile_elements(
                *(self._decisions, statement, block, own, self._operands),
                are_tested=are_tested,
                known=None if self.by_data is ByData.NO else known,
                asks_each=self.by_data.asks_each,
            )
            self.compilers.append(elements.compiler)
            self.deciding.append(elements.clause)
            found.append(elements)
        return found

    def documents(self, node: Chained) -> Iterator[ElementStream]:
        """Yield the documents of the chain's streams, under PARTITION only where its keys are."""
        blocks = self._statements[0].blocks
        paths = node.partition if node.strategy is Strategy.PARTITION else ()
        keys = tuple(f"{_EVERY}.{number}" for number in range(len(paths)))
        read = (blocks[b].stream for step in node.steps for b in step.unit.blocks)
        for stream in dict.fromkeys(read):
            path = Path((Step(Axis.CHILD, NodeTest(ANY, ANY), variable=_EVERY),))
            block = Block(
                stream, path, _EVERY, (_EVERY,), keys=tuple(zip(keys, paths, strict=True))
            )
            number = len(blocks)
            variables = tuple(Variable(name, number, name) for name in (_EVERY, *keys))
            statement = replace(self._statements[0], blocks=(*blocks, block), variables=variables)
            compiler = self._decisions.compiler(statement, {})
            compiler.look_at(map(VariableValue, keys))
            clause = compiler.tuples(number, frozenset({_EVERY, *keys}))
            self.compilers.append(compiler)
            self.deciding.append(clause)
            found = replace(self._decisions.stream(clause), chosen=keys)
            yield ElementStream(number, found, keys)


def _has_block(statement: Query, block: int) -> bool:
    return any(variable.block == block for variable in statement.variables)


def build_chain(decisions: Decisions, nodes: Sequence[tuple[Query, Chained]]) -> Built:
    """Return a chain with the clauses that it reads."""
    if nodes[0][1].origin in decisions.asking:
        nodes = [(statement, _with_gaps_asked(node)) for statement, node in nodes]
    _, node = nodes[0]
    counting = _counting(decisions, node) if counts_chain(decisions.query) else None
    reading = _Reading(decisions, nodes, () if counting is None else counting.keys)
    units = [
        reading.elements(step.unit, step.keys, are_tested=not number and not step.is_repeated)
        for number, step in enumerate(node.steps)
    ]
    # What a run begins with alone is asked behind.
    of_units = data_of_all(each for unit in units for each in unit if not each.are_tested)
    of_steps = (set(each.data) for unit in units for each in unit)
    known = [str(test.datum) for test in of_units or set.intersection(*of_steps)]
    absent = [reading.elements(each.unit, each.keys, known=known) for each in node.absences]
    by_first, by_elements = _data_said(nodes) if reading.by_data.asks_each else ((), ())
    said = SaidData.of((), (*by_first, *by_elements))
    of_all = by_datum({*of_units, *data_of_all(chain(*absent)), *by_elements})
    asked = [tuple(by_datum({*of_all, *by_first})), *[tuple(of_all)] * (len(units) - 1)]
    links = [
        _link(step, hand_on(unit, own), said.at(number, node.steps[0].unit.run))
        for number, (step, unit, own) in enumerate(zip(node.steps, units, asked, strict=True))
    ]
    data = sorted(set.intersection(*(set(each.data) for link in links for each in link.elements)))
    more = [str(test.datum) for test in by_first if test.datum not in data]
    links = [_saying(link, data if number else [*data, *more]) for number, link in enumerate(links)]
    absences = [
        AbsentElement(
            each.step,
            hand_on(own, data_of_all(own)),
            said.at(1, node.steps[0].unit.run).disjuncts(each.asked),
            known_us(each.window_us),
        )
        for each, own in zip(node.absences, absent, strict=True)
    ]
    is_contiguous = node.strategy in (Strategy.PARTITION, Strategy.STRICT)
    decision = ChainDecision(
        node.strategy,
        tuple(links),
        tuple(absences),
        tuple(reading.documents(node)) if is_contiguous else (),
        node.within_us,
        known_us(node.innermost_us),
        decisions.grace_us,
        counting,
        () if reading.by_data.asks_each else _given(nodes, units, absent),
        tuple(_lengths_of(node)),
    )
    # What another choice of alternatives binds is compared in its own reading alone.
    compared = frozenset[str]().union(
        *(step.compared for _, each in nodes for step in each.steps),
        *(absent.compared for _, each in nodes for absent in each.absences),
    )
    built = Built.of(decision, decisions.catalog, reading.compilers, reading.deciding, compared)
    by_data = reading.by_data if data or more else ByData.NO
    return replace(built, by_data=(by_data,), data=tuple(asked), said=said)


def _link(step: ChainStep, elements: tuple[ElementStream, ...], said: SaidData) -> ChainLink:
    """Return a step, whose conditions read data that runs say."""
    return ChainLink(
        step.unit.run,
        step.is_repeated,
        elements,
        said.disjuncts(step.first),
        said.disjuncts(step.each),
        tuple(said.fold(FoldValue(*each)) for each in step.folds),
        known_us(step.gap_us),
        known_us(step.window_us),
    )


def _by_data(decisions: Decisions, statement: Query, node: Chained) -> ByData:
    """Return whether elements are handed on by the data that find them: all steps have some."""
    if not statement.parameters:
        return ByData.NO
    if node.origin in decisions.asking and not counts_chain(statement):
        return ByData.EACH_ASKED
    of_steps = [parameters_asked(statement, step.unit.blocks, ()) for step in node.steps]
    return ByData.EACH if set.intersection(*of_steps) else ByData.NO


def _given(
    nodes: Sequence[tuple[Query, Chained]], *units: Iterable[Sequence[BlockElements]]
) -> tuple[GivenDatum, ...]:
    """Return the data that conditions read as constants, where no data find elements."""
    read = (each for several in units for unit in several for each in unit)
    if any(finds_by_data(each.clause) for each in read):
        return ()
    return tuple(map(GivenDatum.of, _data_read(nodes)))


def _data_said(
    nodes: Sequence[tuple[Query, Chained]],
) -> tuple[tuple[Test, ...], tuple[Test, ...]]:
    """Return the data that conditions read of the first element of a run, and of each.

    Where a function is of elements, these say them; and all of them where runs are found from
    behind, or begin with a repetition.
    """
    alone, within = _parameters(nodes)
    texts, node = nodes[0][0].text_parameters, nodes[0][1]
    if node.strategy is Strategy.ANY or node.steps[0].is_repeated:
        return (), data_named(alone | within, texts)
    return data_named(alone, texts), data_named(within, texts)


def _data_read(nodes: Sequence[tuple[Query, Chained]]) -> tuple[Test, ...]:
    """Return the data that conditions read."""
    return data_named(set[str]().union(*_parameters(nodes)), nodes[0][0].text_parameters)


def _parameters(nodes: Sequence[tuple[Query, Chained]]) -> tuple[set[str], set[str]]:
    """Return the parameters in conditions by themselves, and in what is of elements."""
    asked = [each for _, node in nodes for each in node.conditions()]
    asked += [each for _, node in nodes for step in node.steps for each in step.begin]
    alone, within = parameters_read(operand for each in asked for operand in each.operands())
    lengths = (each.parameter for _, node in nodes for each in _lengths_of(node))
    return alone.union(lengths), within


def _lengths_of(node: Chained) -> Iterator[GivenLength]:
    """Yield the lengths that are parameters."""
    yield from named_lengths({"within_us": node.given_within, "innermost_us": node.innermost_us})
    for place, step in enumerate(node.steps):
        yield from named_lengths({"gap_us": step.gap_us, "window_us": step.window_us}, place)
    for place, absent in enumerate(node.absences):
        yield from named_lengths({"absent": absent.window_us}, place)


def _with_gaps_asked(node: Chained) -> Chained:
    """Return a chain whose gaps are conditions, where they are parameters."""
    steps = tuple(
        replace(each, each=asked_of_gap(each.each, each.gap_us), gap_us=known_us(each.gap_us))
        for each in node.steps
    )
    return replace(node, steps=steps)


def _saying(link: ChainLink, data: Sequence[str]) -> ChainLink:
    """Return a step whose elements are told apart by some of the data that they say."""

    def told_apart(each: ElementStream) -> ElementStream:
        terms = dict(zip(each.data, each.stream.keys, strict=True))
        keys = tuple([terms[datum] for datum in data])
        return replace(each, stream=replace(each.stream, keys=keys), data=tuple(data))

    return replace(link, elements=tuple(map(told_apart, link.elements)))


def _counting(decisions: Decisions, node: Chained) -> Counting:
    """Return how the matches of a chain are counted."""
    query = decisions.query
    paths = fresh_paths(query)
    keys: list[CountedKey] = []
    for key in () if query.rows is None else query.rows.keys:
        unit = next(
            s.unit for s in node.steps if s.unit.variables.issuperset(operand_variables(key))
        )
        asked = operand_with_elements(key, (unit,), paths, unit)
        keys.append(CountedKey(asked, is_of_elements=True, block=unit.first))
    visible = tuple((step.block, query.visible_in([step.block])) for step in node.steps)
    has_steps = query.kind is SelectKind.COMPRESSED
    data = tuple(place for place, _ in decisions.same.asked_behind())
    return Counting(decisions.point, visible, has_steps, tuple(keys), data)


def chain_clause(
    compiler: DecisionCompiler, node: Chained, where: Disjunct, needed_above: frozenset[str]
) -> Clause:
    """Compile what hands on the runs over a chain."""
    decisions = compiler.decisions
    built = compiler.attach(node.origin)
    decision = built.decision
    assert isinstance(decision, ChainDecision)
    assert built.said is not None
    blocks = tuple(step.block for step in node.steps)
    if decision.counting is not None:
        return _counted_clause(compiler, node, built, where, needed_above)
    begins = [compiler.choice[id(step)] for step in node.steps]
    plain = [step for step in node.steps if not step.is_repeated]
    own_keys = {
        key
        for step in plain
        for block, keys in zip(step.unit.blocks, step.keys, strict=True)
        if block == step.block
        for key in keys
    }
    needed = needed_above | compiler.terms(where) | own_keys | decisions.chosen(blocks)
    needed = needed.union(*map(compiler.terms, begins))
    by_data, said_by_first = built.by_data[0], decision.links[0].elements[0].data
    below: list[Clause] = []
    steps: list[HandedOnStep] = []
    tested: tuple[str, ...] = ()
    box: tuple[Test, ...] = ()
    for step, begin, asked in zip(node.steps, begins, built.data, strict=True):
        stream = None
        if not step.is_repeated:
            below.append(compiler.tuples(step.block, needed, by_data, (), asked))
            if steps:
                stream = decisions.stream(below[-1]).by(decision.data)
            else:
                # A run begins with any element: which of them are an assignment's is asked behind.
                stream = decisions.told_apart(below[0], said_by_first)
                tested = below[0].tested_terms
        said = built.said.at(len(steps), node.steps[0].unit.run)
        steps.append(HandedOnStep(stream, said.conjunction(begin), step.unit.run, step.run_keys))
    carried_by_runs = {
        name for step in node.steps if step.is_repeated for name in (step.unit.run, *step.run_keys)
    }
    carried = tuple(sorted(carried_by_runs.union(*(each.carried for each in below))))
    if tested:
        box = tuple(tested_below(replace(below[0], carried=carried), 0))
    first = node.steps[0]
    own = first.keys[first.unit.blocks.index(first.block)]
    box += given_keys(decisions, carried, first.run_keys if first.is_repeated else own)
    box += tuple(said_data(decision, built.deciding, 1 + len(carried) + len(tested)))
    data = tuple(f"{first.unit.run}${datum}" for datum in decision.data)
    given = tuple(f"{first.unit.run}$${each.parameter}" for each in decision.given)
    box += given_tests(decision.given, 1 + len(carried) + len(tested) + len(data))
    tested = (*tested, *data, *given)
    chains = DecidedChains(decision, tuple(steps), "", carried, tested, (), data, given)
    compared = frozenset(own_keys | (built.compared & decisions.chosen(blocks))).union(
        *(compared_in(each) for each in (where, *begins)), *(each.compared for each in below)
    )
    read = (*below, *built.deciding)
    similar = tuple(dict.fromkeys(join for each in begins for join in each.similarity_joins))
    return handed_on(
        compiler,
        node.origin,
        chains,
        blocks,
        read,
        where,
        compared,
        needed_above,
        similar,
        box=box,
    )


def _counted_clause(
    compiler: DecisionCompiler,
    node: Chained,
    built: Built,
    where: Disjunct,
    needed_above: frozenset[str],
) -> Clause:
    """Compile what hands on how many matches of a chain there are."""
    decision = built.decision
    assert isinstance(decision, ChainDecision)
    steps = tuple(HandedOnStep(None, Disjunct(), step.unit.run, ()) for step in node.steps)
    run = node.steps[0].unit.run
    tested, box = tested_behind(compiler.decisions, (run,))
    given = tuple(f"{run}$${each.parameter}" for each in decision.given)
    box += given_tests(decision.given, 2 + len(tested))
    return handed_on(
        compiler,
        node.origin,
        DecidedChains(decision, steps, "", (run,), (*tested, *given), (), (), given),
        tuple(step.block for step in node.steps),
        built.deciding,
        where,
        frozenset(),
        needed_above,
        (),
        run,
        box,
    )
