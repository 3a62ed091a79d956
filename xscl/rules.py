"""Rules of sequences, rows and tables that a statement can break whatever its predicates say."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xscl.lossrules import check_losses, froms, positive_losses
from xscl.path import Span
from xscl.report import Report
from xscl.sequence import INFINITE_US
from xscl.statement import (
    AbsenceSyntax,
    FromSyntax,
    PartSyntax,
    RepetitionSyntax,
    Statement,
    UnitSyntax,
    blocks_of,
    units_of,
)
from xscl.syntax import BlockSyntax, DurationSyntax

__all__ = ["check_statement"]

ALTERNATIVES_MAX = 16
"""The most alternatives of a unit."""

UNLESS_MAX = 8
"""The most absences at one operator."""

KEYS_MAX = 4
"""The most paths of SAME."""

FOLDS_MAX = 16
"""The most values of FOLD at one repetition."""

CLOCK = "CLOCK"
"""The stream of ticks, which no block reads and nobody publishes to."""


def check_statement(statement: Statement, blocks: Sequence[BlockSyntax], report: Report) -> None:
    """Report what breaks a rule, and warn of what is bounded by nothing.

    `blocks` are those of its source.
    """
    source = statement.source
    if source is None:
        return
    rules = _Rules(report)
    rules.check(source, is_bounded=False)
    if len(blocks) > ALTERNATIVES_MAX:
        rules.check_alternatives(units_of(source))
    if statement.is_lossy:
        check_losses(source, report)
    _check_clock(statement, blocks, report)
    select = statement.select
    if select is not None and select.kind == "COMPRESSED":
        _check_compressed(source, select.kind_span or select.span, report)
    if statement.grace is not None and statement.grace.parameter is not None:
        report.error(
            "XS605",
            statement.grace.span,
            "a grace is the same for all subscriptions",
            "write a duration, as in `GRACE 1 h`",
        )
    elif statement.grace is None and not statement.is_broken:
        _check_grace(statement, report)


class _Rules:
    def __init__(self, report: Report) -> None:
        self.report = report

    def check(self, source: FromSyntax, *, is_bounded: bool) -> None:
        """Check a from and those in parentheses within it."""
        bounded = is_bounded or _is_bound(source.within)
        for part in source.parts:
            if isinstance(part, PartSyntax):
                self._part(part, bounded)
        if len(source.same) > KEYS_MAX:
            self._too_many(source.same[KEYS_MAX].span, "keys", KEYS_MAX)
        if source.match is not None:
            self._match(source, source.match.strategy, source.match.span)

    def _part(self, part: PartSyntax, is_bounded: bool) -> None:
        operand = part.operand
        if isinstance(operand, FromSyntax):
            self.check(operand, is_bounded=is_bounded)
        if isinstance(operand, RepetitionSyntax):
            self._repetition(part, operand, is_bounded)
        if len(part.unless) > UNLESS_MAX:
            self._too_many(part.unless[UNLESS_MAX].keyword_span, "UNLESS", UNLESS_MAX)
        if part.unless and part.keyword == "JOIN":
            self.report.error(
                "XS810",
                part.unless[0].keyword_span,
                "nothing stands between the operands of JOIN",
                "UNLESS stands behind FOLLOWED BY and NEXT; for what is near, write NOT JOIN",
            )

    def check_alternatives(self, units: Iterable[UnitSyntax | RepetitionSyntax]) -> None:
        """Check how many alternatives each unit has."""
        for unit in units:
            blocks = blocks_of(unit)
            if len(blocks) > ALTERNATIVES_MAX:
                self._too_many(blocks[ALTERNATIVES_MAX].span, "alternatives", ALTERNATIVES_MAX)

    def _too_many(self, span: Span, what: str, most: int) -> None:
        self.report.error("XS811", span, f"more than {most} {what}", f"there may be {most} at most")

    def _repetition(self, part: PartSyntax, syntax: RepetitionSyntax, is_bounded: bool) -> None:
        if part.keyword == "JOIN":
            self.report.error(
                "XS801",
                syntax.plus_span,
                "nothing is repeated behind JOIN",
                "a run follows something: write FOLLOWED BY or NEXT",
            )
        if syntax.condition_span is not None and part.keyword != "NEXT":
            self.report.error(
                "XS802",
                syntax.condition_span,
                "WHILE needs NEXT before the repetition",
                "write NEXT: behind FOLLOWED BY a run may leave documents out, so nothing ends it",
            )
        if len(syntax.folds) > FOLDS_MAX:
            self._too_many(syntax.folds[FOLDS_MAX].span, "values of FOLD", FOLDS_MAX)
        gap = syntax.braces.window if syntax.braces else None
        window = part.braces.window if part.braces else None
        if not (is_bounded or _is_bound(gap) or _is_bound(window)):
            self.report.warning(
                "XS507",
                syntax.plus_span,
                "nothing bounds this repetition: all that begins it is remembered for ever",
                "bound it with WITHIN, or its neighbours: `+ {, 1 h}`",
            )

    # -- MATCH ---------------------------------------------------------------------------------

    def _match(self, source: FromSyntax, strategy: str, span: Span) -> None:
        if strategy == "PARTITION" and not source.same:
            self.report.error(
                "XS816",
                span,
                "MATCH PARTITION needs the key of a partition",
                "write SAME before it, as in `SAME (//@id) MATCH PARTITION`",
            )
        last = len(source.parts) - 1
        for index, part in enumerate(source.parts):
            if isinstance(part, AbsenceSyntax):
                self._absence_in_chain(part, is_last=index == last)
            elif part.keyword not in ("", "FOLLOWED BY"):
                self._no_chain(part.keyword_span, f"{part.keyword} stands beside MATCH")
            elif isinstance(part.operand, FromSyntax):
                self._no_chain(part.operand.span, "parentheses stand beside MATCH")

    def _absence_in_chain(self, part: AbsenceSyntax, *, is_last: bool) -> None:
        if part.keyword != "NOT FOLLOWED BY":
            self._no_chain(part.keyword_span, f"{part.keyword} stands beside MATCH")
        elif not is_last:
            self.report.error(
                "XS817",
                part.keyword_span,
                "NOT FOLLOWED BY ends a chain under MATCH",
                "for what must be absent in between, write UNLESS",
            )

    def _no_chain(self, span: Span, message: str) -> None:
        self.report.error(
            "XS815",
            span,
            message,
            "write FOLLOWED BY between all of them, or leave MATCH out",
        )


def _is_bound(window: DurationSyntax | None) -> bool:
    """Whether a window is there and bounds something: a parameter does."""
    return window is not None and (window.length_us is None or window.length_us < INFINITE_US)


# -- the statement -----------------------------------------------------------------------------


def _check_clock(statement: Statement, blocks: Sequence[BlockSyntax], report: Report) -> None:
    places = [block.stream_span for block in blocks if block.stream == CLOCK]
    if statement.publish is not None and statement.publish.name == CLOCK:
        places.append(statement.publish.span)
    for span in places:
        report.error(
            "XS212",
            span,
            f"`{CLOCK}` is the broker's own stream, of ticks without content",
            "choose another name; times stand in `time(x)` and in windows",
        )


def _check_compressed(source: FromSyntax, span: Span, report: Report) -> None:
    repeated = [
        part
        for each in froms(source)
        for part in each.parts
        if isinstance(part, PartSyntax) and isinstance(part.operand, RepetitionSyntax)
    ]
    is_any = source.match is None or source.match.strategy == "ANY"
    if repeated and is_any and all(part.keyword != "NEXT" for part in repeated):
        return
    report.error(
        "XS903",
        span,
        "COMPRESSED is of a repetition under MATCH ANY",
        "it stands for matches that share documents: `S//a+` behind FOLLOWED BY, or first",
    )


def _check_grace(statement: Statement, report: Report) -> None:
    """Warn of a statement whose answers wait for the allowed lateness."""
    place = ordered_place(statement)
    if place is not None:
        report.warning(
            "XS508",
            place,
            "without GRACE an answer waits for the allowed lateness, a day unless set otherwise",
            "say how late documents may be: `GRACE 10 min`",
        )


def ordered_place(statement: Statement) -> Span | None:
    """Return where a statement says what a further document could change, if anywhere."""
    found: list[Span] = []
    for source in froms(statement.source) if statement.source else ():
        found += [part.keyword_span for part in source.parts if _is_ordered(part)]
        for part in source.parts:
            if isinstance(part, PartSyntax):
                found += [absence.keyword_span for absence in part.unless]
        if source.match is not None and source.match.strategy != "ANY":
            found.append(source.match.span)
    if statement.source is not None and statement.is_lossy:
        found += [loss.span for loss in positive_losses(statement.source)]
    select = statement.select
    if select is not None and select.kind_span is not None:
        found.append(select.kind_span)
    found += [each.span for each in (statement.window, statement.limit) if each is not None]
    if statement.actions_span is not None:
        found.append(statement.actions_span)
    return min(found, default=None)


def _is_ordered(part: PartSyntax | AbsenceSyntax) -> bool:
    return isinstance(part, AbsenceSyntax) or part.keyword == "NEXT"
