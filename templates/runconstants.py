"""What conditions of a repetition, and its lengths, read of data: constants, or what runs say."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from templates.box import Test
from templates.clause import Clause
from templates.founddata import finds_by_data
from templates.givenconstants import GivenDatum, GivenLength, asked_of_gap, known_us, named_lengths
from templates.ordered import Repeated
from templates.rundecision import Begin, ElementStream
from templates.saiddata import SaidData, data_named, parameters_read
from xscl.query import Query

__all__ = ["data_read", "given_of", "lengths_of", "with_gap_asked", "with_said"]


def data_read(
    nodes: Sequence[tuple[Query, Repeated]],
) -> tuple[tuple[Test, ...], tuple[Test, ...]]:
    """Return the data that conditions read of what stands before runs, and of their elements.

    Lengths are among them.
    Where nothing stands before them, or a function is of elements, the elements say them.
    """
    alone, within = _parameters(nodes)
    alone.update(each.parameter for _, node in nodes for each in lengths_of(node))
    texts = nodes[0][0].text_parameters
    if nodes[0][1].operand is None:
        return (), data_named(alone | within, texts)
    return data_named(alone, texts), data_named(within, texts)


def _parameters(nodes: Sequence[tuple[Query, Repeated]]) -> tuple[set[str], set[str]]:
    asked = (each for _, node in nodes for each in node.conditions())
    return parameters_read(operand for each in asked for operand in each.operands())


def given_of(
    nodes: Sequence[tuple[Query, Repeated]],
    lefts: Sequence[Clause],
    read: Sequence[ElementStream],
) -> tuple[GivenDatum, ...]:
    """Return the data that conditions read as constants.

    Where elements are found by data, or what stands before them is, each is for a few vectors.
    """
    if any(each.data or each.given for each in read) or any(map(finds_by_data, lefts)):
        return ()
    names = set[str]().union(*_parameters(nodes))
    names.update(each.parameter for _, node in nodes for each in lengths_of(node))
    return tuple(map(GivenDatum.of, data_named(names, nodes[0][0].text_parameters)))


def with_gap_asked(node: Repeated) -> Repeated:
    """Return runs whose gap is a condition, where it is a parameter."""
    gap_us = known_us(node.gap_us)
    return replace(node, each=asked_of_gap(node.each, node.gap_us), gap_us=gap_us)


def lengths_of(node: Repeated) -> Iterator[GivenLength]:
    """Yield the lengths that are parameters."""
    lengths = {name: getattr(node, name) for name in ("gap_us", "window_us", "retention_us")}
    yield from named_lengths({**lengths, "within_us": node.given_within})
    for place, absent in enumerate(node.absences):
        yield from named_lengths({"absent": absent.window_us}, place)


def with_said(begin: Begin, said: SaidData) -> Begin:
    """Return a way to begin whose conditions read data that runs say."""
    return replace(
        begin,
        first=said.conjunction(begin.first),
        each=said.disjuncts(begin.each),
        go_on=None if begin.go_on is None else said.disjuncts(begin.go_on),
        folds=tuple(map(said.fold, begin.folds)),
        absent=tuple(map(said.disjuncts, begin.absent)),
    )
