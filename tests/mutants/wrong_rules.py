"""Rules of the semantics that no text of a query shows, each with an oracle that errs about it.

A rule **decides** in a case in which the erring oracle finds something else than the right one:
an engine with the same fault would be found out by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

import oracle
from oracle import conditions, described, matching, numbering, operators, paths, sequences, values
from oracle.found import Found
from oracle.operators import Rules, Tuple, position
from oracle.values import Atom
from support.query_parts import parts

from broker.documents.document import FIRST_WATERMARK_US, Document, DocumentLine
from mutants.wrong_values import (
    COMPARISONS,
    EMPTY,
    condition,
    first_value,
    host_in_capitals,
    host_of_all,
    host_with_www,
    residual,
)
from xscl.path import Comparison
from xscl.query import Call, Disjunct, Operator, OperatorKind, Query, Residual

__all__ = ["RULES", "Rule"]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule, and what to put where so that the oracle errs about it.

    It is about cases with a query that `needs` it.
    """

    name: str
    where: Any
    function: str
    wrong: Callable[..., Any]
    needs: Callable[[Query], bool] = lambda query: True

    def broken(self) -> Any:
        """Return a context in which the oracle errs."""
        return patch.object(self.where, self.function, self.wrong)


# 1.1: late documents

_is_remembered = operators._is_remembered
_combine = operators._combine
_document = numbering._document
_number_documents = oracle.number_documents


def _without_window(window_us: int, left: Tuple, right: Tuple, rules: Rules) -> bool:
    return _is_remembered(0, left, right, rules)


def _by_start(window_us: int, left: Tuple, right: Tuple, rules: Rules) -> bool:
    left, right = (replace(one, end_us=one.start_us) for one in (left, right))
    return _is_remembered(window_us, left, right, rules)


def _by_oldest_document(window_us: int, left: Tuple, right: Tuple, rules: Rules) -> bool:
    left, right = (
        replace(one, documents=(min(one.documents, key=position),)) for one in (left, right)
    )
    return _is_remembered(window_us, left, right, rules)


def _at_oldest(left: Tuple, right: Tuple) -> Tuple:
    return replace(_combine(left, right), position=min(left.position, right.position))


def _unclamped(line: DocumentLine, *arguments: Any) -> Document:
    document = _document(line, *arguments)
    if document.claimed_us is None:
        return document
    return replace(document, start_us=document.claimed_us, end_us=document.claimed_us)


def _w_of_all(lines: Iterable[DocumentLine]) -> list[Document]:
    documents = _number_documents(lines)
    newest_us = max((document.end_us for document in documents), default=FIRST_WATERMARK_US)
    return [replace(document, watermark_us=newest_us) for document in documents]


def _w_of_stream(lines: Iterable[DocumentLine]) -> list[Document]:
    watermarks: dict[str, int] = {}
    documents = []
    for document in _number_documents(lines):
        watermark_us = watermarks.get(document.stream, FIRST_WATERMARK_US)
        documents.append(replace(document, watermark_us=watermark_us))
        watermarks[document.stream] = max(watermark_us, document.end_us)
    return documents


def _free_or_not(self: Any, stream: str, key: str, ordinal: int) -> tuple[str, int]:
    return (key if ordinal == 1 else f"{key}#{ordinal}"), ordinal


# 4: operators

_is_in_time = operators._is_in_time
_joined_values = operators._joined_values
_share = operators._share
_join = operators.join


def _equal_times_follow(kind: OperatorKind, window_us: int, left: Tuple, right: Tuple) -> bool:
    is_tie = left.end_us == right.start_us and kind is OperatorKind.FOLLOWED_BY
    later = replace(right, start_us=right.start_us + 1) if is_tie else right
    return _is_in_time(kind, window_us, left, later)


def _follow_by_end(kind: OperatorKind, window_us: int, left: Tuple, right: Tuple) -> bool:
    if kind is OperatorKind.FOLLOWED_BY:
        right = replace(right, start_us=right.end_us)
    return _is_in_time(kind, window_us, left, right)


def _window_to_start(kind: OperatorKind, window_us: int, left: Tuple, right: Tuple) -> bool:
    if kind is OperatorKind.FOLLOWED_BY:
        right = replace(right, end_us=right.start_us)
    return _is_in_time(kind, window_us, left, right)


def _join_by_start(kind: OperatorKind, window_us: int, left: Tuple, right: Tuple) -> bool:
    if kind is OperatorKind.JOIN:
        left, right = (replace(one, end_us=one.start_us) for one in (left, right))
    return _is_in_time(kind, window_us, left, right)


def _join_forwards(kind: OperatorKind, window_us: int, left: Tuple, right: Tuple) -> bool:
    return _is_in_time(kind, window_us, left, right) and (
        kind is OperatorKind.FOLLOWED_BY or left.end_us <= right.end_us
    )


def _join_itself(kind: OperatorKind, window_us: int, left: Tuple, right: Tuple) -> bool:
    if len(left.documents) == len(right.documents) == 1 and kind is OperatorKind.JOIN:
        right = replace(right, documents=())
    return _is_in_time(kind, window_us, left, right)


def _join_own_part(kind: OperatorKind, window_us: int, left: Tuple, right: Tuple) -> bool:
    if len(left.documents) + len(right.documents) > 2 and kind is OperatorKind.JOIN:
        right = replace(right, documents=())
    return _is_in_time(kind, window_us, left, right)


def _from_left_start(left: Tuple, right: Tuple) -> Tuple:
    return replace(_combine(left, right), start_us=left.start_us)


def _to_right_end(left: Tuple, right: Tuple) -> Tuple:
    return replace(_combine(left, right), end_us=right.end_us)


def _any_combination(
    operator: Operator,
    disjunct: Disjunct,
    lefts: Sequence[Tuple],
    rights: Sequence[Tuple],
    rules: Rules,
) -> Iterator[Tuple]:
    lefts = _mixed(lefts) if isinstance(operator.left, Operator) else lefts
    rights = _mixed(rights) if isinstance(operator.right, Operator) else rights
    return _join(operator, disjunct, lefts, rights, rules)


FEW = 50
"""Enough of many tuples for an error to show."""


def _mixed(tuples: Sequence[Tuple]) -> list[Tuple]:
    """Return the tuples, and each with one node of another one of the same documents."""
    return [
        *tuples,
        *(
            replace(one, nodes={**one.nodes, variable: node})
            for one in tuples[:FEW]
            for other in tuples[:FEW]
            if other.documents == one.documents
            for variable, node in other.nodes.items()
        ),
    ]


def _with_empty_values(
    disjunct: Disjunct, side: int, one: Tuple, rules: Rules
) -> list[frozenset[Atom]]:
    operands = [(join.left, join.right)[side] for join in disjunct.value_joins]
    return [frozenset(operators._values(each, one, rules) or ()) for each in operands]


def _all_values(left: frozenset[Atom], right: frozenset[Atom]) -> bool:
    return left == right and _share(left, right)


# 6 and 7: matches, published documents, registration

_in_order = matching.in_order
_sort_witnesses = described._sort_witnesses
_publish = matching._Streams.publish
_read = matching._Streams.read
_query_matches = matching._query_matches


def _all_named(query: Query, variables: Iterable[str]) -> list[str]:
    named = (variable.name for variable in query.variables if not variable.is_path)
    return _in_order(query, {*variables, *named})


def _unsorted(query: Query, witnesses: set[Any]) -> list[Any]:
    return _sort_witnesses(query, witnesses)[::-1]


def _published_at_end(self: Any, query: Query, found: Found) -> None:
    _publish(self, query, replace(found, match=replace(found.match, start_us=found.match.end_us)))


def _published_at_oldest(self: Any, query: Query, found: Found) -> None:
    oldest = min(document.docid for document in found.match.documents)
    _publish(self, query, replace(found, match=replace(found.match, decided=oldest)))


def _star_reads_published(self: Any, stream: str, point: int) -> list[Any]:
    published = {each.stream for each in self._documents if each.depth}
    streams = [stream, *sorted(published)] if stream == "*" else [stream]
    return [found for each in streams for found in _read(self, each, point)]


def _newest_after_point(
    query: Query, streams: Any, rules: Rules, point: int, grace_us: int
) -> list[Any]:
    found = _query_matches(query, streams, rules, 0, grace_us)
    return [each for each in found if each.match.position > point]


def _published_have_no_point(self: Any, stream: str, point: int) -> list[Any]:
    published = [found for found in _read(self, stream, 0) if found[0].depth]
    return published or _read(self, stream, point)


def _on(
    where: Any,
    function: str,
    wrong: Mapping[str, Callable[..., Any]],
    needs: Callable[[Query], bool] = lambda query: True,
) -> list[Rule]:
    return [Rule(name, where, function, error, needs) for name, error in wrong.items()]


def _is_nested(query: Query) -> bool:
    return len(query.blocks) > 2


def _is_nested_or_publishes(query: Query) -> bool:
    return _is_nested(query) or _publishes(query)


def _publishes(query: Query) -> bool:
    return query.publish is not None


def _has(kind: type, function: str = "") -> Callable[[Query], bool]:
    """Return what knows queries that have a part of a kind: a call, of a function."""
    return lambda query: any(
        isinstance(part, kind) and getattr(part, "function", function) == function
        for part in parts(query)
    )


TOKENIZE = _has(Call, "tokenize")

RULES = (
    *_on(
        operators,
        "_is_remembered",
        {
            "1.1 an inner match is remembered by its end": _by_start,
            "1.1 W(n) of the newest document of Y": _by_oldest_document,
        },
        _is_nested_or_publishes,
    ),
    Rule("1.1 remembered for the window, too", operators, "_is_remembered", _without_window),
    *_on(
        oracle,
        "number_documents",
        {
            "1.1 W(n) of the documents below n only": _w_of_all,
            "1.1 W(n) of all streams": _w_of_stream,
        },
    ),
    Rule("1 a key is unique in its stream", numbering._Keys, "_first_free", _free_or_not),
    Rule("1.1 a claimed time after the arrival", numbering, "_document", _unclamped),
    *_on(
        operators,
        "_combine",
        {"1.1 an inner match stands at its newest document": _at_oldest},
        _is_nested,
    ),
    *_on(
        operators,
        "_is_in_time",
        {
            "4 FOLLOWED BY: the right operand's start": _follow_by_end,
            "4 FOLLOWED BY: the window reaches to the end": _window_to_start,
            "4 JOIN: the distance of ends": _join_by_start,
            "4 JOIN: nor with a match that it is in": _join_own_part,
        },
        _is_nested_or_publishes,
    ),
    *_on(
        operators,
        "_is_in_time",
        {
            "4 equal times never follow each other": _equal_times_follow,
            "4 JOIN: in both directions": _join_forwards,
            "4 JOIN: never a document with itself": _join_itself,
        },
    ),
    *_on(
        operators,
        "_combine",
        {
            "4 interval: from the earliest start": _from_left_start,
            "4 interval: to the latest end": _to_right_end,
        },
    ),
    Rule("4 outer predicates see the inner tuple", sequences, "join", _any_combination, _is_nested),
    Rule("4 the empty string joins nothing", operators, "_joined_values", _with_empty_values),
    *(
        Rule(f"4 residual: {name}", conditions, "compare_operands", residual(wrong), _has(Residual))
        for name, wrong in (*COMPARISONS.items(), EMPTY)
    ),
    *(
        Rule(
            f"3 comparison: {name}",
            paths,
            "compare_with_constant",
            condition(wrong),
            _has(Comparison),
        )
        for name, wrong in COMPARISONS.items()
    ),
    *_on(operators, "_share", {"5 some value of each side": _all_values}, TOKENIZE),
    *_on(conditions, "apply", {"5 a function may have several values": first_value}, TOKENIZE),
    *_on(
        values,
        "_host",
        {
            "5 host without www.": host_with_www,
            "5 host in lower case": host_in_capitals,
            "5 host of what is not a URL": host_of_all,
        },
        _has(Call, "host"),
    ),
    Rule(
        "6 witnesses have what is compared, no more",
        matching,
        "in_order",
        _all_named,
        lambda query: query.is_plain,
    ),
    Rule("6 witnesses are in order", described, "_sort_witnesses", _unsorted),
    *_on(
        matching._Streams,
        "publish",
        {
            "6 a published document has the match's interval": _published_at_end,
            "1.1 a published document stands at its newest": _published_at_oldest,
        },
        _publishes,
    ),
    Rule("2 * is any outside stream", matching._Streams, "read", _star_reads_published, _publishes),
    Rule("7 both documents are after the point", matching, "_query_matches", _newest_after_point),
    Rule(
        "7 published documents, too, are after the point",
        matching._Streams,
        "read",
        _published_have_no_point,
        _publishes,
    ),
)
