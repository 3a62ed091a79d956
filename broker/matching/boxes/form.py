"""The form of boxes: the places that they test, with how.

Boxes of one form differ in data alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from broker.matching.boxes.index import Box
from templates.box import NONE_OF, OTHER_NUMBER, SPARED, Number, Place, Test
from templates.clause import Clause
from templates.founddata import says_sets
from xscl.pattern import INEQUALITIES
from xscl.texttests import NEGATED, TEXT_TESTS

__all__ = ["BoundPlace", "Form", "of_value"]

Asked = tuple[Place | Number, str, bool]
"""A test without its data."""


class BoundPlace(NamedTuple):
    """A place that is held against bounds: from below, where it is negated, or from above."""

    place: Place | Number
    is_from_below: bool
    is_strict: bool

    @classmethod
    def of(cls, test: Test | Asked) -> BoundPlace:
        """Return how a test holds what is at its place against data."""
        place, operator = test[:2]
        return cls(place, operator[0] == ">", len(operator) == 1)


class Form(NamedTuple):
    """The places that boxes of a class test; `words` have an operator of `TEXT_TESTS` each.

    So have `unwanted`, whose places must have none of them.  Some `excluded` values `are_numbers`.
    The first `spared` of the `taken` places say which data a tuple is for, if not for all.

    Texts at places `of_several` stand for several values, of which a test holds for one.  There `=`
    is of numbers, and one of the operators.
    """

    query_class: int
    equal: tuple[Place, ...]
    excluded: tuple[Place, ...]
    taken: tuple[Place, ...]
    bounds: tuple[BoundPlace, ...]
    words: tuple[tuple[Place, str], ...]
    unwanted: tuple[tuple[Place, str], ...]
    of_several: frozenset[Place]
    are_numbers: tuple[bool, ...]
    spared: int

    @property
    def has_tests(self) -> bool:
        """Whether boxes test something but windows and registration points."""
        without = self.excluded or self.taken or self.unwanted
        return bool(self.equal or without or self.bounds or self.words)

    @property
    def sought(self) -> tuple[tuple[Place, str], ...]:
        """What is looked for in texts: what must be there, then what must not."""
        return (*self.words, *self.unwanted)

    def sought_by(self, boxes: Sequence[Box]) -> Iterator[list[str]]:
        """Yield what boxes look for, in the same order.

        Of what must not be there a box of several assignments has none.
        """
        for k in range(len(self.equal), len(self.equal) + len(self.words)):
            yield [box.equal[k] for box in boxes]
        for k in range(len(self.taken), len(self.taken) + len(self.unwanted)):
            yield [box.taken[k] for box in boxes if k < len(box.taken)]

    @classmethod
    def of(cls, query_class: int, clause: Clause) -> Form:
        """Return the form of the boxes of a clause.

        For which data a tuple is, is asked at the root alone, unless tuples say the data.
        """
        asks_sets = not clause.stream or says_sets(clause)
        tests = [test for test in clause.box if asks_sets or test.operator != SPARED]
        asked = [(test.place, test.operator, test.is_of_several) for test in tests]
        return cls(query_class, *_tested(tuple(asked)))


@lru_cache(maxsize=4_096)
def _tested(box: tuple[Asked, ...]) -> tuple[Any, ...]:
    """Return the fields of a form behind its class; equal ones are one object, in many forms."""
    found: dict[str, list[Any]] = {name: [] for name in ("=", "!=", NONE_OF, SPARED)}
    bounds: list[BoundPlace] = []
    words: list[tuple[Place, str]] = []
    unwanted: list[tuple[Place, str]] = []
    for place, operator, is_of_several in box:
        if operator in INEQUALITIES:
            bounds.append(BoundPlace.of((place, operator, is_of_several)))
        elif operator.startswith(NEGATED):
            unwanted.append((of_value(place), operator.removeprefix(NEGATED)))
        elif operator in TEXT_TESTS or (operator == "=" and is_of_several):
            words.append((of_value(place), operator))
        elif operator == OTHER_NUMBER:
            found["!="].append(of_value(place))
        else:
            found[operator].append(of_value(place))
    several = frozenset([of_value(place) for place, _, is_of_several in box if is_of_several])
    are_numbers = [how == OTHER_NUMBER for _, how, _ in box if how in ("!=", OTHER_NUMBER)]
    spared = found.pop(SPARED)
    found[NONE_OF] = [*spared, *found[NONE_OF]]
    fields = map(tuple, (*found.values(), bounds, words, unwanted))
    return (*fields, several, tuple(are_numbers), len(spared))


def of_value(place: Place | Number) -> Place:
    """Return a place that has a value of its own, as those of strings do."""
    assert isinstance(place, Place)
    return place
