"""What the language has and this broker does not run yet.

Where one of them is run, its entry of `NOT_YET` goes, and what finds it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from xscl.diagnostics import Diagnostic, Severity
from xscl.lossrules import losses_not_run
from xscl.path import Span
from xscl.report import Report
from xscl.statement import (
    FromSyntax,
    PartSyntax,
    SelectSyntax,
    Statement,
)
from xscl.syntax import (
    BlockSyntax,
    FunctionCall,
    PathExpression,
    RowSyntax,
    StepSyntax,
)

__all__ = ["NOT_RUN", "NOT_YET", "check_support", "refused"]

NOT_RUN = "XS800"
"""The code of a construct that is read and not run."""

UNCREATED = "XS912"
"""The code of a table that no text creates."""

NOT_YET = {
    "kind beside WINDOW": "DISJOINT or COMPRESSED beside WINDOW",
    "table beside COMPRESSED": "a table beside COMPRESSED",
    "confidence": "`confidence()` in a condition",
    "LOSS in parentheses": "LOSS of a unit in parentheses",
    "LOSS beside +": "LOSS beside a repetition",
    "LOSS beside MATCH": "LOSS beside MATCH NEXT, PARTITION or STRICT",
    "LOSS beside NOT in parentheses": "LOSS beside NOT that is not last",
    "LOSS beside outcome": "LOSS beside WINDOW, LIMIT, DISJOINT or COMPRESSED",
    "learned beside a table": "DELAY learned beside a table",
    "inner table": "a table within parentheses",
}
"""Each construct that is not run, and what a message calls it."""

_PLAIN = re.compile(r"(?:Span|str|int|float|bool|set\[str\])(?: \| None)?")
_FIELDS: dict[type, tuple[str, ...]] = {}
"""What `_inner_fields` has found of each kind of syntax."""

_XPATH = (BlockSyntax, PathExpression, StepSyntax, SelectSyntax)


def check_support(statement: Statement, report: Report) -> None:
    """Warn of a statement that uses what is not run yet."""
    found = sorted((span, NOT_YET[what]) for what, span in _constructs(statement))
    if not found:
        return
    names = list(dict.fromkeys(name for _, name in found))
    listed = ", ".join(names[:-1]) + " and " + names[-1] if len(names) > 1 else names[0]
    report.warning(
        NOT_RUN,
        found[0][0],
        f"this broker does not run {listed} yet",
        "the statement is right, and is refused where it is registered or replayed",
    )


def refused(diagnostic: Diagnostic) -> Diagnostic:
    """Return a diagnostic as where a statement is to be run: what is not run is an error there.

    So is a table that nothing creates.
    """
    if diagnostic.code not in (NOT_RUN, UNCREATED):
        return diagnostic
    return Diagnostic(
        diagnostic.code,
        Severity.ERROR,
        diagnostic.span,
        diagnostic.message,
        None if diagnostic.code == NOT_RUN else diagnostic.hint,
        diagnostic.related,
        diagnostic.path,
        diagnostic.source,
    )


def _constructs(statement: Statement) -> Iterator[tuple[str, Span]]:
    """Yield what a statement uses that is not run, by the names of `NOT_YET`."""
    if statement.is_lossy:
        yield from losses_not_run(statement)
    select = statement.select
    kind = select.kind_span if select is not None else None
    if statement.window is not None and kind is not None:
        yield "kind beside WINDOW", kind
    if not statement.has_rows and statement.functions.isdisjoint(NOT_YET):
        return
    # Not into paths and expressions of SELECT: these are XPath.
    below = list(_walk(statement))
    for each in below:
        if isinstance(each, FunctionCall) and each.name in NOT_YET:
            yield each.name, each.span
    rows = [each.span for each in below if isinstance(each, RowSyntax)]
    if not rows:
        return
    for each in below:
        if isinstance(each, PartSyntax) and isinstance(each.operand, FromSyntax):
            inner = _walk(each.operand.where)
            yield from (("inner table", row.span) for row in inner if isinstance(row, RowSyntax))
    learned = (each.loss for each in below if isinstance(each, BlockSyntax))
    if any(each is not None and each.delay == "learned" for each in learned):
        yield "learned beside a table", rows[0]
    if select is not None and select.kind == "COMPRESSED":
        yield "table beside COMPRESSED", rows[0]


def _walk(value: object) -> Iterator[object]:
    """Yield syntax and what is below it."""
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack += value
            continue
        yield value
        stack += [below for name in _inner_fields(type(value)) if (below := getattr(value, name))]


def _inner_fields(syntax: type) -> tuple[str, ...]:
    """Return the fields of a kind of syntax that may have constructs below them."""
    found = _FIELDS.get(syntax)
    if found is None:
        is_leaf = not is_dataclass(syntax) or issubclass(syntax, (Span, *_XPATH))
        named = () if is_leaf else fields(syntax)
        found = tuple(each.name for each in named if not _PLAIN.fullmatch(str(each.type)))
        _FIELDS[syntax] = found
    return found
