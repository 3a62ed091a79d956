"""Parameters within conditions of braces and WHERE: data of a box, or asked of each tuple."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from support import given_items
from support.assigned import Stay, given_by_engine, given_by_oracle
from support.examples import is_searching, size
from support.kit import parse_case

from broker.matching.engine import RegisteredQuery
from broker.matching.queries.queryset import QuerySet
from joins import ClassRegistry
from xscl import parse

PLACES = {
    "alone": "S//i->a FOLLOWED BY {{a/l = b/l AND {}, 1 h}} S//i->b",
    "inner": "(S//i->a FOLLOWED BY {{a/l = b/l AND {}, 1 h}} S//i->b)"
    " FOLLOWED BY {{b/l = c/l, 1 h}} S//i->c",
    "outer": "(S//i->a FOLLOWED BY {{a/l = b/l, 1 h}} S//i->b)"
    " FOLLOWED BY {{b/l = c/l AND {}, 1 h}} S//i->c",
    "where": "S//i->a FOLLOWED BY {{a/l = b/l, 1 h}} S//i->b WHERE {}",
}
WORDS = ("a", "A", "a b", "", "5")
NUMBERS = (5, 6.0, -1, 1e60)
PLACED = (1, 2.0, 1.5, 0)
MANY = size(20, 1_000)
LENGTHS = ("1 s", "2 s", "3 s", "1 us")
ASKED = {
    "concat(b/t, $x) = 'aa'": WORDS,
    "tokenize(b/t, $x) = 'a'": ("a", " ", "b", "x"),
    "replace(b/t, $x, 'A') = a/t": ("a", " ", "b", "x"),
    "concat(a/t, $x) = b/t": WORDS,
    "contains(b/t, concat($x, 'b'))": WORDS,
    "contains(concat(a/t, $x), b/t)": WORDS,
    "substring(b/t, $x) = 'a'": PLACED,
    "if (b/p > $x) then a/t else 'a' = 'a'": NUMBERS,
    "b/p > if (a/p < $x) then 3 else 5": NUMBERS,
    "exists(b/e[t = $x])": WORDS,
    "empty(b/e[t = $x]/p)": WORDS,
    "exists(b/e[p > count(t) * $x])": NUMBERS,
    "exists(b/t[$x])": PLACED,
    "b/t[$x] = a/t": PLACED,
    "b/e[position() <= $x]/t = a/t": PLACED,
    "b/t[. != 'xA'][$x] = a/t": PLACED,
    "b/e[t = $x][last()]/t = a/t": WORDS,
    "b[p > count(t) * $x]/p = a/p": NUMBERS,
    "b/e[p = count(t) * $x]/t = 'a'": (5, 2, 7),
    "time(b) > time(a) + $x": LENGTHS,
    "time(b) - $x = time(a)": LENGTHS,
    "time(b) >= time(a) * $x": (1, -1, 1e60),
    "if (dur() > $x) then a/t else 'a' = 'a'": LENGTHS,
    "dur() * $x > b/p * 1000000": (2, 6, 0.5, -1),
    "time(b) - start() != end() - time(a) - $x": LENGTHS,
    "(concat(b/t, $x) = 'aa' OR a/p > 6)": WORDS,
    "(exists(b/e[t = $x]) OR empty(a/e[t = $x]))": WORDS,
    "(empty(b/e[t = $x][p > 4]) OR exists(a/e[t = 'a'][p]))": WORDS,
    "if (empty(b/e[t = $x][p > 4])) then a/t else 'A' = 'A'": WORDS,
    "if (exists(a/e[count(t[. = $x]) > 1]) OR b/p > 6) then 1 else 0 = 1": WORDS,
    "(b[p > count(t) * $x]/t = a/t OR b/t = 'xA')": NUMBERS,
    "(b/t[$x] = 'a' OR time(b) > time(a) + 5 s)": PLACED,
}


ITEMS: dict[str, Any] = {"documents": 10, "prices": ("5", "7", "x", "INF")}
case_of = partial(given_items.case_of, **ITEMS)


def test_each_assignment_has_what_the_oracle_says() -> None:
    """All that is asked in a place by one engine, each in two of the places at least."""
    found: list[str] = []
    for seed, text in enumerate(PLACES.values()):
        queries = {
            f"q{number}": (text.format(asked), ASKED[asked])
            for number, asked in enumerate(ASKED)
            if is_searching() or (number + seed) % 2 == 0
        }
        case = parse_case(given_items.case_of_all(queries, seed, **ITEMS))
        stays = [Stay(q, values, 0, 10) for q, rows in case.assignments.items() for values in rows]
        own = given_by_engine(case, stays, [0, 4], [], 1 + 2 * (seed == 1))
        assert own == given_by_oracle(case, stays), text
        found += own
    assert {json.loads(line)["query"] for line in found} == {f"q{n}" for n in range(len(ASKED))}


@pytest.mark.parametrize("asked", ["dur() * $x > b/p * 1000000", "time(a) = start() + end() * $x"])
def test_intervals_of_tuples_of_joins_are_those_of_their_documents(asked: str) -> None:
    text = (
        "((S//i->a JOIN {a/l = d/l, 2 s} S//i->d) JOIN {a/l = b/l AND %s, 1 h} S//i->b)"
        " FOLLOWED BY {b/l = c/l, 2 s} S//i->c"
    )
    case = parse_case(case_of(text % asked, (0, 3, 0.5), 4, documents=6))
    stays = [Stay("q", values, 0, 6) for values in case.assignments["q"]]
    found = given_by_engine(case, stays, [0, 4], [], 1)
    assert found == given_by_oracle(case, stays) != []


@pytest.mark.parametrize("asked", ASKED)
def test_many_assignments_are_the_classes_of_one(asked: str) -> None:
    values = {
        WORDS: [f"w{i}" for i in range(MANY)],
        LENGTHS: [f"{i} s" for i in range(1, 1 + MANY)],
    }.get(ASKED[asked], [*range(MANY)])
    if asked.startswith(("tokenize", "replace")):
        values = [f"w{i}" for i in range(MANY)]
    for place in ("inner", "outer", "where"):
        (query,) = parse(PLACES[place].format(asked), id="q")
        counts = []
        for given in (values[:1], values):
            classes = ClassRegistry()
            QuerySet(classes).add(RegisteredQuery(query, 0, tuple({"x": x} for x in given)))
            counts.append(len(classes.by_number))
        assert counts[0] == counts[1]


def test_an_equality_that_alone_pairs_documents_is_joined_by_a_text_of_each_assignment() -> None:
    (query,) = parse("S//i->a JOIN {replace(a/t, $x, 'b') = b/t, 1 h} S//i->b", id="q")
    classes = ClassRegistry()
    QuerySet(classes).add(RegisteredQuery(query, 0, ({"x": "a"}, {"x": "b"})))
    assert [len(each.template.value_joins) for each in classes.by_number.values()] == [0, 1]


DECIDED = {
    "next": "S//i->a NEXT {a/l = b/l AND %s AND %s, 1 h} S//i->b",
    "unless": "S//i->a FOLLOWED BY {a/l = b/l AND %s, 1 h} S//i->b"
    " UNLESS {c/l = a/l AND %s} S//i->c",
    "behind joins": "(S//i->a FOLLOWED BY {a/l = b/l AND %s, 1 h} S//i->b)"
    " NEXT {b/l = c/l AND %s, 1 h} S//i->c",
    "limited": "S//i->a FOLLOWED BY {a/l = b/l AND %s, 1 h} S//i->b WHERE %s LIMIT 2 PER 3 s",
}


@pytest.mark.parametrize("place", DECIDED)
def test_what_decisions_ask_of_a_node_of_an_operand_is_asked_there(place: str) -> None:
    second = "c" if place == "unless" else "b"
    asked = DECIDED[place] % ("empty(a/e[t = $x][p > 4])", f"exists({second}/t[. != $x])")
    case = parse_case(case_of(asked, WORDS, 2))
    stays = [Stay("q", values, i % 2, 10) for i, values in enumerate(case.assignments["q"])]
    assert given_by_engine(case, stays, [0, 4], [6], 1) == given_by_oracle(case, stays) != []
    counts = []
    for given in (1, 100):
        classes = ClassRegistry()
        assignments = tuple({"x": f"w{i}"} for i in range(given))
        QuerySet(classes).add(RegisteredQuery(case.queries[0], 0, assignments))
        counts.append(len(classes.by_number))
    assert counts[0] == counts[1]
