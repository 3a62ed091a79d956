"""Where LOSS can stand, whatever the predicates say, and what of it is not run yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xscl.path import Span
from xscl.report import Report
from xscl.statement import (
    AbsenceSyntax,
    FromSyntax,
    OperandSyntax,
    PartSyntax,
    RepetitionSyntax,
    Statement,
    blocks_of,
)
from xscl.syntax import LossSyntax

__all__ = ["check_losses", "froms", "losses_not_run", "positive_losses"]

LOSSY_MAX = 3
"""The most lossy units that must be there: each doubles the variants of a statement, up to 8."""

_HINT = "LOSS stands within a chain of FOLLOWED BY, and behind UNLESS and NOT"


def check_losses(source: FromSyntax, report: Report) -> None:
    """Report lossy units where nothing would show that they are missing, and too many."""
    positive = list(positive_losses(source))
    if len(positive) > LOSSY_MAX:
        report.error(
            "XS811",
            positive[LOSSY_MAX].span,
            f"more than {2**LOSSY_MAX} variants, one for each choice of lost units",
            f"at most {LOSSY_MAX} units that must be there may be lost",
        )
    for each in froms(source):
        _check_chain(each, report)
        _check_learned(each, report)


def _check_chain(source: FromSyntax, report: Report) -> None:
    parts = [part for part in source.parts if isinstance(part, PartSyntax)]
    is_chain = all(part.keyword in ("", "FOLLOWED BY") for part in parts)
    for place, part in enumerate(source.parts):
        if not isinstance(part, PartSyntax):
            continue
        if part is parts[0]:
            for absence in part.unless:
                reason = "nothing stands before it that it could come after"
                _refuse(_losses(absence.unit), reason, report)
        if isinstance(part.operand, FromSyntax):
            continue
        beside = source.parts[max(0, place - 1) : place + 2]
        reason = ""
        if part is parts[0]:
            reason = "nothing stands before it that it could come after"
        elif part is parts[-1]:
            reason = "nothing stands behind it that would show that it is missing"
        elif not is_chain:
            reason = "an operator beside it is not FOLLOWED BY"
        elif isinstance(part.operand, RepetitionSyntax):
            reason = "it is repeated"
        elif len(blocks_of(part.operand)) > 1:
            reason = "another alternative in its place would say that nothing is missing"
        elif any(isinstance(each, AbsenceSyntax) for each in beside):
            reason = "NOT stands beside it"
        if reason:
            _refuse(_losses(part.operand), reason, report)


def _check_learned(source: FromSyntax, report: Report) -> None:
    """Report absent units whose delay no match can show."""
    absent = [
        *(
            each.unit
            for part in source.parts
            if isinstance(part, PartSyntax)
            for each in part.unless
        ),
        *(part.unit for part in source.parts if isinstance(part, AbsenceSyntax)),
    ]
    for loss in (loss for unit in absent for loss in _losses(unit)):
        if loss.delay == "learned":
            report.error(
                "XS910",
                loss.span,
                "this delay cannot be learned: no match has a document that must be absent",
                "write how long it takes, as in `DELAY exp(1 h)`",
            )


def _refuse(losses: Sequence[LossSyntax], reason: str, report: Report) -> None:
    for loss in losses[:1]:
        report.error("XS911", loss.span, f"this unit cannot be lost: {reason}", _HINT)


def froms(source: FromSyntax) -> Iterator[FromSyntax]:
    """Yield a from and those in parentheses within it."""
    yield source
    for part in source.parts:
        if isinstance(part, PartSyntax) and isinstance(part.operand, FromSyntax):
            yield from froms(part.operand)


def positive_losses(source: FromSyntax) -> Iterator[LossSyntax]:
    """Yield the losses of units that must be there."""
    for each in froms(source):
        for part in each.parts:
            if isinstance(part, PartSyntax) and not isinstance(part.operand, FromSyntax):
                yield from _losses(part.operand)


def _losses(syntax: OperandSyntax) -> Sequence[LossSyntax]:
    return [block.loss for block in blocks_of(syntax) if block.loss is not None]


# -- what is not run yet -------------------------------------------------------------------------


def losses_not_run(statement: Statement) -> Iterator[tuple[str, Span]]:
    """Yield what stands beside LOSS, or in it, and is not run with it yet."""
    source = statement.source
    if source is None:
        return
    losses = _losses(source)
    if not losses:
        return
    for each in froms(source):
        if each is not source:
            yield from (("LOSS in parentheses", loss.span) for loss in _own_positive(each))
    for each in froms(source):
        if any(_is_repeated(part) for part in each.parts):
            yield "LOSS beside +", losses[0].span
    if any(each.match is not None and each.match.strategy != "ANY" for each in froms(source)):
        yield "LOSS beside MATCH", losses[0].span
    if _has_inner_not(source):
        yield "LOSS beside NOT in parentheses", losses[0].span
    select = statement.select
    outcomes = (statement.window, statement.limit, select.kind_span if select else None)
    if any(each is not None for each in outcomes):
        yield "LOSS beside outcome", losses[0].span


def _own_positive(source: FromSyntax) -> Iterator[LossSyntax]:
    for part in source.parts:
        if isinstance(part, PartSyntax) and not isinstance(part.operand, FromSyntax):
            yield from _losses(part.operand)


def _is_repeated(part: PartSyntax | AbsenceSyntax) -> bool:
    return isinstance(part, PartSyntax) and isinstance(part.operand, RepetitionSyntax)


def _has_inner_not(source: FromSyntax) -> bool:
    """Whether something but the last part of the outermost from says NOT."""
    inner = [each for each in froms(source) if each is not source]
    parts = [*source.parts[:-1], *(part for each in inner for part in each.parts)]
    return any(isinstance(part, AbsenceSyntax) for part in parts)
