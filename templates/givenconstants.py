"""Constants in conditions of runs that assignments are given.

A decision whose conditions name parameters stands for as many as there are vectors of data: what it
reads is the same for all of them, and each reads its own constants (`docs/decided.md`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from templates.box import Test, place_at
from xscl.disjunctions import DataForm
from xscl.path import Parameter
from xscl.query import INFINITE_US, Call, Disjunct, Elements, Residual
from xscl.substitution import with_values

__all__ = [
    "GivenDatum",
    "GivenLength",
    "GivenLengths",
    "asked_of_gap",
    "given_lengths",
    "given_tests",
    "known_us",
    "named_lengths",
    "under",
]

T = TypeVar("T")


class GivenDatum(NamedTuple):
    """A parameter that conditions name: a string, or a number, which is given by its spelling."""

    parameter: str
    is_number: bool

    @classmethod
    def of(cls, test: Test) -> GivenDatum:
        """Return a datum that is handed on as a constant."""
        assert isinstance(test.data, Parameter)
        return cls(test.data.name, test.form is not DataForm.PLAIN)

    def read(self, text: str) -> str | float:
        """Return what it is, as it is spelled."""
        return float(text) if self.is_number else text


class GivenLength(NamedTuple):
    """A length that is given: what it is of, by its name, and the parameter.

    That of a step of a chain, or of what must be absent, has the `place` of these.
    """

    name: str
    parameter: str
    place: int = -1


GivenLengths = Mapping[tuple[str, int], int]
"""Lengths that are given, by what they are of: name and place."""


def given_lengths(
    lengths: Iterable[GivenLength], given: Sequence[GivenDatum], said: Sequence[str]
) -> GivenLengths:
    """Return the lengths that a vector of data gives."""
    places = {each.parameter: place for place, each in enumerate(given)}
    return {
        (each.name, each.place): min(int(float(said[places[each.parameter]])), INFINITE_US)
        for each in lengths
    }


def named_lengths(
    lengths: Mapping[str, int | Parameter | None], place: int = -1
) -> Iterator[GivenLength]:
    """Yield those of some lengths that are given."""
    for name, length in lengths.items():
        if isinstance(length, Parameter):
            yield GivenLength(name, length.name, place)


def known_us(length: int | Parameter) -> int:
    """Return a length, of one that is given the longest that it may be."""
    return INFINITE_US if isinstance(length, Parameter) else length


def asked_of_gap(each: tuple[Disjunct, ...], gap: int | Parameter) -> tuple[Disjunct, ...]:
    """Return what is asked of each element, and that it is no further from the one before it."""
    if not isinstance(gap, Parameter):
        return each
    candidate, before = (Elements(None, e, Call("end", ())) for e in ("candidate", "prev"))
    apart = Residual(Call("-", (candidate, before)), "<=", gap)
    return tuple(replace(one, residuals=(*one.residuals, apart)) for one in each)


def under(value: T, given: Sequence[GivenDatum], said: Sequence[str]) -> T:
    """Return conditions whose parameters are a vector of data."""
    values = {each.parameter: each.read(text) for each, text in zip(given, said, strict=True)}
    return with_values(value, values)


def given_tests(given: Iterable[GivenDatum], first: int) -> tuple[Test, ...]:
    """Return what boxes ask of the vector that a tuple says from a place on."""
    return tuple(
        Test(
            place_at(0, -1, place),
            "=",
            Parameter(each.parameter),
            form=DataForm.SPELLED if each.is_number else DataForm.PLAIN,
        )
        for place, each in enumerate(given, first)
    )
