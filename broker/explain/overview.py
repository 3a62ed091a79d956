"""What a set of queries has in common, as text for people."""

from __future__ import annotations

from broker.explain.model import QueryView, Survey
from broker.explain.templatetext import counted, template_lines
from broker.explain.trees import indent, table, wrap

__all__ = ["render_overview"]

OVERVIEW_ROWS_MAX = 100
"""Rows of each part of an overview that are shown; `--format json` has all."""


def render_overview(survey: Survey) -> str:
    """Return what a set of queries has in common."""
    blocks = sum(len(query.blocks) for query in survey.queries)
    lines = [
        f"{len(survey.queries):,} queries with {blocks:,} blocks:"
        f" {counted(len(survey.named()), 'variable', 's')},"
        f" {counted(len(survey.classes), 'query class', 'es')},"
        f" {counted(len(survey.templates), 'template', 's')}"
    ]
    lines += ["", "Queries", *_cut(indent(table(*_query_rows(survey))))]
    lines += ["", "Templates"]
    for view in survey.templates:
        lines += [*indent(list(template_lines(survey, view))), ""]
    shared = [v for v in survey.named() if len(v.queries()) > 1]
    if shared:
        rows = [[v.name, v.definition, wrap(v.queries(), 4)] for v in shared]
        head = ["variable", "definition", "queries"]
        lines += ["Shared variables", *_cut(indent(table(head, rows)))]
        lines.append("")
    notes = [f"{q.id}: {note.text}" for q in survey.queries for note in q.notes]
    if notes:
        lines += ["Not shared", *_cut(indent(notes))]
    return "\n".join(lines).rstrip() + "\n"


def _cut(lines: list[str]) -> list[str]:
    rest = len(lines) - OVERVIEW_ROWS_MAX
    return [*lines[:OVERVIEW_ROWS_MAX], f"  and {rest:,} more"] if rest > 0 else lines


def _stratum(query: QueryView) -> int:
    strata = [clause.stratum for clause in query.clauses()]
    return max(strata + [decision.stratum for decision in query.decisions])


def _query_rows(survey: Survey) -> tuple[list[str], list[list[str]]]:
    rows = []
    for query in survey.queries:
        classes = [survey.class_of(clause) for clause in query.clauses()]
        windows = dict.fromkeys(
            [
                *(one.window for one in query.decisions if one.window),
                *(c.window for c in query.clauses() if c.is_join),
            ]
        )
        rows.append(
            [
                query.id,
                ", ".join(dict.fromkeys(str(c.number) for c in classes)),
                ", ".join(dict.fromkeys(str(c.template) for c in classes)),
                ", ".join(windows) or "-",
                str(_stratum(query)),
                ", ".join(dict.fromkeys(block.stream for block in query.blocks)),
                query.publish or "-",
            ]
        )
    return ["query", "class", "template", "window", "stratum", "reads", "publishes"], rows
