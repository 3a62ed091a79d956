"""A clause of its sides: what is joined, what a box tests, what is left to ask of each tuple."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from itertools import compress

from templates.box import DURATION, Data, Instant, Place, Test, place_at
from templates.clause import Clause
from templates.clausesides import Side, template_of_sides
from templates.comparisons import compared
from templates.computed import (
    NO_NUMBERS,
    Numbered,
    is_solved_of_times,
    number_tests,
    numbered,
    reads_only,
)
from templates.datatests import data_test, duration_test, word_test
from templates.derived import as_derived
from templates.heldonce import held_once
from templates.joingraph import NodeRef, ResidualEdge
from templates.measured import in_text, similar_pairs, split_measured, test_of
from templates.queryclass import QueryClass, SimilarPair
from templates.tuplestreams import tested_below
from xscl.comparison import operands_below
from xscl.evaluation import compile_condition
from xscl.path import Literal, Parameter
from xscl.pattern import DataTest
from xscl.query import (
    Call,
    Disjunct,
    Residual,
    VariableValue,
    operand_parameters,
    operand_terms,
    term,
)
from xscl.syntax import ARITHMETIC

__all__ = ["ClauseBuilder"]

_NONE: frozenset[str] = frozenset()


class ClauseBuilder:
    """Builds the clause of an operator, or of a block alone, under one conjunction.

    Each condition goes to the first that can have it: a comparison of two values to the join, one
    of a value, number, duration or measure with data to the box, the rest to the residuals.
    `texts` are the parameters that may be strings, `instants` the terms that are times.  Words that
    are written out are residuals unless it `has_words` as data, and below the root only a
    variable's may be.  Where it `is_open`, a tuple too many is refused at the root.
    """

    def __init__(
        self,
        sides: Sequence[Side],
        disjunct: Disjunct,
        texts: Collection[str],
        instants: Mapping[str, Call],
        *,
        is_root: bool,
        is_open: bool,
        is_joined: bool,
        has_words: bool,
    ) -> None:
        self._sides = sides
        self._below = [side.source.below for side in sides]
        self._read = [(s, each) for s, each in enumerate(self._below) if each is not None]
        self._disjunct = disjunct
        self._texts = texts
        self._instants = instants
        self._is_root = is_root
        self._is_open = is_open
        self._tested = [((s, i), test) for s, side in enumerate(sides) for i, test in side.tests]
        self._edges: list[ResidualEdge] = []
        self._others: list[Residual] = []
        self._tests: list[Call] = []
        self._numbers: list[tuple[NodeRef, str, Data]] = []
        self._lasting: list[DataTest] = []
        self._measured: list[Residual] = []
        self._split_comparisons(is_joined)
        self._split_tests(has_words)
        if self._others or disjunct.similarity_joins:
            self._split_numbers()
        if self._tested or self._numbers:
            for s, i in (*[ref for ref, _ in self._tested], *[ref for ref, *_ in self._numbers]):
                if self._below[s] is None:
                    sides[s].nodes[i] = (sides[s].nodes[i][0], True)
        self._place: Mapping[NodeRef, int] = {}

    @cached_property
    def _where(self) -> dict[str, NodeRef]:
        """Where the terms are."""
        return {t: (s, i) for s, side in enumerate(self._sides) for t, i in side.node_of.items()}

    def build(
        self,
        window_us: int | Parameter,
        is_symmetric: bool,
        needed: frozenset[str],
        read: frozenset[str],
    ) -> Clause:
        """Return the clause; `needed` terms are handed on, `read` are what is compared."""
        query_class = self._query_class(is_symmetric)
        compared = tuple(sorted(read.union(*[each.compared for _, each in self._read])))
        handed_on = self._lifted().union(compared)
        carried = tuple(sorted(handed_on.union(needed)))
        made = NO_NUMBERS
        if self._others:
            made = numbered(
                self._others,
                self._texts,
                self._place_or_instant,
                has_formulas=self._is_open,
                solved_of=self._solved_of(handed_on),
            )
        solved = (*[r for _, each in self._read for r in each.undecided], *made.solved)
        residuals, tests, left_over = self._asked(made, solved, handed_on)
        box, constants = self._box()
        blocks = self._sides[0].source.blocks
        if len(self._sides) > 1:
            blocks += self._sides[1].source.blocks
        return Clause(
            query_class=query_class,
            blocks=held_once(blocks),
            window_us=window_us,
            sources=tuple([side.source for side in self._sides]),
            places=self._places(),
            box=(*box, *made.tests),
            residuals=residuals,
            tests=tests,
            condition=compile_condition(residuals, tests),
            solved=len(solved) if self._is_root else 0,
            undecided=() if self._is_root else solved,
            left_over=left_over,
            compared=carried if carried == compared else compared,
            carried=carried,
            similar=in_text(self._below, self._disjunct),
            constants=constants,
            valued=tuple(sorted([each for side in self._sides for each in side.valued])),
        )

    def _split_comparisons(self, is_joined: bool) -> None:
        """Tell comparisons of two values and of a value with data from others.

        Where nothing `is_joined`, no engine looks at values.
        """
        for residual in self._disjunct.residuals:
            where = self._where  # made where something is asked, which mostly it is not
            left, right = as_derived(residual.left), as_derived(residual.right)
            operator = residual.operator
            if (found := data_test(residual, self._texts)) is not None:
                one, test = found
                self._tested.append((where[term(one)], test))
            elif left is None or right is None or operator not in ("=", "!=") or not is_joined:
                self._others.append(residual)
            else:
                edge = ResidualEdge(where[term(left)], operator, where[term(right)])
                self._edges.append(edge)

    def _split_tests(self, has_words: bool) -> None:
        """Tell tests of a value's text by a word that is data from others."""
        for call in self._disjunct.tests:
            if (found := word_test(call)) is not None:
                one, test = found
                is_in_box = has_words and (self._is_root or isinstance(one, VariableValue))
                if is_in_box or isinstance(test.data, Parameter):
                    self._tested.append((self._where[term(one)], test))
                    continue
            self._tests.append(call)

    def _split_numbers(self) -> None:
        """Tell durations, measures, and numbers of a value that are held against data."""
        others = self._others
        if self._is_root:
            self._lasting = [found for each in others if (found := duration_test(each))]
            others = [each for each in others if not duration_test(each)]
        self._measured, others = split_measured(self._disjunct, others)
        alone = [number_tests(r, self._texts, has_formulas=self._is_open) for r in others]
        for one, held in filter(None, alone):
            self._numbers += [(self._where[term(one)], how, data) for how, data in held]
        self._others = [each for each, own in zip(others, alone, strict=True) if not own]

    def _query_class(self, is_symmetric: bool) -> QueryClass:
        disjunct, sides = self._disjunct, self._sides
        left, right = sides[0].node_of, sides[-1].node_of
        joins = [(left[term(j.left)], right[term(j.right)]) for j in disjunct.value_joins]
        template, row, self._place = template_of_sides(sides, joins, self._edges)
        similar: tuple[SimilarPair, ...] = ()
        if disjunct.similarity_joins and not joins:
            variables = {t: sides[s].variables[i] for t, (s, i) in self._where.items()}
            similar = similar_pairs(disjunct, variables)
        stratum = max(sides[0].source.stratum, sides[-1].source.stratum)
        return QueryClass(template, row, is_symmetric, stratum, similar=similar)

    def _lifted(self) -> frozenset[str]:
        """Return the values of nodes that the root asks for what is not decided here."""
        if self._is_root or not self._is_open:
            return _NONE
        asked: list[Residual | Call] = [*self._others, *self._tests]
        asked = [each for each in asked if _has_data(each) and not _is_solved_of_times(each)]
        for _, below in self._read:
            asked += (*below.undecided, *below.left_over)
        return frozenset(_values_of_nodes(asked)) if asked else _NONE

    def _solved_of(self, handed_on: Set[str]) -> Set[str] | None:
        """Return the terms of which a comparison may be solved; None are all."""
        if self._is_root:
            return None
        # Below what decides a tuple too many would be another answer.
        return handed_on if self._is_open else frozenset()

    def _asked(
        self, made: Numbered, solved: Sequence[Residual], handed_on: Set[str]
    ) -> tuple[tuple[Residual, ...], tuple[Call, ...], tuple[Residual | Call, ...]]:
        """Return the residuals and tests that are asked here, and what is left to the root."""
        left_over = [each for _, below in self._read for each in below.left_over]
        here: list[Residual | Call] = [*made.others, *self._tests]
        if not (here or left_over or solved):  # as mostly
            return (), (), ()
        if self._is_root:
            here, left_over = [*solved, *left_over, *here], []
        elif self._is_open:
            are_left = [
                (_has_data(each) or _differ_by_constants(each))
                and reads_only(handed_on, *compared(each))
                for each in here
            ]
            left_over += compress(here, are_left)
            here = [each for each, is_left in zip(here, are_left, strict=True) if not is_left]
        residuals = tuple([each for each in here if isinstance(each, Residual)])
        tests = tuple([each for each in here if isinstance(each, Call)])
        return residuals, tests, tuple(left_over)

    def _box(self) -> tuple[list[Test], tuple[Test, ...]]:
        """Return the tests but those of computed numbers, and which are of values of a node."""
        box = [test for s, each in self._read for test in tested_below(each, s)]
        constants: list[Test] = []
        for ref, test in self._tested:
            box.append(Test(self._place_of(ref), *test))
            if ref[1] in self._sides[ref[0]].values:
                constants.append(box[-1])
        box += [Test(self._place_of(ref), how, data) for ref, how, data in self._numbers]
        box += [Test(DURATION, *test) for test in self._lasting]
        box += [test_of(each, self._place_of_term) for each in self._measured]
        return box, tuple(constants)

    def _places(self) -> Mapping[str, int]:
        """Return the meta-variables of terms of blocks."""
        place_of = self._place.get
        return {
            t: place
            for s, side in enumerate(self._sides)
            if side.source.below is None
            for t, i in side.node_of.items()
            if (place := place_of((s, i))) is not None
        }

    def _place_of(self, ref: NodeRef) -> Place:
        side, i = ref
        # Of a tuple that an operator hands on, node `i` is at position `i`.
        if self._below[side] is None:
            return place_at(side, self._place[ref])
        return place_at(side, -1, i)

    def _place_of_term(self, name: str) -> Place:
        return self._place_of(self._where[name])

    def _place_or_instant(self, name: str) -> Place | Instant:
        if name in self._where:
            return self._place_of_term(name)
        call = self._instants[name]
        side = next(s for s, each in enumerate(self._sides) if call in each.source.instants)
        return Instant(side, call.function != "start")


def _has_data(asked: Residual | Call) -> bool:
    return any(operand_parameters(each) for each in compared(asked))


def _is_solved_of_times(asked: Residual | Call) -> bool:
    return isinstance(asked, Residual) and is_solved_of_times(asked)


def _differ_by_constants(asked: Residual | Call) -> bool:
    """Return whether numbers with constants must differ, as nearly all do: little is handed on."""
    if not isinstance(asked, Residual) or asked.operator != "!=":
        return False
    below = [each for side in compared(asked) for each in operands_below(side)]
    calls = [each for each in below if not isinstance(each, (VariableValue, Literal))]
    return any(isinstance(each, Literal) for each in below) and all(
        isinstance(each, Call) and each.function in ARITHMETIC for each in calls
    )


def _values_of_nodes(asked: Iterable[Residual | Call]) -> Iterator[str]:
    for each in asked:
        for operand in compared(each):
            for read in operand_terms(operand):
                if not isinstance(read, VariableValue):
                    yield term(read)
