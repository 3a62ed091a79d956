"""Sets froms into lines of pieces: on one line where that fits, else part by part.

A piece knows where it came from, so that a comment goes before the piece that it stood before.
Where lines break depends on the pieces, and on `--` comments inside braces, which need lines of
their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xscl.canonical import (
    bound,
    render_binding,
    render_expression,
    render_number,
    render_predicate,
    render_steps,
    render_window,
)
from xscl.path import Span
from xscl.statement import (
    AbsenceSyntax,
    BracesSyntax,
    FoldSyntax,
    FromSyntax,
    KeySyntax,
    OperandSyntax,
    PartSyntax,
    RepetitionSyntax,
    UnitSyntax,
)
from xscl.syntax import BlockSyntax, Expression, Junction, LossSyntax

__all__ = ["INDENT", "WIDTH", "Line", "LinePiece", "from_lines", "joined", "predicate_pieces"]

WIDTH = 100
"""Columns of a line, where the text has a place to break."""

INDENT = "  "

Notes = Sequence[int]
"""Where the `--` comments of a text stand."""


class LinePiece(NamedTuple):
    """A part of a line, and where it came from."""

    text: str
    offset: int


class Line(NamedTuple):
    """The pieces of a line."""

    indent: str
    pieces: list[LinePiece]

    @property
    def width(self) -> int:
        """Its length in characters."""
        return len(self.indent) + sum([len(piece.text) for piece in self.pieces])


def from_lines(source: FromSyntax, indent: str, prefix: str, notes: Notes) -> Iterator[Line]:
    """Yield a from: as many parts on the first line as fit, each other one on lines of its own."""
    parts = [_flat_part(part) for part in source.parts]
    flat = _prefixed(_with_clauses(parts, source), prefix)
    if _fits(Line(indent, flat), source.parts, notes):
        yield Line(indent, flat)
        return
    inner = indent + (INDENT if prefix else "")
    count, head = _head(source, parts, indent, prefix, notes)
    if head is not None:
        yield head
    else:
        yield from _first_lines(source.parts[0], parts[0], indent, inner, prefix, notes)
    for part, pieces in zip(source.parts[count:], parts[count:], strict=True):
        yield from _part_lines(part, pieces, inner, notes)
    for clause in _clauses(source):
        yield Line(inner, clause)


def _head(
    source: FromSyntax, parts: Sequence[_FlatPart], indent: str, prefix: str, notes: Notes
) -> tuple[int, Line | None]:
    """Return how many parts fit on the first line, and that line; `None` where only one does."""
    most = len(parts) - source.is_bare()  # all of a bare from did not fit
    for count in range(most, 1, -1):
        line = Line(indent, _prefixed(_side_by_side(parts[:count]), prefix))
        if _fits(line, source.parts[:count], notes):
            return count, line
    return 1, None


def _fits(line: Line, parts: Sequence[PartSyntax | AbsenceSyntax], notes: Notes) -> bool:
    return line.width <= WIDTH and not (notes and any(_is_noted(part, notes) for part in parts))


def _is_noted(part: PartSyntax | AbsenceSyntax, notes: Notes) -> bool:
    """Whether a note stands beside a predicate in a part."""
    if _has_note(part, notes):
        return True
    if isinstance(part, AbsenceSyntax):
        return False
    inner: list[PartSyntax | AbsenceSyntax] = [*part.unless]
    if isinstance(part.operand, FromSyntax):
        inner += part.operand.parts
    return any(_is_noted(each, notes) for each in inner)


def _has_note(part: PartSyntax | AbsenceSyntax, notes: Notes) -> bool:
    span, braces = part.keyword_span, part.braces
    has_predicate = braces is not None and braces.predicate is not None
    return has_predicate and any(span.start < note < span.end for note in notes)


def _prefixed(pieces: list[LinePiece], prefix: str) -> list[LinePiece]:
    if not prefix:
        return pieces
    return [LinePiece(prefix + pieces[0].text, pieces[0].offset), *pieces[1:]]


def joined(first: list[LinePiece], second: list[LinePiece]) -> list[LinePiece]:
    """Return pieces behind others, with a space between them."""
    return [*first, *_prefixed(second, " ")]


# -- on one line -------------------------------------------------------------------------------


class _FlatPart(NamedTuple):
    """A part, each thing in it on one line: its operator, its operand, absences behind that."""

    operator: list[LinePiece]
    operand: list[LinePiece]
    unless: list[list[LinePiece]]

    def pieces(self) -> list[LinePiece]:
        """Return all of it on one line."""
        pieces = joined(self.operator, self.operand) if self.operator else self.operand
        for absence in self.unless:
            pieces = joined(pieces, absence)
        return pieces


def _with_clauses(parts: Sequence[_FlatPart], source: FromSyntax) -> list[LinePiece]:
    pieces = _side_by_side(parts)
    for clause in _clauses(source):
        pieces = joined(pieces, clause)
    return pieces


def _side_by_side(parts: Sequence[_FlatPart]) -> list[LinePiece]:
    pieces = parts[0].pieces()
    for part in parts[1:]:
        pieces = joined(pieces, part.pieces())
    return pieces


def _flat_part(part: PartSyntax | AbsenceSyntax) -> _FlatPart:
    if isinstance(part, AbsenceSyntax):
        return _FlatPart(_operator(part), _unit(part.unit), [])
    operator = _operator(part) if part.keyword else []
    unless = [joined(_operator(absence), _unit(absence.unit)) for absence in part.unless]
    return _FlatPart(operator, _flat_operand(part.operand), unless)


def _flat_operand(operand: OperandSyntax) -> list[LinePiece]:
    if isinstance(operand, UnitSyntax):
        return _unit(operand)
    if isinstance(operand, RepetitionSyntax):
        first, *others = _repetition(operand)
        for other in others:
            first = joined(first, other)
        return first
    parts = [_flat_part(part) for part in operand.parts]
    pieces = _prefixed(_with_clauses(parts, operand), "(")
    pieces[-1] = LinePiece(f"{pieces[-1].text})", pieces[-1].offset)
    return pieces


def _operator(part: PartSyntax | AbsenceSyntax) -> list[LinePiece]:
    return _with_braces(LinePiece(part.keyword, part.keyword_span.start), part.braces)


def _with_braces(keyword: LinePiece, braces: BracesSyntax | None) -> list[LinePiece]:
    if braces is None or (braces.predicate is None and braces.window is None):
        return [keyword]
    pieces = [LinePiece(f"{keyword.text} {{".lstrip(), keyword.offset), *_inside(braces)]
    pieces[-1] = LinePiece(pieces[-1].text + "}", pieces[-1].offset)
    return pieces


def _inside(braces: BracesSyntax) -> list[LinePiece]:
    pieces = [] if braces.predicate is None else predicate_pieces(braces.predicate)
    if braces.window is not None:
        pieces.append(LinePiece(f", {render_window(braces.window)}", braces.window.span.start))
    return pieces


def predicate_pieces(predicate: Expression) -> list[LinePiece]:
    """Return a predicate, a piece for each of its terms."""
    if not isinstance(predicate, Junction):
        return [LinePiece(render_predicate(predicate), predicate.span.start)]
    word, level = predicate.word.upper(), 2 if predicate.word == "or" else 3
    pieces = []
    for index, term in enumerate(predicate.terms):
        text = render_predicate(term, level)
        pieces.append(LinePiece(f" {word} {text}" if index else text, term.span.start))
    return pieces


def _unit(unit: UnitSyntax) -> list[LinePiece]:
    if len(unit.blocks) == 1:
        return _block(unit.blocks[0])
    pieces = _prefixed(_block(unit.blocks[0]), "(")
    for block in unit.blocks[1:]:
        pieces += _prefixed(_block(block), " | ")
    pieces[-1] = LinePiece(f"{pieces[-1].text})", pieces[-1].offset)
    return pieces


def _block(block: BlockSyntax) -> list[LinePiece]:
    loss = [] if block.loss is None else [LinePiece(_loss(block.loss), block.loss.span.start)]
    if block.variable is not None:
        return [LinePiece(bound(block.stream, block.variable), block.span.start), *loss]
    pieces = [LinePiece(block.stream, block.span.start)]
    for step in block.steps:
        slash = "//" if step.is_deep else "/"
        pieces.append(LinePiece(slash + render_binding(step), step.span.start))
        for each in step.predicates:
            pieces.append(LinePiece(f"[{render_expression(each)}]", each.span.start))
    return [*pieces, *loss]


def _loss(loss: LossSyntax) -> str:
    lengths = [render_window(each) for each in loss.lengths]
    if loss.numbers:
        numbers = [render_number(each.value) for each in loss.numbers]
        lengths = [f"{one}: {other}" for one, other in zip(lengths, numbers, strict=False)]
    delay = f"{loss.delay}({', '.join(lengths)})" if lengths else loss.delay
    return f" LOSS {render_expression(loss.probability)} DELAY {delay}"


def _repetition(repetition: RepetitionSyntax) -> list[list[LinePiece]]:
    """Return what a repetition is made of: its unit, braces, WHILE and FOLD."""
    unit = _unit(repetition.unit)
    unit[-1] = LinePiece(f"{unit[-1].text}+", unit[-1].offset)
    found = [unit]
    braces = repetition.braces
    if braces is not None and (braces.predicate is not None or braces.window is not None):
        found.append(_with_braces(LinePiece("", braces.span.start), braces))
    if repetition.condition is not None and repetition.condition_span is not None:
        span = repetition.condition_span
        condition = BracesSyntax(repetition.condition, None, span)
        found.append(_with_braces(LinePiece("WHILE", span.start), condition))
    if repetition.folds and repetition.fold_span is not None:
        found.append(_folds(repetition.folds, repetition.fold_span))
    return found


def _folds(folds: Sequence[FoldSyntax], span: Span) -> list[LinePiece]:
    pieces = [LinePiece("FOLD {", span.start)]
    for index, fold in enumerate(folds):
        first, following = render_expression(fold.first, 5), render_expression(fold.next, 5)
        text = f"{', ' if index else ''}{fold.name} = {first} THEN {following}"
        pieces.append(LinePiece(text, fold.span.start))
    pieces[-1] = LinePiece(pieces[-1].text + "}", pieces[-1].offset)
    return pieces


# -- clauses -----------------------------------------------------------------------------------


def _clauses(source: FromSyntax) -> Iterator[list[LinePiece]]:
    if source.within is not None and source.within_span is not None:
        yield [LinePiece(f"WITHIN {render_window(source.within)}", source.within_span.start)]
    if source.same and source.same_span is not None:
        pieces = [LinePiece(f"SAME ({_key(source.same[0])}", source.same_span.start)]
        pieces += [LinePiece(f", {_key(key)}", key.span.start) for key in source.same[1:]]
        yield [*pieces[:-1], LinePiece(f"{pieces[-1].text})", pieces[-1].offset)]
    if source.match is not None:
        yield [LinePiece(f"MATCH {source.match.strategy}", source.match.span.start)]
    if source.where is not None and source.where_span is not None:
        keyword = LinePiece("WHERE", source.where_span.start)
        yield joined([keyword], predicate_pieces(source.where))


def _key(key: KeySyntax) -> str:
    path = render_steps(key.steps)
    return path if key.literal is None else f"{path} = {render_expression(key.literal)}"


# -- on several lines --------------------------------------------------------------------------


def _first_lines(
    part: PartSyntax | AbsenceSyntax,
    flat: _FlatPart,
    indent: str,
    inner: str,
    prefix: str,
    notes: Notes,
) -> Iterator[Line]:
    if isinstance(part, AbsenceSyntax) or part.keyword:  # what stood before it could not be read
        yield from _part_lines(part, flat, inner, notes)
        return
    line = Line(indent, _prefixed(flat.pieces(), prefix))
    if _fits(line, [part], notes):
        yield line
        return
    lines = list(_operand_lines(part.operand, flat.operand, inner, notes))
    first = lines[0]
    yield Line(indent, _prefixed(first.pieces, prefix))
    yield from lines[1:]
    yield from _unless_lines(part.unless, flat.unless, inner, notes)


def _part_lines(
    part: PartSyntax | AbsenceSyntax, flat: _FlatPart, indent: str, notes: Notes
) -> Iterator[Line]:
    yield from _operator_lines(part, flat.operator, indent, notes)
    if isinstance(part, AbsenceSyntax):
        yield Line(indent, flat.operand)
        return
    yield from _operand_lines(part.operand, flat.operand, indent, notes)
    yield from _unless_lines(part.unless, flat.unless, indent, notes)


def _unless_lines(
    absences: Sequence[AbsenceSyntax], flat: Sequence[list[LinePiece]], indent: str, notes: Notes
) -> Iterator[Line]:
    for absence, pieces in zip(absences, flat, strict=True):
        line = Line(indent, pieces)
        if _fits(line, [absence], notes):
            yield line
            continue
        yield from _part_lines(absence, _flat_part(absence), indent, notes)


def _operand_lines(
    operand: OperandSyntax, flat: list[LinePiece], indent: str, notes: Notes
) -> Iterator[Line]:
    if isinstance(operand, UnitSyntax):
        yield Line(indent, flat)
        return
    if isinstance(operand, RepetitionSyntax):
        line = Line(indent, flat)
        if line.width <= WIDTH:
            yield line
            return
        unit, *others = _repetition(operand)
        yield Line(indent, unit)
        for pieces in others:
            yield Line(indent + INDENT, pieces)
        return
    start = (operand.opening_span or operand.span).start
    yield Line(indent, [LinePiece("(", start)])
    last = operand.span.start
    for line in from_lines(operand, indent + INDENT, "", notes):
        last = line.pieces[-1].offset
        yield line
    yield Line(indent, [LinePiece(")", last)])


def _operator_lines(
    part: PartSyntax | AbsenceSyntax, flat: list[LinePiece], indent: str, notes: Notes
) -> Iterator[Line]:
    """Yield an operator on one line if it fits, else with each term on a line of its own."""
    line = Line(indent, flat)
    braces = part.braces
    if (
        braces is None
        or braces.predicate is None
        or (line.width <= WIDTH and not _has_note(part, notes))
    ):
        yield line
        return
    yield Line(indent, line.pieces[:1])
    terms = predicate_pieces(braces.predicate)
    comma = "," if braces.window is not None else ""
    for term in terms[:-1]:
        yield Line(indent + INDENT, [LinePiece(term.text.lstrip(), term.offset)])
    yield Line(indent + INDENT, [LinePiece(f"{terms[-1].text.lstrip()}{comma}", terms[-1].offset)])
    if braces.window is not None:
        window = braces.window
        yield Line(indent + INDENT, [LinePiece(render_window(window), window.span.start)])
    yield Line(indent, [LinePiece("}", braces.span.end - 1)])
