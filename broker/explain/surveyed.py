"""One alternative of a query as `survey` sees it: its clauses, in the query's words."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from broker.explain.decisions import joined_clauses
from broker.explain.model import (
    ClassMember,
    ClauseView,
    ComparisonKind,
    ComparisonView,
    NodeView,
    SideView,
    Tested,
)
from broker.explain.spelling import (
    ParameterText,
    spell_asked,
    spell_calculation,
    spell_comparison,
    spell_condition,
    spell_constant,
    spell_derivation,
    spell_frame,
    spell_length,
    spell_operand,
    spell_operator,
    spell_prefilter,
    spell_step,
    spell_value,
)
from templates.box import is_of_document
from templates.clause import Alternative, Clause
from templates.ordered import blocks_of, operators_of
from xpath_eval.catalog import PatternCatalog
from xscl.calculations import CALCULATED, Calculation, Framed, read_calculation
from xscl.disjunctions import Disjunction, OperandTest, Together, read_disjunction
from xscl.excerpttests import Excerpted
from xscl.path import Parameter, Value, XPathFrame
from xscl.pattern import DataTest, PatternNode, TreePattern, Values
from xscl.query import (
    Disjunct,
    Operand,
    Operator,
    Query,
    Residual,
    ValueJoin,
    operand_terms,
    term,
)
from xscl.sequence import blocks_below
from xscl.texttests import EITHER, NEGATED

__all__ = ["SurveyedDecisions", "SurveyedQuery", "given_window_us"]


@dataclass
class SurveyedQuery:
    """One alternative of one query, and what its terms are called.

    `plain` is the plain statement that is compiled, `query` the same with its parameters.  `choice`
    has the disjunct of each node that has alternatives, `numbers` are those of decisions by place.
    """

    catalog: PatternCatalog
    use: Callable[[Clause, ClassMember], int]
    plain: Query
    query: Query
    alternative: Alternative
    choice: Mapping[int, Disjunct]
    uses: dict[int, list[tuple[str, str]]]
    numbers: Mapping[int, int]

    def __post_init__(self) -> None:
        self.labels = {variable.name: variable.label for variable in self.query.variables}
        self.disjuncts = list(self.choice.values())
        operands = [operand for disjunct in self.disjuncts for operand in disjunct.operands()]
        derived = [*operands, *(each for operand in operands for each in operand_terms(operand))]
        self.labels |= {term(each): spell_operand(each, self.labels) for each in derived}
        self.patterns = [p for p in self.alternative.patterns if isinstance(p, TreePattern)]
        self.operators = list(self.plain.operators())
        for pattern in self.patterns:
            self._label(pattern)

    def _label(self, pattern: TreePattern) -> None:
        """Name the values that no predicate names: those that rows and limits read."""
        for node in pattern.nodes:
            if node.derivation is None:
                continue
            above = next(map(self.labels.get, pattern.nodes[node.parent].terms), None)
            spelled = spell_derivation(node.derivation, above or ".")
            for name in node.terms:
                self.labels.setdefault(name, spelled)

    def clauses(self, number: int) -> tuple[ClauseView, ...]:
        """Return the clauses of alternative `number`."""
        return tuple(
            self._clause(clause, ClassMember(self.query.id, number, i), i)
            for i, clause in enumerate(self.alternative.clauses)
        )

    def _clause(self, clause: Clause, member: ClassMember, index: int) -> ClauseView:
        number = self.use(clause, member)
        sides = tuple(self._side(clause, i) for i in range(len(clause.sources)))
        operator = self._operator(clause)
        asked = self.plain.root if operator is None and not clause.stream else operator
        disjunct = self.choice.get(id(asked), Disjunct())
        return ClauseView(
            operator=index,
            kind=operator.kind.value if operator is not None else "block",
            window_us=given_window_us(clause),
            window=self._window(operator),
            sides=sides,
            comparisons=tuple(self._comparisons(clause, disjunct, sides)),
            class_number=number,
            stratum=clause.query_class.stratum,
            retention_us=clause.reach.under(defaultdict(int)),
            common=clause.stream if clause.is_common else "",
        )

    def _operator(self, clause: Clause) -> Operator | None:
        """Return the operator whose tuples a clause has, None for a block."""
        operators = (each for each in operators_of(self.plain.root))
        return next((each for each in operators if tuple(blocks_of(each)) == clause.blocks), None)

    def _window(self, operator: Operator | None) -> str:
        if operator is None:
            return ""
        index = self.operators.index(operator)
        return spell_length(list(self.query.operators())[index].window)

    def _side(self, clause: Clause, index: int) -> SideView:
        source = clause.sources[index]
        template, variables = clause.query_class.template, clause.query_class.row.variables
        size = template.left_size
        kept = set(variables[:size] if index == 0 else variables[size:])
        if source.below is None:
            assert source.block is not None
            pattern = self._pattern(source.block, kept)
            return SideView(source.block, None, pattern.stream, self._nodes(pattern, kept))
        below = source.below
        root, *handed_on = below.tuple_variables
        nodes = [NodeView(-1, "tuple", root, (), (), (), (), False, root in kept)]
        nodes += [
            NodeView(0, self.labels.get(t, t), v, (self.labels.get(t, t),), (), (), (), False, True)
            for t, v in zip(below.handed_on, handed_on, strict=True)
            if v in kept
        ]
        first = len(below.carried)
        for t, v in zip(below.handed_on[first:], handed_on[first:], strict=True):
            if t:
                self.uses[v].append((self.query.id, self.labels.get(t, t)))
        return SideView(None, *self._called(below), tuple(nodes))

    def _called(self, below: Clause) -> tuple[int | None, str]:
        """Return the number of the operator whose tuples are read, and what it is called."""
        operator = self.alternative.clauses.index(below)
        return operator, f"operator {operator}"

    def _pattern(self, block: int, kept: set[int]) -> TreePattern:
        """Return the pattern of a block in which some variables are."""
        return self.patterns[list(blocks_below(self.plain.root)).index(block)]

    def _nodes(self, pattern: TreePattern, kept: set[int]) -> tuple[NodeView, ...]:
        ids = self.catalog.add(pattern)
        roots = {block.root for block in self.query.blocks}
        views = []
        for number, node in zip(ids, pattern.nodes, strict=True):
            called = tuple(self.labels.get(t, t) for t in node.terms)
            self.uses[number] += [(self.query.id, name) for name in called]
            if node.derivation is not None:
                step = called[0] if called else spell_derivation(node.derivation, ".")
            else:
                step = spell_step(node, is_first=node.parent < 0)
            shared = map(spell_prefilter, node.prefilters)
            views.append(
                NodeView(
                    parent=node.parent,
                    step=step,
                    variable=number,
                    called=called,
                    filters=(*map(spell_condition, node.filters), *shared),
                    constants=tuple(map(_constant, node.constants)),
                    tests=tuple(_spell_test(t, node) for t in node.tests if not t.is_equality),
                    is_block_root=not roots.isdisjoint(node.terms),
                    survives=number in kept,
                )
            )
        return tuple(views)

    def _comparisons(
        self, clause: Clause, disjunct: Disjunct, sides: tuple[SideView, ...]
    ) -> Iterator[ComparisonView]:
        where = {
            name: (s, n)
            for s, side in enumerate(sides)
            for n, node in enumerate(side.nodes)
            for name in node.called
        }
        for value_join in disjunct.value_joins:
            yield self._comparison("value join", value_join, where, "=", clause)
        for join in disjunct.similarity_joins:
            found = self._comparison("similarity", join.residual, where, join.operator, clause)
            yield replace(found, similar=join)
        for residual in disjunct.residuals:
            yield self._comparison("residual", residual, where, residual.operator, clause)
        for test in disjunct.tests:
            names = {n for each in test.arguments for n in self._ends(each, where)}
            ends = tuple(sorted(where[name] for name in names))
            text = spell_operand(test, self.labels)
            is_asked = test in clause.tests or test in clause.left_over
            where_tested: Tested = "tuple" if is_asked else "constant"
            yield ComparisonView(text, "residual", test.function, ends, where_tested)

    def _comparison(
        self,
        kind: ComparisonKind,
        comparison: ValueJoin | Residual,
        where: dict[str, tuple[int, int]],
        operator: str,
        clause: Clause,
    ) -> ComparisonView:
        names = {n for o in (comparison.left, comparison.right) for n in self._ends(o, where)}
        read = [operand_terms(side) for side in (comparison.left, comparison.right)]
        is_of_data = not all(read) or all(is_of_document(each) for side in read for each in side)
        return ComparisonView(
            spell_comparison(comparison, self.labels),
            kind,
            operator,
            tuple(sorted(where[name] for name in names)),
            _tested(comparison, clause, is_of_data=is_of_data),
        )

    def _ends(self, operand: Operand, where: dict[str, tuple[int, int]]) -> Iterator[str]:
        """Yield the names of the nodes that an operand reads; times are of no node."""
        name = spell_operand(operand, self.labels)
        if name in where:
            yield name
            return
        for each in operand_terms(operand):
            name = spell_operand(each, self.labels)
            if name in where:
                yield name


def _tested(comparison: ValueJoin | Residual, clause: Clause, *, is_of_data: bool) -> Tested:
    """Return by what a comparison is tested: by the join, by boxes, or tuple by tuple."""
    if comparison in (*clause.residuals[clause.solved :], *clause.left_over):
        return "tuple"
    is_solved = comparison in (*clause.residuals, *clause.undecided)
    return "constant" if is_of_data or is_solved else "join"


class SurveyedDecisions(SurveyedQuery):
    """One alternative of a query in which something is decided: what it asks of the join."""

    def __post_init__(self) -> None:
        super().__post_init__()
        # STRICT and PARTITION read all documents of streams besides, as if there were a block.
        blocks = range(len(self.query.blocks))
        self.joined = [
            each for each in joined_clauses(self.alternative) if set(each.blocks) <= set(blocks)
        ]
        self.of_block: dict[int, list[TreePattern]] = defaultdict(list)
        for pattern in self.patterns:
            for number, block in enumerate(self.query.blocks):
                if any(block.root in node.terms for node in pattern.nodes):
                    self.of_block[number].append(pattern)

    def clauses(self, number: int) -> tuple[ClauseView, ...]:
        """Return the clauses of alternative `number` that are no decisions."""
        return tuple(
            self._joined(clause, ClassMember(self.query.id, number, i), i)
            for i, clause in enumerate(self.joined)
        )

    def _joined(self, clause: Clause, member: ClassMember, index: int) -> ClauseView:
        sides = tuple(self._side(clause, i) for i in range(len(clause.sources)))
        node = self._operator(clause)
        disjunct = Disjunct() if node is None else self.choice.get(id(node), node.disjuncts[0])
        window = node.window if node is not None else None
        return ClauseView(
            operator=index,
            kind=node.kind.value if node is not None else "block",
            window_us=given_window_us(clause),
            window="" if window is None else spell_length(window),
            sides=sides,
            comparisons=tuple(self._comparisons(clause, disjunct, sides)),
            class_number=self.use(clause, member),
            stratum=clause.query_class.stratum,
            retention_us=clause.reach.under(defaultdict(int)),
        )

    def _called(self, below: Clause) -> tuple[int | None, str]:
        if below.query_class.decided is not None:
            return None, f"decision {self.numbers[below.origin]}"
        operator = [clause.stream for clause in self.joined].index(below.stream)
        return operator, f"operator {operator}"

    def _pattern(self, block: int, kept: set[int]) -> TreePattern:
        found = [
            pattern for pattern in self.of_block[block] if kept.issubset(self.catalog.add(pattern))
        ]
        return min(found, key=lambda pattern: len(pattern.nodes))


def given_window_us(clause: Clause) -> int:
    """Return a clause's window; 0 for one that a subscription gives."""
    return clause.window_us if isinstance(clause.window_us, int) else 0


def _spell_test(test: DataTest, node: PatternNode) -> str:
    operator, data = test.operator, test.data
    if operator.removeprefix(NEGATED) != EITHER:
        assert not isinstance(data, Disjunction), "it is of several tests"
        given = data if isinstance(data, float) else _constant(data)
        return f"{spell_operator(operator)} {spell_constant(given)}"
    assert isinstance(node.derivation, Values)
    parts = data.tests if isinstance(data, Disjunction) else _read(data)
    operands = node.derivation.operands
    spelled = " or ".join(_spell_part(part, operands) for part in parts)
    return f"{operator.removesuffix(EITHER)}{spelled}"


def _spell_part(part: OperandTest | Together, operands: Sequence[Value]) -> str:
    if isinstance(part, OperandTest):
        return _spell_operand_test(part, operands)
    asked = [_spell_operand_test(test, operands) for test in part.all_of]
    asked += [f"not({_spell_operand_test(test, operands)})" for test in part.none_of]
    return " and ".join(asked)


def _spell_operand_test(test: OperandTest, operands: Sequence[Value]) -> str:
    if isinstance(test.data, Excerpted):
        return spell_asked(test.data.step)
    if test.operator == CALCULATED:
        if isinstance(test.data, Framed):
            return spell_frame(test.data, operands[max(test.place, 0)])
        own = test.data if isinstance(test.data, Calculation) else read_calculation(str(test.data))
        return spell_calculation(own, operands[max(test.place, 0)])
    of_operand = f"{spell_value(operands[test.place])} " if test.place >= 0 else ""
    assert not isinstance(test.data, (Calculation, Framed)), "it is of numbers"
    given = test.data if isinstance(test.data, float) else _constant(test.data)
    return f"{of_operand}{spell_operator(test.operator)} {spell_constant(given)}"


def _read(data: object) -> list[OperandTest | Together]:
    assert isinstance(data, str)
    return read_disjunction(data)


def _constant(constant: str | Parameter | XPathFrame) -> str:
    return constant if isinstance(constant, str) else ParameterText(spell_value(constant))
