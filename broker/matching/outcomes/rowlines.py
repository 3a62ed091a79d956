"""Rows of WINDOW are spelled as matches are: a line, an id, an output, a published document."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from broker.documents.document import render_time
from broker.matching.costs.budget import Tally
from broker.matching.outcomes.outcome import OutcomePlace, build_outcome, outcome_id
from broker.matching.outcomes.rows import FoundWindow
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.lines import spell_documents
from broker.matching.rendering.matches import BuiltMatch
from broker.matching.rendering.outputs import Output
from broker.matching.rendering.trees import DocumentTree
from broker.matching.spelling import spell
from xscl.evaluation import Values
from xscl.functions import to_double
from xscl.meter import ExhaustedError, Meter
from xscl.output import build_row

__all__ = ["RowBuilder", "place_of"]

LISTED_MAX = 100
"""The most documents that a row lists; the rest is counted."""

_EXACT = 1 << 53


class RowBuilder:
    """Makes rows; `tree_of` returns the tree of a document."""

    def __init__(self, tree_of: Callable[[Leaf], DocumentTree]) -> None:
        self._tree_of = tree_of

    def build(self, found: FoundWindow, tally: Tally) -> BuiltMatch | None:
        """Return a row as it is kept, None where it goes over its query's budget."""
        leaves = _documents(found)
        place = place_of(found)
        meter = Meter(tally.left(place.account))
        try:
            text, error = self._output(found, leaves[:LISTED_MAX], meter)
        except ExhaustedError:
            tally.pay(place.account, meter.spent, 0)
            return None
        output = Output.of(text, error, meter.spent, ())
        name = outcome_id(place, "row", found.keys)
        line = _line(found, name, leaves, output)
        return build_outcome(place, name, line, text, leaves, meter.spent, tally)

    def _output(
        self, found: FoundWindow, listed: Sequence[Leaf], meter: Meter
    ) -> tuple[str, str | None]:
        values = [*found.keys, *map(_selected, found.values[len(found.keys) :])]

        def trees() -> list[DocumentTree]:
            made = []
            for leaf in listed:
                made.append(self._tree_of(leaf))
                meter.spend(made[-1].cost)
            return made

        topic = found.topic
        return build_row(topic.query.select, values, found.end_us, topic.parameters, trees, meter)


def _documents(found: FoundWindow) -> list[Leaf]:
    """Return the documents of a row's matches, each once, in the order of the matches.

    Of matches that are counted they are in the order of their own ends.
    """
    leaves = list(dict.fromkeys(leaf for match in found.matches for leaf in match.behind))
    if found.matches[0].counted is not None:
        leaves.sort(key=lambda leaf: (leaf.end_us, leaf.position))
    return leaves


def place_of(found: FoundWindow) -> OutcomePlace:
    """Return where a row stands."""
    times = found.watermark_us, found.end_us, found.end_us
    return OutcomePlace(found.topic, found.docid, found.newest, found.depth, *times)


def _line(found: FoundWindow, name: str, leaves: Sequence[Leaf], output: Output) -> str:
    query, given = found.topic.query, dict(found.topic.parameters)
    assert query.rows is not None
    time = render_time(found.end_us)
    documents = spell_documents([leaf.line for leaf in leaves[:LISTED_MAX]], len(leaves))
    shown = [*found.keys, *map(_shown, found.values[len(found.keys) :])]
    named = dict(zip(query.rows.names, shown, strict=True))
    values = f', "values": {spell(named)}' if named else ""
    parameters = f', "parameters": {spell(given)}' if given else ""
    why = "" if output.error is None else f', "output_error": {spell(output.error)}'
    return (
        f'{{"id": "{name}", "query": {spell(query.id)}, "start": "{time}", "end": "{time}",'
        f' "decided": {found.docid}, "documents": {documents}, "roots": [],'
        f' "nodes": {{}}, "witnesses": []{parameters}{values},'
        f' "output": {output.spelled}{why}}}'
    )


def _shown(values: Values) -> Any:
    """Return an aggregate as a line shows it: what is no finite number as its text."""
    numbers = [each if isinstance(each, str) else to_double(each) for each in values]
    shown = [
        each if isinstance(each, str) else _number(each) if _is_whole(each) else _text(each)
        for each in numbers
    ]
    return shown[0] if len(shown) == 1 else shown


def _text(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)


def _is_whole(value: float) -> bool:
    return math.isfinite(value) and value == int(value) and abs(value) < _EXACT


def _selected(values: Values) -> Any:
    """Return an aggregate as SELECT has it: numbers are whole, or decimals, where they can be."""
    numbers = [each if isinstance(each, str) else _number(to_double(each)) for each in values]
    return numbers[0] if len(numbers) == 1 else numbers


def _number(value: float) -> Any:
    if not math.isfinite(value):
        return value
    if _is_whole(value):
        return int(value)
    return Decimal(repr(value)) if 1e-6 <= abs(value) < 1e15 else value
