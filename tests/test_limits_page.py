"""docs/limits.md has every limit with its size and its reason, as the code says it.

`XSCL_UPDATE_GOLDEN=1` writes the page; review the difference before you keep it.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.tiny_limits import ALL_LIMITS, CHOICES

PAGE = Path(__file__).parent.parent / "docs" / "limits.md"

_HEAD = """\
# Sizes of what is worked on at a time

Evaluation, join and matching work in pieces, keep what they may need again, and forget; here is how
much of each, and why. These are no settings: they decide what documents cost in time and memory,
never what is found (tests set each so small that a few documents reach it). What one query and one
document may cost is [set](settings.md): `budget.*`. A query with more runs than
stand here, or longer ones, is paused as well.
"""

_TITLES = {
    "EvaluatorLimits": "Stage 1: evaluation",
    "MemoryLimits": "What is remembered",
    "RunLimits": "Runs of a repetition",
    "SignatureLimits": "The default engine",
    "ShardLimits": "Shards",
    "SqlLimits": "Engines for reference",
    "MatchingLimits": "From tuples to matches",
    "PipelineLimits": "From the spool to the outbox",
}


def page() -> str:
    parts = [_HEAD]
    for kind in ALL_LIMITS:
        rows = [f"| `{name}` | {size} | {reason} |" for name, size, reason in limits_of(kind)]
        module = f"`{kind.__module__.replace('.', '/')}.py`"
        parts.append(f"## {_TITLES[kind.__name__]}\n\n{module}\n")
        parts.append("\n".join(["| limit | size | reason |", "|---|---|---|", *rows]) + "\n")
    return "\n".join(parts)


def limits_of(kind: type) -> Iterator[tuple[str, str, str]]:
    """Yield the name, the default and the text behind each limit of a class."""
    reasons = dict(documented(kind))
    for each in dataclasses.fields(kind):
        if isinstance(each.default, int):
            yield each.name, f"{each.default:,}", reasons[each.name]


def documented(kind: type) -> Iterator[tuple[str, str]]:
    (definition,) = ast.parse(inspect.getsource(kind)).body
    assert isinstance(definition, ast.ClassDef)
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
            assert isinstance(field.target, ast.Name)
            yield field.target.id, " ".join(ast.literal_eval(text.value).split())


def test_the_page_has_every_limit_with_its_reason() -> None:
    made = page()
    if os.environ.get("XSCL_UPDATE_GOLDEN") == "1":
        PAGE.write_text(made, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == made, "XSCL_UPDATE_GOLDEN=1 writes it"


@pytest.mark.parametrize("kind", ALL_LIMITS)
def test_limits_cannot_be_changed_while_a_join_keeps_to_them(kind: type) -> None:
    limits = kind()
    for each in dataclasses.fields(limits):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(limits, each.name, 1)


@pytest.mark.parametrize("kind", CHOICES)
def test_what_is_made_tiny_is_a_limit(kind: type) -> None:
    assert CHOICES[kind].keys() <= {each.name for each in dataclasses.fields(kind)}
