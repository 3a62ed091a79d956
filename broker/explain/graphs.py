"""Join graphs, minors and the flow between queries, as Mermaid and DOT.

A picture is nodes in boxes and edges between them, a value; the two writers know nothing of
queries.  Nodes that the minor leaves out are dashed, value joins are double lines in DOT and
thick ones in Mermaid.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from broker.explain.model import ClauseView, QueryView, SideView, Survey
from broker.explain.plan import QueryPlan
from broker.explain.spelling import spell_constant
from templates.template import Template

__all__ = [
    "Picture",
    "flow_picture",
    "graph_picture",
    "minor_picture",
    "plan_picture",
    "to_dot",
    "to_mermaid",
]

Look = Literal["plain", "faint", "round"]
Line = Literal["tree", "join", "residual", "flow"]


@dataclass(frozen=True, slots=True)
class _PictureNode:
    name: str
    label: str
    look: Look = "plain"


@dataclass(frozen=True, slots=True)
class _Edge:
    start: str
    end: str
    line: Line
    label: str = ""


@dataclass
class Picture:
    """Boxes (a title and nodes), nodes outside of boxes under the title `""`, and edges."""

    boxes: list[tuple[str, list[_PictureNode]]] = field(default_factory=list)
    edges: list[_Edge] = field(default_factory=list)


def graph_picture(survey: Survey, query: QueryView) -> Picture:
    """Return the join graphs of a query, one for each operator and alternative."""
    picture = Picture()
    for prefix, title, clause in _clauses(query):
        for s, side in enumerate(clause.sides):
            nodes = [
                _PictureNode(
                    f"{prefix}s{s}n{i}", _label(side, i), "plain" if n.survives else "faint"
                )
                for i, n in enumerate(side.nodes)
            ]
            picture.boxes.append((title + _operand(side), nodes))
            picture.edges += [
                _Edge(f"{prefix}s{s}n{n.parent}", f"{prefix}s{s}n{i}", "tree")
                for i, n in enumerate(side.nodes)
                if n.parent >= 0
            ]
        picture.edges += _comparisons(prefix, clause)
    return picture


def _clauses(query: QueryView) -> Iterator[tuple[str, str, ClauseView]]:
    for a, alternative in enumerate(query.alternatives, 1):
        for clause in alternative:
            several = len(query.alternatives) > 1
            title = f"alternative {a}, " if several else ""
            title += f"operator {clause.operator}, " if len(alternative) > 1 else ""
            yield f"a{a}o{clause.operator}", title, clause


def _operand(side: SideView) -> str:
    if side.block is None:
        return f"tuples of {side.stream}"
    return f"block {side.block} on {side.stream}"


def _label(side: SideView, index: int) -> str:
    node = side.nodes[index]
    called = [name for name in node.called if not name.startswith("#") and name != node.step]
    lines = [
        node.step,
        *called,
        *(f"= {spell_constant(constant)}" for constant in node.constants),
        *node.tests,
    ]
    return "\n".join([*lines, *(f"[{text}]" for text in node.filters)])


def _comparisons(prefix: str, clause: ClauseView) -> Iterator[_Edge]:
    for comparison in clause.comparisons:
        ends = [f"{prefix}s{s}n{n}" for s, n in comparison.ends]
        line: Line = "residual" if comparison.kind == "residual" else "join"
        if len(ends) > 1:
            yield _Edge(ends[0], ends[-1], line, comparison.operator)
        elif ends:
            yield _Edge(ends[0], ends[0], line, comparison.text)


def minor_picture(survey: Survey, query: QueryView) -> Picture:
    """Return the minors of a query, their nodes by the names that all queries share."""
    picture = Picture()
    for prefix, title, clause in _clauses(query):
        query_class = survey.class_of(clause).query_class
        template = query_class.template
        names = [survey.name(number) for number in query_class.row.variables]
        nodes = [_PictureNode(f"{prefix}v{i + 1}", name) for i, name in enumerate(names)]
        size = template.left_size
        picture.boxes.append((f"{title}left", nodes[:size]))
        if template.has_right:
            picture.boxes.append((f"{title}right", nodes[size:]))
        picture.edges += _template_edges(prefix, template)
    return picture


def _template_edges(prefix: str, template: Template) -> Iterator[_Edge]:
    for i, parent in enumerate(template.parents):
        if parent >= 0:
            yield _Edge(f"{prefix}v{parent + 1}", f"{prefix}v{i + 1}", "tree")
    for left, right in template.value_joins:
        yield _Edge(f"{prefix}v{left + 1}", f"{prefix}v{right + 1}", "join", "=")
    for first, operator, second in template.residuals:
        ends = (f"{prefix}v{first + 1}", f"{prefix}v{second + 1}")
        yield _Edge(*ends, "residual", operator)


def plan_picture(plan: QueryPlan) -> Picture:
    """Return the m-ops of a plan, what they read, and for which queries they work."""
    picture = Picture()
    streams: dict[str, str] = {}
    queries: dict[str, str] = {}
    ops = []
    for op in plan.ops:
        rules = " ".join(fired.rule.symbol for fired in op.fired)
        ops.append(_PictureNode(f"m{op.number}", f"{op.kind}\n{rules}" if rules else op.kind))
        for stream in op.reads:
            name = streams.setdefault(stream, f"s{len(streams) + 1}")
            picture.edges.append(_Edge(name, f"m{op.number}", "flow"))
        picture.edges += [_Edge(f"m{each}", f"m{op.number}", "flow") for each in op.below]
        for query in op.queries if op.kind != "patterns" else ():
            name = queries.setdefault(query, f"q{len(queries) + 1}")
            picture.edges.append(_Edge(f"m{op.number}", name, "flow"))
    picture.boxes.append(
        ("", [_PictureNode(name, stream, "round") for stream, name in streams.items()])
    )
    picture.boxes.append(("m-ops", ops))
    picture.boxes.append(
        ("", [_PictureNode(name, query, "faint") for query, name in queries.items()])
    )
    return picture


def flow_picture(survey: Survey) -> Picture:
    """Return which streams queries read and publish, and which templates they share."""
    picture = Picture()
    streams: dict[str, str] = {}
    for query in survey.queries:
        for name in (*(block.stream for block in query.blocks), query.publish):
            if name is not None:
                streams.setdefault(name, f"stream{len(streams)}")
    picture.boxes.append(("", [_PictureNode(key, name, "round") for name, key in streams.items()]))
    boxes: dict[str, list[_PictureNode]] = {}
    for i, query in enumerate(survey.queries):
        template = survey.class_of(query.alternatives[0][-1]).template
        title = "decisions" if query.decisions else f"template {template}"
        boxes.setdefault(title, []).append(_PictureNode(f"query{i}", query.id))
        for stream in dict.fromkeys(block.stream for block in query.blocks):
            picture.edges.append(_Edge(streams[stream], f"query{i}", "flow"))
        if query.publish is not None:
            picture.edges.append(_Edge(f"query{i}", streams[query.publish], "flow", "publishes"))
    picture.boxes += boxes.items()
    return picture


_MERMAID_NODE = {"plain": '["{}"]', "faint": '["{}"]:::contracted', "round": '(["{}"])'}
_MERMAID_LINE = {"tree": "---", "join": "===", "residual": "-.-", "flow": "-->"}


def to_mermaid(picture: Picture) -> str:
    """Return a Mermaid flow chart."""
    lines = ["flowchart LR"]
    for i, (title, nodes) in enumerate(picture.boxes):
        pad = "    " if title else "  "
        if title:
            lines.append(f'  subgraph box{i}["{_mermaid_text(title)}"]')
        lines += [
            f"{pad}{n.name}{_MERMAID_NODE[n.look].format(_mermaid_text(n.label))}" for n in nodes
        ]
        if title:
            lines.append("  end")
    for edge in picture.edges:
        label = f'|"{_mermaid_text(edge.label)}"|' if edge.label else ""
        lines.append(f"  {edge.start} {_MERMAID_LINE[edge.line]}{label} {edge.end}")
    if any(n.look == "faint" for _, nodes in picture.boxes for n in nodes):
        lines.append("  classDef contracted stroke-dasharray: 4 4")
    return "\n".join(lines) + "\n"


def _mermaid_text(text: str) -> str:
    escaped = text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return escaped.replace(">", "&gt;").replace("\n", "<br>")


_DOT_NODE = {"plain": "", "faint": ", style=dashed", "round": ", shape=oval"}
_DOT_LINE = {
    "tree": "dir=none",
    "join": 'dir=none, constraint=false, color="black:black"',
    "residual": "dir=none, constraint=false, style=dotted",
    "flow": "",
}


def to_dot(picture: Picture) -> str:
    """Return a graph for Graphviz."""
    lines = ["digraph {", "  rankdir=LR;", "  node [shape=box];"]
    for i, (title, nodes) in enumerate(picture.boxes):
        pad = "    " if title else "  "
        if title:
            lines += [f"  subgraph cluster{i} {{", f"    label={_dot_text(title)};"]
        lines += [f"{pad}{n.name} [label={_dot_text(n.label)}{_DOT_NODE[n.look]}];" for n in nodes]
        if title:
            lines.append("  }")
    for edge in picture.edges:
        label = f"label={_dot_text(edge.label)}" if edge.label else ""
        attributes = ", ".join(filter(None, [label, _DOT_LINE[edge.line]]))
        lines.append(f"  {edge.start} -> {edge.end}" + (f" [{attributes}];" if attributes else ";"))
    return "\n".join([*lines, "}"]) + "\n"


def _dot_text(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
