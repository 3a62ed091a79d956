"""What an operator hands on: the stream of its tuples, and what it has asked of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import lru_cache
from hashlib import blake2b

from templates.box import (
    SPAN,
    Computed,
    Measured,
    Number,
    Place,
    Solution,
    Test,
    TestedPlace,
    is_of_document,
    place_at,
)
from templates.clause import Clause
from templates.founddata import ByData, as_datum, found_by, found_together
from templates.lengths import LongestSum
from xscl.path import Parameter
from xscl.pattern import INEQUALITIES
from xscl.query import INFINITE_US, operand_terms, term
from xscl.texttests import TEXT_TESTS

__all__ = [
    "may_be_common",
    "places_tested",
    "stream_name",
    "tested_below",
]


_SPAN_ALONE = (SPAN,)
_SPELLED_SPAN = repr(_SPAN_ALONE)


def stream_name(
    clause: Clause,
    tested: tuple[TestedPlace, ...],
    owner: object | None,
    *,
    has_data: bool,
) -> str:
    """Name the stream of a clause's tuples by all that decides which these are.

    The stratum does not: they stay where a stream gets a publisher, or loses it.  Of a common
    stream (`may_be_common`) data do not, either: whose a tuple is, is told by the values that it
    carries, and it has no `owner`.  Of another one that of a query with parameters has the query in
    it: what a query meets, and is stopped for, must not depend on the data of others.  Unless it
    `has_data`, alternatives of its owner that differ in data alone have one stream.
    """
    is_shared = owner is None
    asked = (
        "common" if is_shared else owner,
        None if is_shared else clause.window_us,
        (*clause.box, *clause.unheld) if has_data else [test[:2] for test in clause.box],
    )
    read = (
        [(s.block, s.below and s.below.stream) for s in clause.sources],
        sorted(clause.places.items()),
        clause.residuals,
        clause.tests,
        sorted(clause.compared),
        clause.carried,
        clause.valued,
    )
    spelled = clause.query_class.spelled_in_no_stratum()
    places = _SPELLED_SPAN if tested == _SPAN_ALONE else repr(tested)
    content = f"{repr(asked)[:-1]}, {spelled}, {repr(read)[1:-1]}, {places})"
    return f"#{blake2b(content.encode(), digest_size=16).hexdigest()}"


def may_be_common(clause: Clause) -> bool:
    """Return whether statements with other data may read the tuples of an operator.

    They may where the tuples of one statement are as many as if they were its own: what it tests
    but strings must be the same in all tuples with the same carried nodes.
    """
    below = [source.below for source in clause.sources]
    if [each for each in below if each is not None and not each.is_common]:
        return False
    own = clause.box[sum(map(_tests_below, below)) :]
    if not own:
        return True
    others = [test for test in own if test.operator != "=" or test.is_of_several]
    if not others:
        return True
    if any(test.reads_shared_text for test in others):
        return False
    # What a block asks with constants is asked of the values of a node that stands at a carried
    # one, or above it at a fixed height.
    carried = _carried_places(clause).union(test.place for test in clause.constants)
    return all(_is_of_nodes(test, carried) for test in others)


def places_tested(clause: Clause, asked: ByData, had: Collection[str]) -> Iterator[TestedPlace]:
    """Yield the places in a clause's box whose values are handed on for the clauses above.

    What is solved of nodes is solved again there, of those that are carried.  What is handed on by
    data says by which, and not where they were found; so it is not of data that are `had`.  What is
    asked of a text beside the values of a document always is: it is not handed on.
    """
    if not (clause.box or clause.unheld):  # as mostly
        return
    found = {} if asked is ByData.NO else found_by(clause, had)
    if not asked.asks_each:
        found = {test: each for test, each in found.items() if not test.is_asked}
    always = found_by(clause).items()
    found |= {t: each for t, each in always if t.reads_shared_text or t in clause.unheld}
    for test in clause.box:
        if not _is_solved_again(test):
            yield found.get(test, test.place)
    yield from (found[test] for test in clause.unheld)
    if asked.is_together and (together := found_together(clause, had, asks_each=asked.asks_each)):
        yield together


def _is_solved_again(test: Test) -> bool:
    return isinstance(test.place, Solution) and not test.place.is_handed_on


def _is_of_nodes(test: Test, carried: Collection[Place | Number]) -> bool:
    """Return whether what a test says of a tuple is a matter of its carried nodes alone."""
    if test.operator in TEXT_TESTS or test.excludes or test.is_of_several:
        return test.place in carried
    if test.operator not in INEQUALITIES:
        return False
    match test.place:
        case Place():
            return test.place in carried
        case Computed(operand, terms):
            of_documents = {term(e) for e in operand_terms(operand) if is_of_document(e)}
            return all(name in of_documents or place in carried for name, place in terms)
        case Measured(left=left, right=right):
            return left in carried and right in carried
        case Solution():
            return True  # it is only solved of such


def _carried_places(clause: Clause) -> set[Place]:
    """Return where the nodes are that a clause hands on."""
    left_size = clause.query_class.template.left_size
    found = {
        place_at(int(meta >= left_size), meta)
        for name, meta in clause.places.items()
        if name in clause.carried
    }
    for side, source in enumerate(clause.sources):
        if source.below is not None:
            handed_on = enumerate(source.below.carried, 1)
            found |= {place_at(side, -1, i) for i, name in handed_on if name in clause.carried}
    return found


def tested_below(below: Clause | None, side: int) -> Iterator[Test]:
    """Yield what a clause below, and those below it, ask of the tuples that it hands on."""
    if below is None:
        return
    if below.box or below.unheld:  # mostly there is none
        yield from _box_below(below, side)
    if _has_window_test(below):
        position = 1 + len(below.carried) + below.tested.index(SPAN)
        yield _window_test(side, position, below.window_us)


def _box_below(below: Clause, side: int) -> Iterator[Test]:
    """Yield what the box of a clause below asks of the tuples that it hands on."""
    first = 1 + len(below.carried)
    position = {place: first + i for i, place in enumerate(below.tested)}
    found = found_by(below)
    place: Place | Number
    for test in (*below.box, *below.unheld):
        if test in found and found[test] in position:
            place = place_at(side, -1, position[found[test]])
            yield as_datum(test)._replace(place=place)
            continue
        if isinstance(test.place, Solution) and not test.place.is_handed_on:
            place = _solved_above(test.place, below, side)
        elif below.tested:
            place = place_at(side, -1, position[test.place])
        else:
            continue
        yield test._replace(place=place)


def _tests_below(below: Clause | None) -> int:
    """Return how many tests `tested_below` yields."""
    if below is None:
        return 0
    solved = 0 if below.tested else sum(map(_is_solved_again, below.box))
    told = len(below.box) + len(below.unheld)
    return (told if below.tested else solved) + _has_window_test(below)


def _has_window_test(below: Clause) -> bool:
    if isinstance(below.window_us, LongestSum):
        return False  # what is decided under several lengths is no longer than any
    return bool(below.tested) and below.window_us != INFINITE_US


def _solved_above(solution: Solution, below: Clause, side: int) -> Solution:
    """Return a solution of what a clause below hands on."""
    position = {name: i for i, name in enumerate(below.carried, 1)}
    terms = [(name, place_at(side, -1, position[name])) for name, _ in solution.terms]
    return solution._replace(terms=tuple(terms))


@lru_cache(maxsize=4_096)
def _window_test(side: int, position: int, window_us: int | Parameter) -> Test:
    """Return the test of a window; equal ones are one object, in many clauses."""
    return Test(place_at(side, -1, position), "<=", window_us)
