"""Explanations as plain values for programs: the form that docs/explain.md describes.

Keys are only ever added; what a key means does not change without a new `format`.
"""

from __future__ import annotations

from typing import Any

from broker.explain.model import (
    ClassView,
    ClauseView,
    DecisionView,
    NodeView,
    QueryView,
    SideView,
    Survey,
    TemplateView,
    VariantView,
)
from xscl.query import INFINITE_US

__all__ = ["FORMAT", "as_data"]

FORMAT = 1


def as_data(survey: Survey, query_ids: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a survey as values for JSON; with ids, only these queries are spelled out."""
    return {
        "format": FORMAT,
        "lateness_us": survey.lateness_us,
        "queries": [
            _query(survey, query)
            for query in survey.queries
            if not query_ids or query.id in query_ids
        ],
        "variables": [
            {
                "name": view.name,
                "definition": view.definition,
                "uses": [{"query": query, "name": name} for query, name in view.uses],
            }
            for view in survey.named()
        ],
        "classes": [_class(survey, view) for view in survey.classes],
        "templates": [_template(view) for view in survey.templates],
    }


def _query(survey: Survey, query: QueryView) -> dict[str, Any]:
    return {
        "id": query.id,
        "version": query.version,
        "text": query.text,
        "select": query.select,
        "publish": query.publish,
        "parameters": dict(query.parameters),
        "blocks": [
            {
                "stream": block.stream,
                "root": block.root,
                "variables": {label: survey.name(number) for label, number in block.variables},
            }
            for block in query.blocks
        ],
        "alternatives": [
            [_clause(survey, clause) for clause in alternative]
            for alternative in query.alternatives
        ],
        "decisions": list(map(_decision, query.decisions)),
        "given": list(query.given),
        **({"tables": list(query.tables)} if query.tables else {}),
        **(
            {"variants": list(map(_variant, query.variants)), "confidence": list(query.unasked)}
            if query.variants
            else {}
        ),
        "not_shared": [{"code": note.code, "text": note.text} for note in query.notes],
    }


def _variant(variant: VariantView) -> dict[str, Any]:
    return {
        "title": variant.title,
        "lost": list(variant.lost),
        "factors": list(variant.factors),
        "decisions": list(map(_decision, variant.view.decisions)),
    }


def _decision(decision: DecisionView) -> dict[str, Any]:
    return {
        "number": decision.number,
        "kind": decision.kind,
        "operands": list(decision.operands),
        "asked": decision.asked or None,
        "window": decision.window or None,
        "within": decision.within or None,
        "absences": [
            {
                "unit": absence.unit,
                "kind": absence.kind,
                "asked": absence.asked or None,
                "window": absence.window or None,
            }
            for absence in decision.absences
        ],
        **(
            {
                "repeated": [
                    {
                        "unit": each.unit,
                        "asked": each.asked or None,
                        "gap": each.gap or None,
                        "while": each.go_on or None,
                        "folds": list(each.folds),
                    }
                    for each in decision.repeated
                ],
                "how": decision.how,
                "is_open": decision.is_open,
            }
            if decision.how
            else {}
        ),
        "grace_us": decision.grace_us,
        "reach_us": _finite(decision.retention_us),
        "stratum": decision.stratum,
        "queries": list(decision.others),
    }


def _clause(survey: Survey, clause: ClauseView) -> dict[str, Any]:
    return {
        "operator": clause.operator,
        "kind": clause.kind,
        "window": clause.window or None,
        "window_us": _finite(clause.window_us),
        "reach_us": _finite(clause.retention_us),
        "stratum": clause.stratum,
        "class": clause.class_number,
        "template": survey.class_of(clause).template,
        "join_graph": {
            "sides": [_side(survey, side) for side in clause.sides],
            "edges": [
                {
                    "text": comparison.text,
                    "kind": comparison.kind,
                    "operator": comparison.operator,
                    "ends": [list(end) for end in comparison.ends],
                    "tested": comparison.tested,
                }
                for comparison in clause.comparisons
            ],
        },
        "minor": _minor(survey, survey.class_of(clause)),
    }


def _finite(length_us: int) -> int | None:
    return None if length_us >= INFINITE_US else length_us


def _side(survey: Survey, side: SideView) -> dict[str, Any]:
    return {
        "block": side.block,
        "operator": side.operator,
        "stream": side.stream,
        "nodes": [_node(survey, node) for node in side.nodes],
    }


def _node(survey: Survey, node: NodeView) -> dict[str, Any]:
    view = survey.variables[node.variable]
    return {
        "parent": node.parent,
        "step": node.step,
        "variable": view.name,
        "definition": view.definition,
        "binds": list(node.called),
        "filters": list(node.filters),
        "constants": list(node.constants),
        "tests": list(node.tests),
        "is_block_root": node.is_block_root,
        "survives": node.survives,
    }


def _minor(survey: Survey, view: ClassView) -> dict[str, Any]:
    template, row = view.query_class.template, view.query_class.row
    return {
        "variables": [survey.name(number) for number in row.variables],
        "parents": list(template.parents),
        "left_size": template.left_size,
        "value_joins": [list(pair) for pair in template.value_joins],
    }


def _class(survey: Survey, view: ClassView) -> dict[str, Any]:
    return {
        "number": view.number,
        "template": view.template,
        "is_symmetric": view.query_class.is_symmetric,
        "stratum": view.query_class.stratum,
        "window_us": _finite(view.window_us),
        "row": [survey.name(number) for number in view.query_class.row.variables],
        "members": [
            {"query": m.query, "alternative": m.alternative, "operator": m.operator}
            for m in view.members
        ],
    }


def _template(view: TemplateView) -> dict[str, Any]:
    template = view.template
    return {
        "number": view.number,
        "parents": list(template.parents),
        "left_size": template.left_size,
        "value_joins": [list(pair) for pair in template.value_joins],
        "residuals": [list(residual) for residual in template.residuals],
        "classes": list(view.classes),
        "datalog": view.datalog,
        "datalog_over_views": view.view_datalog,
        "sql": list(view.sql),
    }
