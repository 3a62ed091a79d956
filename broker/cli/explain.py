"""`xscl explain`: what queries become, and why documents do not match."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING

import click

from broker.cli.connection import BrokerConnection, connect
from broker.cli.costs import estimates_from, render_estimates, statistics_option
from broker.cli.terminal import (
    EXIT_NO_BROKER,
    Failure,
    Time,
    echo,
    echo_data,
    echo_json,
    message,
    parameter_option,
    read_parameters,
)

if TYPE_CHECKING:
    import xscl
    from broker.explain.model import QueryView, Survey
    from broker.explain.plan import QueryPlan
    from broker.whynot import Reason

__all__ = ["explain"]

_SECTIONS = (
    *("variables", "patterns", "graph", "minor", "template", "datalog"),
    *("sql", "class", "unshared", "decisions", "variants", "tables", "given", "windows", "strata"),
)
_DEFAULT_SECTIONS = tuple(name for name in _SECTIONS if name != "sql")

_NAMES = "name files or directories with queries, or queries of a broker that runs"


@click.command()
@click.argument("paths", nargs=-1, metavar="FILE_OR_DIRECTORY_OR_ID...")
@click.option("--query", "query_ids", multiple=True, metavar="ID", help="Only this query, in full.")
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "mermaid", "dot"]),
    default="text",
    show_default=True,
    help="How to print it; mermaid and dot draw graphs.",
)
@click.option(
    "--section",
    "sections",
    multiple=True,
    type=click.Choice([*_SECTIONS, "automaton", "overview", "all"]),
    help="Only this part; by default all but `sql`, and for several queries the overview."
    " `automaton` is that of all their patterns.",
)
@click.option(
    "--plan",
    "is_plan",
    is_flag=True,
    help="Only what is evaluated once for several queries: RUMOR's m-ops, and which m-rules made"
    " them.  Without files, of the running broker.",
)
@click.option(
    "--lateness",
    default="1d",
    show_default=True,
    metavar="DURATION",
    help="How late a document may come and still find every partner.",
)
@statistics_option
@click.option(
    "--why-not",
    "is_why_not",
    is_flag=True,
    help="Say why documents, named after the file of the query, do not match it.",
)
@click.option(
    "--documents",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --why-not: document lines, of which documents are named by number or key.",
)
@click.option(
    "--time",
    "times",
    multiple=True,
    metavar="TIME",
    help="With --why-not and XML files: the event time (ISO 8601) of each, in their order.",
)
@click.option(
    "--until",
    type=Time(),
    help="With --why-not: when the last tick of the clock is, behind all documents; by default"
    " later than everything, so that all is decided.",
)
@parameter_option("With --why-not: the value of a parameter")
@click.option(
    "--parameters",
    metavar="JSON",
    help='With --why-not: the values of all parameters at once, as {"name": value}.',
)
@click.pass_context
def explain(
    context: click.Context,
    paths: Sequence[str],
    query_ids: Sequence[str],
    output: str,
    sections: Sequence[str],
    is_plan: bool,
    lateness: str,
    statistics: Path | None,
    is_why_not: bool,
    documents: Path | None,
    times: Sequence[str],
    until: int | None,
    given: Sequence[str],
    parameters: str | None,
) -> None:
    """Show what the queries in files and directories (*.xscl) become, or those of a running broker.

    For one query: its variables, tree patterns, join graph and minor, its template and who shares
    it, the conjunctive query, its SQL, and what is not shared and why.  For several: what they
    have in common.  With --statistics: what they will cost besides.

    With --why-not QUERY DOCUMENT DOCUMENT ...: which block, step, comparison, window or lateness
    rule keeps these documents from matching.  Where QUERY is no file, the running broker is asked:
    of a query that is registered, and documents that are kept, by their numbers.

    \b
    Examples:
      xscl explain examples/queries/
      xscl explain same-story
      xscl explain examples/queries/ --query same-story --section sql
      xscl explain examples/queries/ --plan
      xscl explain --plan --query same-story
      xscl explain same-story.xscl --statistics recent.jsonl.gz
      xscl explain examples/queries/ --query book-and-blog --format dot | dot -Tsvg
      xscl explain --why-not same-story.xscl first.xml second.xml
      xscl explain --why-not same-story.xscl 17 item-23 --documents docs.jsonl.gz
      xscl explain --why-not same-story 17 23
      xscl explain --why-not by-author 17 23 -p who=Ann
    """
    if given:
        parameters = json.dumps(read_parameters(given))
    if not paths:
        if not is_plan or is_why_not:
            raise click.UsageError("name files or directories with queries")
        _show_plan(_plan_in_force(connect(context), query_ids), output)
        return
    if is_why_not and _is_registered(paths, documents):
        _show_answer(connect(context), paths, parameters, output)
        return
    if is_why_not:
        queries = _load(context, paths[:1])
        asked = _only(queries, query_ids)
        reason = _why_not(asked, queries, paths[1:], documents, times, lateness, parameters, until)
        _show_reason(reason, output)
        return
    if is_plan:
        queries = _load(context, paths)
        chosen = [query for query in queries if not query_ids or query.id in query_ids]
        _show_plan(_plan_of(chosen, lateness), output)
        return
    _show_queries(_load(context, paths), query_ids, output, sections, lateness, statistics)


def _plan_of(queries: Sequence[xscl.Query], lateness: str) -> QueryPlan:
    from broker.explain.plan import plan_of

    return plan_of(queries, lateness_us=_duration_us(lateness))


def _plan_in_force(connection: BrokerConnection, query_ids: Sequence[str]) -> QueryPlan:
    """Return the plan of a running broker, of one query if one is named."""
    from broker.explain.plan import plan_read

    if len(query_ids) > 1:
        raise click.UsageError("the running broker tells the plan of one --query, or of all")
    answer = connection.get("plan", query=next(iter(query_ids), None))
    if not answer["is_newest"]:
        message("what has changed since the last documents is in force with the next ones")
    return plan_read(answer)


def _show_plan(plan: QueryPlan, output: str) -> None:
    from broker.explain.graphs import plan_picture, to_dot, to_mermaid
    from broker.explain.plan import render_plan

    if output == "json":
        echo_json(plan.as_data())
    elif output == "text":
        echo(render_plan(plan), nl=False)
    else:
        echo_data((to_mermaid if output == "mermaid" else to_dot)(plan_picture(plan)), nl=False)


def _show_queries(
    queries: Sequence[xscl.Query],
    query_ids: Sequence[str],
    output: str,
    sections: Sequence[str],
    lateness: str,
    statistics: Path | None,
) -> None:
    from broker.explain.data import as_data
    from broker.explain.overview import render_overview
    from broker.explain.survey import survey
    from broker.explain.text import render_query
    from xscl import XsclError

    try:
        found = survey(queries, lateness_us=_duration_us(lateness))
    except XsclError as error:
        raise Failure(str(error)) from error
    if "automaton" in sections:
        echo(_automaton([q for q in queries if not query_ids or q.id in query_ids], output))
        return
    chosen = [_query(found, query_id) for query_id in query_ids]
    shown = [query for query in queries if not query_ids or query.id in query_ids]
    estimates = estimates_from(statistics, shown) if statistics else []
    if output == "json":
        data = as_data(found, tuple(query_ids))
        if statistics:
            data["estimates"] = [each.as_data() for each in estimates]
        echo_json(data)
        return
    if not chosen and (len(found.queries) == 1 or (sections and "overview" not in sections)):
        chosen = list(found.queries)
    if output != "text":
        echo_data(_picture(found, chosen, sections, output), nl=False)
    elif not chosen:
        echo(render_overview(found), nl=False)
    else:
        wanted = _SECTIONS if "all" in sections else sections or _DEFAULT_SECTIONS
        echo("\n".join(render_query(found, query, wanted) for query in chosen), nl=False)
    if output == "text" and estimates:
        echo(f"\nCost\n{indent(render_estimates(estimates), '  ')}", nl=False)


def _load(context: click.Context, names: Sequence[str]) -> list[xscl.Query]:
    """Return the queries of files and directories, and by their ids those of a running broker."""
    import xscl

    paths = [Path(name) for name in names if not _is_id(name)]
    for path in paths:
        if not path.exists():
            raise Failure(f"there is no {path}", hint=_NAMES, exit_code=2)
    try:
        queries = [
            *(xscl.load(paths) if paths else ()),
            *(query for name in names if _is_id(name) for query in _registered(context, name)),
        ]
    except xscl.XsclError as error:
        raise Failure(str(error)) from error
    if not queries:
        raise Failure(
            "there is no query here", hint="name a file, or a directory with *.xscl in it"
        )
    return queries


def _registered(context: click.Context, query_id: str) -> list[xscl.Query]:
    import xscl

    try:
        text = connect(context).get("queries", query_id)["text"]
    except Failure as failure:
        if failure.exit_code != EXIT_NO_BROKER:
            raise
        raise Failure(f"there is no {query_id}", hint=_NAMES, exit_code=2) from failure
    return xscl.parse(text, id=query_id)


def _only(queries: Sequence[xscl.Query], query_ids: Sequence[str]) -> xscl.Query:
    chosen = [query for query in queries if not query_ids or query.id in query_ids]
    if len(chosen) == 1:
        return chosen[0]
    ids = ", ".join(query.id for query in queries[:10])
    raise Failure(
        f"--why-not is about one query, not {len(chosen)}", hint=f"name it: --query {ids}"
    )


def _why_not(
    query: xscl.Query,
    queries: Sequence[xscl.Query],
    names: Sequence[str],
    documents: Path | None,
    times: Sequence[str],
    lateness: str,
    parameters: str | None,
    until: int | None,
) -> Reason:
    from broker.cli.whynot import all_of, from_files, from_record, with_tick
    from broker.whynot import Rules, Surroundings, why_not

    if documents is not None:
        chosen = from_record(documents, names)
        around = None
        if query.is_ordered:
            around = Surroundings.of(all_of(documents, until), chosen)
    else:
        chosen = from_files(query, names, times)
        around = Surroundings(with_tick(chosen, until))
        if len(times) < len(names):
            message("no --time for each document: they are taken to come in this order, 1 s apart")
    return why_not(
        query,
        chosen,
        lateness_us=_duration_us(lateness),
        parameters=_values(query, parameters),
        around=around,
        known=Rules(queries),
    )


def _values(query: xscl.Query, parameters: str | None) -> dict[str, object] | None:
    import xscl

    if parameters is None:
        return None
    try:
        return dict(xscl.assignment(query, json.loads(parameters)))
    except ValueError as error:
        raise Failure(f"--parameters: {error}", exit_code=2) from error


def _is_registered(paths: Sequence[str], documents: Path | None) -> bool:
    """Return whether a query of the running broker is meant: no file, and numbers of documents."""
    is_asked = documents is None and all(name.isdecimal() for name in paths[1:])
    return is_asked and _is_id(paths[0])


def _is_id(name: str) -> bool:
    """Return whether a query of the running broker is meant, rather than a file."""
    return not (Path(name).exists() or name.endswith(".xscl") or "/" in name)


def _show_answer(
    connection: BrokerConnection, paths: Sequence[str], parameters: str | None, output: str
) -> None:
    if output not in ("text", "json"):
        raise Failure("--why-not prints text or json", exit_code=2)
    query_id, *docids = paths
    answer = connection.get(
        *("queries", query_id, "why-not"), documents=",".join(docids), parameters=parameters
    )
    rendered = answer.pop("rendered")
    if output == "json":
        echo_json(answer)
    else:
        echo(rendered, nl=False)


def _show_reason(reason: Reason, output: str) -> None:
    from broker.whynot.text import render_reason

    if output == "json":
        echo_json(reason.as_data())
    elif output == "text":
        echo(render_reason(reason), nl=False)
    else:
        raise Failure("--why-not prints text or json", exit_code=2)


def _duration_us(text: str) -> int:
    from xscl.durations import DurationError, read_duration

    try:
        return read_duration(text)
    except DurationError as error:
        raise Failure(f"--lateness: {error}", exit_code=2) from error


def _query(found: Survey, query_id: str) -> QueryView:
    try:
        return found.query(query_id)
    except KeyError as error:
        ids = ", ".join(query.id for query in found.queries[:10])
        raise Failure(f"there is no query {query_id!r} here", hint=f"there are: {ids}") from error


def _automaton(queries: Sequence[xscl.Query], output: str) -> str:
    from broker.explain.survey import survey_with_plan
    from xpath_eval.describe import describe, describe_dot

    if output not in ("text", "dot"):
        raise Failure("the automaton is printed as text or as dot", exit_code=2)
    found, plan = survey_with_plan(queries)
    # The tuples of inner operators are not documents: nothing looks for patterns in them.
    definitions = tuple((v, d) for v, d in plan.definitions if not d.stream.startswith("#"))
    plan = replace(plan, definitions=definitions)
    names = {number: view.name for number, view in found.variables.items()}
    return (describe if output == "text" else describe_dot)(plan, names)


def _picture(
    found: Survey, chosen: Sequence[QueryView], sections: Sequence[str], output: str
) -> str:
    from broker.explain.graphs import (
        flow_picture,
        graph_picture,
        minor_picture,
        to_dot,
        to_mermaid,
    )

    write = to_mermaid if output == "mermaid" else to_dot
    if not chosen:
        return write(flow_picture(found))
    draw = minor_picture if "minor" in sections else graph_picture
    return "\n".join(write(draw(found, query)) for query in chosen)
