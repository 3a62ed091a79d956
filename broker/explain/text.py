"""Explanations as text for people: short sections, no colour."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from broker.explain.decisiontext import asked_lines, spell_decision
from broker.explain.model import ClauseView, QueryView, SideView, Survey, TemplateView
from broker.explain.spelling import spell_constant
from broker.explain.templatetext import counted, template_lines, template_trees
from broker.explain.trees import beside, indent, table, tree, wrap
from xscl.durations import render_duration
from xscl.query import INFINITE_US

__all__ = ["SECTIONS", "render_query"]

Section = Callable[[Survey, QueryView], Iterable[str]]


def render_query(survey: Survey, query: QueryView, sections: Sequence[str]) -> str:
    """Return the explanation of one query, with the sections named, in their usual order."""
    lines = [query.id, *indent(query.text.splitlines())]
    for name, (title, section) in SECTIONS.items():
        if name in sections and (body := list(section(survey, query))):
            lines += ["", title, *indent(body)]
    return "\n".join(lines) + "\n"


def _variables(survey: Survey, query: QueryView) -> Iterator[str]:
    rows = []
    for number, block in enumerate(query.blocks):
        for label, variable in block.variables:
            view = survey.variables[variable]
            others = [q for q in view.queries() if q != query.id]
            own = "block root" if label.startswith("#") else label
            rows.append(
                [
                    str(number),
                    view.name,
                    "" if own == view.name else own,
                    view.definition,
                    wrap(others, 3) or "-",
                ]
            )
    if rows:
        yield from table(["block", "variable", "here", "definition", "also in"], rows)
    if query.select != "*":
        first, *rest = query.select.splitlines()
        yield from [*([""] if rows else []), f"SELECT {first}", *rest]
    if query.parameters:
        yield ""
        yield "parameters  " + ", ".join(f"${name} {kind}" for name, kind in query.parameters)


def _patterns(survey: Survey, query: QueryView) -> Iterator[str]:
    for number, side, when in _blocks(query):
        yield f"block {number}, stream {side.stream}{when}"
        labels = [_pattern_label(side, i) for i in range(len(side.nodes))]
        yield from indent(tree([node.parent for node in side.nodes], labels))


def _blocks(query: QueryView) -> Iterator[tuple[int, SideView, str]]:
    """Yield every block with its pattern; one whose pattern varies, for each alternative."""
    for number in range(len(query.blocks)):
        sides: dict[SideView, list[int]] = {}
        for i, alternative in enumerate(query.alternatives, 1):
            for side in (side for clause in alternative for side in clause.sides):
                if side.block == number:
                    sides.setdefault(side, []).append(i)
        for side, alternatives in sides.items():
            which = f", alternative {', '.join(map(str, alternatives))}" if len(sides) > 1 else ""
            yield number, side, which


def _pattern_label(side: SideView, index: int) -> str:
    node = side.nodes[index]
    called = [name for name in node.called if not name.startswith("#") and "(" not in node.step]
    parts = [node.step]
    if called:
        parts.append(f"({', '.join(called)})")
    if node.is_block_root:
        parts.append("root")
    details = [f"[{text}]" for text in node.filters]
    details += [f"= {spell_constant(constant)}" for constant in node.constants]
    details += node.tests
    return "\n".join(["  ".join(parts), *(f"  {detail}" for detail in details)])


def _graph(survey: Survey, query: QueryView) -> Iterator[str]:
    for clause in _titled(query):
        if isinstance(clause, str):
            yield clause
            continue
        columns = [
            tree(
                [n.parent for n in side.nodes],
                [_graph_label(survey, side, i) for i in range(len(side.nodes))],
            )
            for side in clause.sides
        ]
        yield from beside(columns)
        yield from _edges(clause)


def _graph_label(survey: Survey, side: SideView, index: int) -> str:
    node = side.nodes[index]
    if side.block is None and index == 0:
        return f"tuples of {side.stream}"
    name = next((c for c in node.called if not c.startswith("#")), survey.name(node.variable))
    name = " = ".join([name, *map(spell_constant, node.constants)])
    return name if node.survives else f"{name} (contracted)"


def _edges(clause: ClauseView) -> Iterator[str]:
    for comparison in clause.comparisons:
        yield f"{comparison.kind:<10}  {comparison.text}"


def _titled(query: QueryView) -> Iterator[str | ClauseView]:
    """Yield the clauses; with a title before each where there are several."""
    for number, alternative in enumerate(query.alternatives, 1):
        for clause in alternative:
            if len(query.alternatives) > 1 or len(alternative) > 1:
                yield _title(query, number, clause)
            yield clause


def _title(query: QueryView, number: int, clause: ClauseView) -> str:
    which = f"alternative {number}, " if len(query.alternatives) > 1 else ""
    operands = [
        f"block {side.block}" if side.block is not None else side.stream for side in clause.sides
    ]
    return f"{which}operator {clause.operator}: {f' {clause.kind} '.join(operands)}"


def _minor(survey: Survey, query: QueryView) -> Iterator[str]:
    for clause in _titled(query):
        if isinstance(clause, str):
            yield clause
            continue
        query_class = survey.class_of(clause)
        row = query_class.query_class.row
        template = query_class.query_class.template
        blocks = [side for side in clause.sides if side.block is not None]
        lost = sum(not node.survives for side in blocks for node in side.nodes)
        if not lost:
            yield "the join graph itself: every node of it is joined, compared or shown"
            continue
        yield from template_trees(template, [survey.name(v) for v in row.variables])
        yield f"{counted(lost, 'node', 's')} contracted"


def _template(survey: Survey, query: QueryView) -> Iterator[str]:
    numbers = dict.fromkeys(survey.class_of(clause).template for clause in query.clauses())
    for i, number in enumerate(numbers):
        template = survey.templates[number - 1]
        if i:
            yield ""
        yield from template_lines(survey, template, query.id)


def _used_templates(survey: Survey, query: QueryView) -> list[TemplateView]:
    numbers = dict.fromkeys(survey.class_of(clause).template for clause in query.clauses())
    return [survey.templates[number - 1] for number in numbers]


def _datalog(survey: Survey, query: QueryView) -> Iterator[str]:
    templates = _used_templates(survey, query)
    if not templates:
        return
    for i, view in enumerate(templates):
        yield from ([""] if i else [])
        yield from view.datalog.splitlines()
    yield "(l, r: documents; R_doc, R_docW: values of nodes; R_bin, R_binW: nodes above nodes;"
    yield " R_T: the table of the template; equal names are equal values)"


def _sql(survey: Survey, query: QueryView) -> Iterator[str]:
    for i, view in enumerate(_used_templates(survey, query)):
        yield from ([""] if i else [])
        yield f"-- template {view.number}, as the engine mmqjp-views asks it of a batch:"
        yield f"-- value_join is R_vj, template_row_{view.number} R_T, shape_edge R_bin and R_binW"
        for statement in view.sql:
            yield from f"{statement};".splitlines()


def _class(survey: Survey, query: QueryView) -> Iterator[str]:
    seen: set[int] = set()
    for clause in query.clauses():
        view = survey.class_of(clause)
        if view.number in seen:
            continue
        seen.add(view.number)
        others = [q for q in view.queries() if q != query.id]
        shared = f"shared with {wrap(others)}" if others else "of this query only"
        yield f"class {view.number}, {shared}"
        yield from indent(list(_own(survey, clause)))
        yield from indent(list(_handed_on(survey, query, clause)))
    if seen:
        differing = "window, constants, registration point, SELECT and subscriber"
        yield f"(queries that differ only in {differing} are one class)"


def _handed_on(survey: Survey, query: QueryView, clause: ClauseView) -> Iterator[str]:
    """Yield who reads the tuples of an inner operator in one stream."""
    others = [
        each.id
        for each in survey.queries
        if each.id != query.id and any(c.common == clause.common for c in each.clauses())
    ]
    if clause.common and others:
        yield f"its tuples are handed on in one stream with those of {wrap(others)}"


def _own(survey: Survey, clause: ClauseView) -> Iterator[str]:
    """Yield what a clause does not have in common with the rest of its class."""
    if clause.is_join:
        widest_us = survey.class_of(clause).window_us
        is_widest = clause.window_us == widest_us
        joined = "" if is_widest else f"; the widest, {render_duration(widest_us)}, is joined"
        yield f"its own window: {clause.window}{joined}"
    constants = [
        f"{' or '.join(node.called) or node.step} = {spell_constant(constant)}"
        for side in clause.sides
        for node in side.nodes
        for constant in node.constants
    ]
    constants += [
        f"{' or '.join(node.called) or node.step} {test}"
        for side in clause.sides
        for node in side.nodes
        for test in node.tests
    ]
    constants += [c.text for c in clause.comparisons if c.tested == "constant"]
    if constants:
        yield f"its own constants: {', '.join(constants)}"


def _notes(survey: Survey, query: QueryView) -> Iterator[str]:
    for note in query.notes:
        yield f"{note.code}: {note.text}"


def _decisions(survey: Survey, query: QueryView) -> Iterator[str]:
    late = render_duration(survey.lateness_us)
    for one in query.decisions:
        others = [each for each in one.others if each != query.id]
        shared = f"shared with {wrap(others)}" if others else "of this query only"
        yield f"decision {one.number}: {spell_decision(one)}, {shared}"
        yield from indent(list(asked_lines(one)))
    waiting = [one for one in query.decisions if not one.is_open]
    if waiting:
        grace = render_duration(waiting[0].grace_us)
        why = "as its GRACE and those of what it reads say"
        if not query.says_grace:
            why = "the allowed lateness, because it says no GRACE"
        yield f"answered when the newest event time is {grace} past the end of a tuple: {why}"
    if query.decisions:
        kept = {one.retention_us for one in query.decisions}
        if any(one.is_unbounded for one in query.decisions):
            yield "documents are remembered for good"
        elif not _is_given(query):
            yield (
                f"documents are remembered for {render_duration(max(kept))},"
                f" and {late} of allowed lateness"
            )
        yield "(statements that differ only in SELECT, id and subscriber share their decisions)"


def _variants(survey: Survey, query: QueryView) -> Iterator[str]:
    for number, variant in enumerate(query.variants, 1):
        yield f"variant {number}, {variant.title}"
        yield from indent([*variant.factors])
        if variant.lost:
            yield from indent([line for line in _decisions(survey, variant.view) if line[0] != "("])
    yield from query.unasked


def _tables(survey: Survey, query: QueryView) -> Iterator[str]:
    yield from query.tables


def _is_given(query: QueryView) -> bool:
    """Return whether a window is a parameter."""
    windows = [clause.window for clause in query.clauses()]
    windows += [each for one in query.decisions for each in (one.window, one.within)]
    return any(window.startswith("$") for window in windows)


def _windows(survey: Survey, query: QueryView) -> Iterator[str]:
    late = render_duration(survey.lateness_us)
    has_parameter = any(clause.window.startswith("$") for clause in query.clauses())
    seen: set[str] = set()
    for clause in query.clauses():
        if not clause.is_join:
            continue
        line = f"{clause.kind} within {clause.window}"
        if has_parameter:
            line += f": remembered as long as a subscription says, and {late} of allowed lateness"
        elif clause.retention_us < INFINITE_US:
            kept = render_duration(clause.retention_us)
            line += f": documents are remembered for {kept}, and {late} of allowed lateness"
        else:
            line += ": documents are remembered for good"
        if line not in seen:
            seen.add(line)
            yield line


def _given(survey: Survey, query: QueryView) -> Iterator[str]:
    yield from query.given


def _strata(survey: Survey, query: QueryView) -> Iterator[str]:
    publishers = {other.publish: other.id for other in survey.queries if other.publish}
    streams = list(dict.fromkeys(block.stream for block in query.blocks))
    for clause in query.alternatives[0]:
        reads = [side.stream for side in clause.sides]
        yield f"stratum {clause.stratum}: {clause.kind} reads {', '.join(reads)}"
    for decision in query.decisions:
        yield f"stratum {decision.stratum}: decision {decision.number}"
    for stream in streams:
        if stream in publishers:
            yield f"{stream} is published by {publishers[stream]}"
    if query.publish:
        readers = [q.id for q in survey.queries if query.publish in {b.stream for b in q.blocks}]
        yield f"publishes {query.publish}, read by {wrap(readers) or 'no query here'}"


SECTIONS: dict[str, tuple[str, Section]] = {
    "variables": ("Normal form", _variables),
    "patterns": ("Tree patterns", _patterns),
    "graph": ("Join graph", _graph),
    "minor": ("Minor", _minor),
    "template": ("Template", _template),
    "datalog": ("Conjunctive query", _datalog),
    "sql": ("SQL", _sql),
    "class": ("Query class", _class),
    "unshared": ("Not shared", _notes),
    "decisions": ("Decisions", _decisions),
    "variants": ("Variants", _variants),
    "tables": ("Tables", _tables),
    "given": ("Given", _given),
    "windows": ("Windows", _windows),
    "strata": ("Strata", _strata),
}
"""The sections of a query's explanation, by the name that `--section` takes."""
