"""Sources: from syntax to the tree of operators, with the scope of each predicate.

The blocks of a statement are numbered in the order of the text, absent ones and alternatives too.
A predicate sees: an operator's braces, its two operands; those of a repetition and of WHILE, what
stands before it and the element at hand; those of an absence, what stands before it and the absent
unit; WHERE, all that is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from xscl.canonical import render_steps
from xscl.comparison import Disjunct
from xscl.conditions import OutsideFragmentError, ParameterUse
from xscl.operators import PredicateBuilder
from xscl.path import Literal, Parameter, Path
from xscl.scopes import Scope
from xscl.sequence import (
    INFINITE_US,
    Absence,
    AbsenceKind,
    Fold,
    From,
    Key,
    Node,
    Operator,
    OperatorKind,
    Repetition,
    Strategy,
    Unit,
    Window,
    blocks_below,
)
from xscl.statement import (
    AbsenceSyntax,
    FoldSyntax,
    FromSyntax,
    KeySyntax,
    OperandSyntax,
    PartSyntax,
    RepetitionSyntax,
    UnitSyntax,
    blocks_of,
)
from xscl.syntax import (
    DurationSyntax,
    Expression,
    NumberLiteral,
    ParameterRef,
    StringLiteral,
)
from xscl.windows import OR_WITHIN_HINT, window_of

__all__ = ["SequenceBuilder", "Source", "absent_blocks"]

_KINDS = {kind.value: kind for kind in OperatorKind}
_ABSENCES = {"NOT FOLLOWED BY": AbsenceKind.AFTER, "NOT JOIN": AbsenceKind.AROUND}


@dataclass(frozen=True, slots=True)
class Source:
    """A part of a source: its tree, the blocks that its tuples have, and which are repeated."""

    node: Node
    blocks: frozenset[int]
    repeated: frozenset[int] = frozenset()


class SequenceBuilder:
    """Builds the source of one statement."""

    def __init__(self, predicates: PredicateBuilder) -> None:
        self.predicates = predicates
        self.patterns = predicates.patterns
        self.report = predicates.report
        self.next_block = 0

    def source(self, syntax: FromSyntax, *, is_bounded: bool = False) -> Source:
        """Return a from; `is_bounded` says that WITHIN of a from around it bounds it."""
        is_bounded = is_bounded or syntax.within is not None
        found: Source | None = None
        for part in syntax.parts:
            if isinstance(part, PartSyntax):
                found = self._part(found, part, is_bounded)
            elif found is not None:
                found = self._behind(found, part, is_bounded)
        assert found is not None  # the first part is an operand
        if syntax.is_bare():
            return found
        where_scope = Scope(found.blocks, repeated=found.repeated, has_tables=True)
        where = None if syntax.where is None else self._disjuncts(syntax.where, where_scope)
        node = From(
            found.node,
            None if syntax.within is None else self._window(syntax.within),
            tuple(self._key(each, frozenset(blocks_below(found.node))) for each in syntax.same),
            None if syntax.match is None else Strategy(syntax.match.strategy),
            where,
        )
        return replace(found, node=node)

    def _window(self, syntax: DurationSyntax) -> Window | Parameter:
        return window_of(syntax, self.patterns.parameters)

    def _disjuncts(self, predicate: Expression | None, scope: Scope) -> tuple[Disjunct, ...]:
        return self.predicates.disjuncts(predicate, scope)

    # -- operands ------------------------------------------------------------------------------

    def _unit(self, syntax: UnitSyntax) -> Source:
        blocks = tuple(range(self.next_block, self.next_block + len(syntax.blocks)))
        self.next_block += len(blocks)
        self.predicates.multiply(len(blocks), syntax.span)
        return Source(blocks[0] if len(blocks) == 1 else Unit(blocks), frozenset(blocks))

    def _operand(self, syntax: OperandSyntax, left: Source | None, is_bounded: bool) -> Source:
        if isinstance(syntax, UnitSyntax):
            return self._unit(syntax)
        if isinstance(syntax, RepetitionSyntax):
            return self._repetition(syntax, left)
        return self.source(syntax, is_bounded=is_bounded)

    def _repetition(self, syntax: RepetitionSyntax, left: Source | None) -> Source:
        unit = self._unit(syntax.unit)
        scope = self._scope(left, unit.blocks, elements=unit.blocks)
        braces = syntax.braces
        node = Repetition(
            unit.node,
            self._disjuncts(braces.predicate if braces else None, scope),
            self._window(braces.window) if braces and braces.window else None,
            None if syntax.condition is None else self._disjuncts(syntax.condition, scope),
            tuple(fold for each in syntax.folds if (fold := self._fold(each, left, scope))),
        )
        return Source(node, unit.blocks, unit.blocks)

    def _scope(
        self, left: Source | None, right: frozenset[int], elements: frozenset[int] = frozenset()
    ) -> Scope:
        if left is None:
            return Scope(right=right, elements=elements)
        return Scope(left.blocks, right, elements, left.repeated)

    def _fold(self, syntax: FoldSyntax, left: Source | None, scope: Scope) -> Fold | None:
        before = replace(self._scope(left, frozenset()), is_optional=True)
        first = self.predicates.operand(syntax.first, before)
        following = self.predicates.operand(syntax.next, replace(scope, is_optional=True))
        self.predicates.use_parameter(syntax.first, first, "value")
        self.predicates.use_parameter(syntax.next, following, "value")
        if first is None or following is None:
            return None
        return Fold(syntax.name, first, following)

    # -- operators -----------------------------------------------------------------------------

    def _part(self, left: Source | None, part: PartSyntax, is_bounded: bool) -> Source:
        right = self._operand(part.operand, left, is_bounded)
        if left is None:
            found = right
            for absence in part.unless:
                found = self._absence(found, absence, AbsenceKind.BEFORE)
            return found
        is_repeated = isinstance(part.operand, RepetitionSyntax)
        scope = self._scope(left, right.blocks, right.blocks if is_repeated else frozenset())
        if not is_repeated and right.repeated:
            scope = replace(scope, repeated=left.repeated | right.repeated)
        predicate = part.braces.predicate if part.braces else None
        disjuncts = self._disjuncts(predicate, scope)
        window = self._needed_window(part, is_bounded)
        kind = _KINDS[part.keyword]
        operator = Operator(kind, left.node, right.node, disjuncts, window, part.keyword_span)
        both = left.blocks | right.blocks
        found = Source(operator, both, left.repeated)
        for absence in part.unless:
            found = self._absence(found, absence, AbsenceKind.BETWEEN)
        if not right.repeated:
            return found
        return replace(found, repeated=left.repeated | right.repeated)

    def _needed_window(
        self, part: PartSyntax | AbsenceSyntax, is_bounded: bool
    ) -> Window | Parameter:
        """Return the window of an operator; report that it is missing where nothing bounds it."""
        braces = part.braces
        if braces is not None and braces.window is not None:
            return self._window(braces.window)
        if not is_bounded:
            self._no_window(part)
        return Window(INFINITE_US)

    def _no_window(self, part: PartSyntax | AbsenceSyntax) -> None:
        if part.braces is not None:
            self.report.error("XS107", part.braces.span, "no window here", OR_WITHIN_HINT)
            return
        self.report.error(
            "XS106",
            part.keyword_span,
            f"`{part.keyword}` needs a window: `{part.keyword} {{..., 30 days}}`",
            OR_WITHIN_HINT,
        )

    # -- absence -------------------------------------------------------------------------------

    def _behind(self, left: Source, part: AbsenceSyntax, is_bounded: bool) -> Source:
        window = self._needed_window(part, is_bounded)
        if window == Window(INFINITE_US) and not is_bounded and part.braces:
            given = part.braces.window
            if given is not None:
                self.report.error(
                    "XS809",
                    given.span,
                    "that nothing follows is never certain",
                    "give a window, or bound the whole with WITHIN",
                )
        return self._absence(left, part, _ABSENCES[part.keyword], window)

    def _absence(
        self,
        operand: Source,
        part: AbsenceSyntax,
        kind: AbsenceKind,
        window: Window | Parameter | None = None,
    ) -> Source:
        absent = self._unit(part.unit)
        predicate = part.braces.predicate if part.braces else None
        disjuncts = self._disjuncts(predicate, self._scope(operand, absent.blocks))
        given = part.braces.window if part.braces else None
        if kind in (AbsenceKind.BEFORE, AbsenceKind.BETWEEN):
            window = None if given is None else self._window(given)
        if kind is AbsenceKind.BEFORE and window is None:
            self.report.error(
                "XS808",
                part.keyword_span,
                "UNLESS behind the first operand needs a window: how far back it looks",
                "as in `B UNLESS {, 3 h} C`",
            )
        node = Absence(kind, operand.node, absent.node, disjuncts, window, part.keyword_span)
        return replace(operand, node=node)

    # -- keys ----------------------------------------------------------------------------------

    def _key(self, syntax: KeySyntax, blocks: frozenset[int]) -> Key:
        bound = len(self.patterns.bindings)
        try:
            path = self.patterns.path(syntax.steps, is_positive=True, at_document=True)
        except OutsideFragmentError as outside:
            self.report.error(
                "XS303",
                outside.span,
                f"{outside.reason} cannot stand in a key",
                "the path of a key has `/`, `//`, `@` and `.`; other XPath goes into predicates",
            )
            path = Path(())
        for binding in self.patterns.bindings[bound:]:
            self.report.error(
                "XS309", binding.span, f"`{binding.name}` cannot be bound in a key", "leave it out"
            )
        del self.patterns.bindings[bound:]
        text = render_steps(syntax.steps)
        variables = tuple((block, self.predicates.key(text, block)) for block in sorted(blocks))
        return Key(path, self._literal(syntax.literal), variables)

    def _literal(
        self, syntax: StringLiteral | NumberLiteral | ParameterRef | None
    ) -> Literal | Parameter | None:
        if syntax is None:
            return None
        if isinstance(syntax, ParameterRef):
            self.patterns.parameters.append(ParameterUse(syntax.name, "value", syntax.span))
            return Parameter(syntax.name)
        return Literal(syntax.value)


def absent_blocks(syntax: FromSyntax, first: int = 0) -> Iterator[int]:
    """Yield the indexes of the blocks of a from that stand behind UNLESS and NOT."""
    place = first
    for part in syntax.parts:
        if isinstance(part, AbsenceSyntax):
            yield from range(place, place + len(part.unit.blocks))
            place += len(part.unit.blocks)
            continue
        if isinstance(part.operand, FromSyntax):
            yield from absent_blocks(part.operand, place)
        place += _size(part.operand)
        for absence in part.unless:
            yield from range(place, place + len(absence.unit.blocks))
            place += len(absence.unit.blocks)


def _size(operand: OperandSyntax) -> int:
    return len(blocks_of(operand))
