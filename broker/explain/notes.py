"""What a query does not share with others, and why."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from broker.explain.model import ClauseView, DecisionView, NodeView, SharingNote
from broker.explain.spelling import spell_asked, spell_condition, spell_selected, spell_value
from templates.valueconditions import asked_of_values
from xscl.constants import admitted_constant, tested_excerpt, tested_parameter
from xscl.hoisting import given_position, hoist
from xscl.path import (
    And,
    Comparison,
    Condition,
    Exists,
    Literal,
    Not,
    Opaque,
    Or,
    Path,
    Position,
    Step,
    StringTest,
    XPathValue,
    binding_paths,
    condition_parameters,
    conjuncts,
    counts_positions,
)
from xscl.query import Call, Constructor, Query
from xscl.requiredliterals import required_literals
from xscl.rewriting import strip_variables
from xscl.sequence import units_of
from xscl.xpath1numbers import TEXT_OF_NODE

__all__ = ["note_on_apart", "notes_on"]


def notes_on(
    query: Query,
    alternatives: Sequence[Sequence[ClauseView]],
    decisions: Sequence[DecisionView] = (),
    *,
    are_together: bool = True,
) -> Iterator[SharingNote]:
    """Yield the notes on a query, each once.

    With `are_together` it is compiled once for all its assignments.
    """
    seen: set[str] = set()
    for note in _notes(query, alternatives, decisions, are_together=are_together):
        if note.text not in seen:
            seen.add(note.text)
            yield note


def _notes(
    query: Query,
    alternatives: Sequence[Sequence[ClauseView]],
    decisions: Sequence[DecisionView],
    *,
    are_together: bool,
) -> Iterator[SharingNote]:
    names = {name for name, _ in query.parameters}
    tested = {part for node in _nodes(alternatives) for text in node.tests for part in _parts(text)}
    for block in query.blocks:
        for step in _steps(block.path, tested):
            asked = [*conjuncts(step.predicates[given_position(step) is not None :])]
            if (counted := _counted_in_excerpt(step, asked, tested)) is not None:
                yield _excerpt_note(spell_asked(counted))
                del asked[: len(counted.predicates)]
            for predicate in asked:
                if _is_of_excerpt(predicate, tested):
                    yield _excerpt_note(spell_condition(predicate))
                elif query.is_plain and asked_of_values(predicate, names):
                    yield SharingNote(
                        "residual",
                        f"`{spell_condition(predicate)}` is asked of values of the node, in tuples:"
                        " what is outside the shared fragment is XPath 1.0's, once for each node",
                    )
                else:
                    yield from _condition_notes(predicate, is_positive=True)
    for operator in query.operators():
        for call in (each for disjunct in operator.disjuncts for each in disjunct.tests):
            match call:
                case Call("matches", (_, Literal(str() as pattern))):
                    yield from _expression_notes(pattern, "")
                case Call("matches", (_, Literal(str() as pattern), Literal(str() as flags))):
                    yield from _expression_notes(pattern, flags)
    yield from _constant_notes(query, alternatives)
    if len(alternatives) > 1 and not decisions:
        yield SharingNote(
            "alternatives",
            f"{_sources(query)} {len(alternatives)} alternatives: each is a query class of its own,"
            " and their witnesses are united",
        )
    for alternative in alternatives:
        for clause in alternative:
            yield from _clause_notes(clause)
    for decision in decisions:
        yield from _decision_notes(decision)
    if isinstance(query.select, Constructor):
        yield from _constructor_notes(query.select, query)
    if query.parameters and decisions and not are_together:
        yield note_on_apart(query)
    elif query.parameters:
        given = ", ".join(f"${name}" for name, _ in query.parameters)
        yield SharingNote(
            "parameters",
            f"{given}: equal assignments are one; different ones share all but these values",
        )


def note_on_apart(query: Query) -> SharingNote:
    """Return the note on a query with parameters whose assignments share no decisions."""
    names = ", ".join(f"${name}" for name, _ in query.parameters)
    return SharingNote(
        "decided-parameters",
        f"{names}: each assignment has decisions of its own, because these values are needed to"
        " decide, and not only to look up what was decided",
    )


def _expression_notes(pattern: str, flags: str) -> Iterator[SharingNote]:
    if not required_literals(pattern, flags):
        yield SharingNote(
            "expression",
            f"`{pattern}` needs nothing that is written out: it is run on each text, and not only"
            " where a text may fit it",
        )


def _constant_notes(
    query: Query, alternatives: Sequence[Sequence[ClauseView]]
) -> Iterator[SharingNote]:
    """Yield the conditions with numbers and words that are filters, where they could be data."""
    for side in (side for clauses in alternatives for clause in clauses for side in clause.sides):
        if side.block is None:
            continue
        filters = {text for node in side.nodes for text in node.filters}
        for step in _steps(query.blocks[side.block].path):
            for predicate in conjuncts(step.predicates):
                text = spell_condition(strip_variables(predicate))
                if admitted_constant(predicate) is not None and text in filters:
                    yield SharingNote(
                        "constant",
                        f"`{text}` is looked for in documents by itself: of blocks that are joined"
                        " one has numbers and words as data",
                    )


def _constructor_notes(select: Constructor, query: Query) -> Iterator[SharingNote]:
    from xscl.construct import xpath2_expressions

    for expression in xpath2_expressions(select):
        yield SharingNote(
            "xpath-2",
            f"`{spell_selected(expression, query)}` in SELECT is XPath 2.0: it is evaluated for"
            " each output, on nodes that each document is made into",
        )


def _sources(query: Query) -> str:
    """Return what makes alternatives: OR, units, or both, with its verb."""
    has_units = any(len(unit) > 1 for unit in units_of(query.root))
    if not has_units:
        return "OR makes"
    return (
        "the alternatives of units, and OR, make" if " OR " in query.text.upper() else "units make"
    )


def _decision_notes(decision: DecisionView) -> Iterator[SharingNote]:
    name = f"decision {decision.number}"
    if not decision.is_looked_up:
        yield SharingNote(
            "no-value-join",
            f"{name} without an equality or a similarity passes over all that its window holds",
        )
    if decision.is_unbounded:
        yield SharingNote("unbounded", f"{name} has no window: what it reads is never forgotten")


def _clause_notes(clause: ClauseView) -> Iterator[SharingNote]:
    for comparison in clause.comparisons:
        if comparison.tested == "tuple":
            reason = "no value join, and no comparison of one value with a constant"
            if comparison.operator[0] in "<>":
                reason = "a comparison of numbers"
            elif comparison.operator[0] not in "=!":
                reason = "a test"
            yield SharingNote(
                "residual",
                f"`{comparison.text}` is {reason}: it is looked at tuple by tuple, after the join",
            )
    if clause.is_product:
        yield SharingNote(
            "no-value-join",
            f"{clause.kind} without a value join tries each pair of documents within"
            f" {clause.window}: its cost is the product of both sides",
        )
    if clause.is_unbounded:
        yield SharingNote(
            "unbounded", f"{clause.kind} within {clause.window}: what it reads is never forgotten"
        )


def _steps(path: Path, tested: Collection[str] = ()) -> Iterator[Step]:
    """Yield the steps of a path, those of predicates too, but of what is asked of an excerpt."""
    for step in path.steps:
        yield step
        for predicate in step.predicates:
            if not _is_of_excerpt(predicate, tested):
                for below in binding_paths(predicate):
                    yield from _steps(below, tested)


def _nodes(alternatives: Sequence[Sequence[ClauseView]]) -> Iterator[NodeView]:
    for side in (side for clauses in alternatives for clause in clauses for side in clause.sides):
        yield from side.nodes


def _parts(test: str) -> Iterator[str]:
    """Yield a test, and what of it stands behind others that must hold together with it."""
    yield test
    yield from (test[found.end() :] for found in re.finditer(" and ", test))


def _counted_in_excerpt(
    step: Step, asked: Sequence[Condition], tested: Collection[str]
) -> Step | None:
    """Return a step up to its last position, if nodes are tested for whether it selects them."""
    counting = max((i for i, each in enumerate(asked, 1) if counts_positions(each)), default=0)
    predicates = tuple(strip_variables(each) for each in asked[:counting])
    found = replace(step, is_deep=False, variable=None, predicates=predicates)
    return found if counting and spell_asked(found) in tested else None


def _excerpt_note(asked: str) -> SharingNote:
    return SharingNote(
        "excerpt",
        f"`{asked}` is asked of what it reads of the document, a text, once for each assignment"
        " and text",
    )


def _is_of_excerpt(predicate: Condition, tested: Collection[str]) -> bool:
    """Return whether a predicate is among what nodes are tested for as it stands."""
    stripped = strip_variables(predicate)
    names = {each.name for each in condition_parameters(stripped)}
    if spell_condition(stripped) not in tested or tested_excerpt(stripped, names) is None:
        return False
    return tested_parameter(stripped, names) is None


def _condition_notes(condition: Condition, *, is_positive: bool) -> Iterator[SharingNote]:
    match condition:
        case Opaque(calculated=calculated) if calculated and _is_data(condition):
            return  # a number is data, and the others are worked out as values of any node
        case Opaque(expression, is_positional=is_positional):
            place, what = ", position and size" if is_positional else "", "condition"
            if condition.compared and _is_data(condition):
                held = hoist(condition)
                assert isinstance(held, (Comparison, StringTest))
                value = held.left if isinstance(held, Comparison) else held.value
                assert isinstance(value, XPathValue)
                if value.expression == TEXT_OF_NODE:
                    return  # a path of the fragment
                expression, what = spell_value(value), "text" if value.is_text else "number"
            yield SharingNote(
                "opaque",
                f"`{expression}` is outside the shared fragment: XPath 1.0 evaluates it, once for"
                f" each distinct {what} and node{place}",
            )
            if is_positional:
                yield _position_note(condition)
        case Position():
            yield _position_note(condition)
        case StringTest("matches", argument=Literal(str() as pattern), flags=flags):
            yield from _expression_notes(pattern, flags)
        case Or(conditions):
            if any(map(_compares, conditions)) and not _is_data(condition):
                yield SharingNote(
                    "or",
                    f"`{spell_condition(condition)}` may hold in several ways: its outcome is part"
                    " of the shape, its constants are not data",
                )
            for each in conditions:
                yield from _condition_notes(each, is_positive=False)
        case Not(inner):
            if _compares(inner) and not _is_data(condition):
                yield SharingNote(
                    "not",
                    f"`{spell_condition(condition)}`: its outcome is part of the shape, its"
                    " constants are not data",
                )
            yield from _condition_notes(inner, is_positive=False)
        case And(conditions):
            for each in conditions:
                yield from _condition_notes(each, is_positive=is_positive)


def _position_note(condition: Condition) -> SharingNote:
    return SharingNote(
        "position",
        f"`[{spell_condition(condition)}]` counts what is left before it: the step's"
        " conditions up to there are part of its definition, constants too",
    )


def _is_data(condition: Condition) -> bool:
    """Return whether a condition's constant, or its parameter, is data of a node's values."""
    names = {each.name for each in condition_parameters(condition)}
    if names:
        return (tested_parameter(condition, names) or tested_excerpt(condition, names)) is not None
    return admitted_constant(condition) is not None


def _compares(condition: Condition) -> bool:
    match condition:
        case Comparison() | StringTest():
            return True
        case And(conditions) | Or(conditions):
            return any(map(_compares, conditions))
        case Not(inner):
            return _compares(inner)
        case Exists(path):
            return any(_compares(p) for step in path.steps for p in step.predicates)
    return False
