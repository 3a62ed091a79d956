"""Sets the canonical text of a statement into lines."""

from __future__ import annotations

from xscl.canonical import render_block, render_predicate, render_string, render_window
from xscl.selects import item_text
from xscl.syntax import BlockSyntax, JoinSyntax, Operand, SelectSyntax, Statement

__all__ = ["statement_text"]


def statement_text(statement: Statement) -> str:
    """Return a statement's canonical text, without comments."""
    lines = [_declaration(each.prefix, each.uri) for each in statement.prolog]
    assert statement.source is not None
    source = _operand(statement.source)
    if statement.select is None and statement.publish is None:
        return "\n".join([*lines, source])
    lines.append(f"SELECT {_select(statement.select)}")
    lines.append(f"FROM {source}")
    if statement.publish is not None:
        lines.append(f"PUBLISH {statement.publish.name}")
    return "\n".join(lines)


def _declaration(prefix: str, uri: str) -> str:
    what = f"NAMESPACE {prefix}" if prefix else "DEFAULT ELEMENT NAMESPACE"
    return f"DECLARE {what} = {render_string(uri)};"


def _select(select: SelectSyntax | None) -> str:
    if select is None or (select.constructor is None and not select.items):
        return "*"
    if select.constructor is not None:
        return select.constructor.text
    return ", ".join(item_text(item) for item in select.items)


def _operand(operand: Operand) -> str:
    if isinstance(operand, BlockSyntax):
        return render_block(operand)
    right = _operand(operand.right)
    if isinstance(operand.right, JoinSyntax):
        right = f"({right})"
    predicate = "" if operand.predicate is None else render_predicate(operand.predicate)
    braces = f"{{{predicate}, {render_window(operand.window)}}}"
    return f"{_operand(operand.left)} {operand.keyword} {braces} {right}"
