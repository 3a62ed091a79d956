"""Parameters of blocks that are data of values: behind `not`, of functions, and of numbers."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from support import given_items
from support.assigned import Stay, given_by_engine, given_by_oracle
from support.budget_runs import stream
from support.budgets import UNLIMITED
from support.examples import is_searching, size, some
from support.kit import parse_case
from support.runners import lines, run_engine, run_oracle

from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.queries.queryset import QuerySet
from joins import ClassRegistry
from xscl import parse

PAIR = "S//i{}->a FOLLOWED BY {{a/l = b/l, 1 h}} S//i{}->b"
THREE = (
    "(S//i{}->a FOLLOWED BY {{a/l = b/l, 1 h}} S//i{}->b) FOLLOWED BY {{b/l = c/l, 1 h}} S//i{}->c"
)
PLACES = {
    "left": lambda asked: PAIR.format(asked, ""),
    "right": lambda asked: PAIR.format("", asked),
    "first of three": lambda asked: THREE.format(asked, "", ""),
    "middle of three": lambda asked: THREE.format("", asked, ""),
    "last of three": lambda asked: THREE.format("", "", asked),
    "limited": lambda asked: f"{PAIR.format(asked, '')} LIMIT 2 PER 2 s",
    "before the next": lambda asked: PAIR.format(asked, "").replace("FOLLOWED BY", "NEXT"),
    "not followed": lambda asked: PAIR.format(asked, "").replace("FOLLOWED", "NOT FOLLOWED"),
    "before an absence": lambda asked: f"{PAIR.format('', asked)} UNLESS {{c/l = a/l}} S//i[p]->c",
    "before runs": lambda asked: f"{PAIR.format(asked, '')}+",
}
WORDS = ("a", "A", "a b", "", "5")
NUMBERS = (5, 6.0, -1, 1e9)
PLACED = (1, 2.0, 3, 1.5, 0)
MIXED = ("a", "A", "5.0", 5, 7.0, "")
READ = (2, 10.0, "2", "x", "", -1, " 10 ")
ASKED = {
    "[p = $x]": NUMBERS,
    "[p != $x]": NUMBERS,
    "[not(p = $x)]": WORDS,
    "[not(contains(t, $x))]": WORDS,
    "[not(matches(t, $x, 'i'))]": WORDS,
    "[lower-case(t) = $x]": WORDS,
    "[lower-case(t) != $x]": WORDS,
    "[not(starts-with(lower-case(t), $x))]": WORDS,
    "[contains(lower-case(t), $x)]": WORDS,
    "[string-length(t) < $x]": NUMBERS,
    "[string-length(t) = $x]": NUMBERS,
    "[not(p >= $x)]": NUMBERS,
    "[e[p]/t[. = $x]]": WORDS,
    "[e[t = 'a'][p < $x]]": NUMBERS,
    "[e[contains(t, $x)]/p]": WORDS,
    "[not(e[t = $x]/p)]": WORDS,
    "[e[lower-case(t) = $x]]": WORDS,
    "[count(t) > $x]": READ,
    "[$x >= p * 2]": READ,
    "[sum(e/p) = $x]": READ,
    "[p * 2 != $x]": READ,
    "[not(p * 2 <= $x)]": READ,
    "[not(count(t) = $x)]": READ,
    "[e[count(t) < $x]/p]": READ,
    "[t = $x or p = $x]": WORDS,
    "[contains(t, $x) or p < 6]": WORDS,
    "[starts-with(t, $x) or matches(t, 'b$') or t = $x]": WORDS,
    "[p < $x or p > $x]": NUMBERS,
    "[p = $x or t = 'a']": NUMBERS,
    "[p != $x or t != 'a']": NUMBERS,
    "[t != $x or p <= 4]": WORDS,
    "[not(t = $x or contains(e/t, $x))]": WORDS,
    "[not(p >= $x or t = 'A')]": NUMBERS,
    "[not(p = $x or p = 7)]": NUMBERS,
    "[not(t != $x)]": WORDS,
    "[count(t) > $x or t = 'A']": READ,
    "[t[$x] = 'a']": PLACED,
    "[e[$x]/p]": PLACED,
    "[e[position() > $x][p]/t = 'a']": PLACED,
    "[not(t[$x])]": PLACED,
    "[contains(*[$x], '5') or p[$x] = 7]": PLACED,
    "[e[not(t = $x)]]": WORDS,
    "[e[not(t = $x)]/p]": WORDS,
    "[e[t = $x or p = 4][not(t = 'A')]]": WORDS,
    "[e[not(p < $x)][p != $x]]": NUMBERS,
    "[e[count(t) > $x][not(p)]]": READ,
    "[not(count(t) != $x or p * 2 = $x)]": READ,
    "[e[t = $x or p = 7]/p]": WORDS,
    "[p > count(t) * $x]": READ,
    "[$x * p - 3 <= 7]": READ,
    "[p * 2 + $x = 12]": READ,
    "[p != e/p * $x]": READ,
    "[2 * $x != p - 1]": READ,
    "[p >= $x div (count(t) * -1)]": READ,
    "[p - 1 != count(t) * $x or t = 'A']": READ,
    "[not($x div p != 2)]": READ,
    "[sum(p) div $x < 3]": READ,
    "[p < -$x]": READ,
    "[count(t) * 1.1 >= $x div 3]": READ,
    "[p = count(t) * $x]": READ,
    "[t = $x and p > 4 or contains(t, $x)]": WORDS,
    "[not(t = $x and e/t) or p = 4]": WORDS,
    "[not(p > $x or not(count(t) != $x))]": NUMBERS,
    "[p > count(t) * $x or t = 'xA']": READ,
    "[not(matches(t, $x) and p != 5)]": WORDS,
    "[p = 2.5 * $x]": READ,
    "[e[p > count(t) * $x]]": READ,
    "[e[p != count(t) * $x]/t]": READ,
    "[e[t = $x and p = 4 or p = 7]/p]": WORDS,
    "[string(t) = $x]": MIXED,
    "[string(p) != $x]": MIXED,
    "[concat(t, e/t) = $x]": WORDS,
    "[substring(t, 2) < $x]": READ,
    "[not(string(t) = $x)]": MIXED,
    "[starts-with(concat(t, e/t), $x)]": MIXED,
    "[not(contains(concat(t, p), $x))]": WORDS,
    "[local-name(*) = $x]": ("p", "t", "e", "l"),
    "[t = normalize-space($x)]": (*WORDS, " a  b "),
    "[p != string($x)]": READ,
    "[contains(t, concat($x, 'A'))]": WORDS,
    "[t = concat($x, ' b') or p = 7]": WORDS,
    "[e[string(t) = $x]/p]": WORDS,
    "[e[not(concat(t, p) = $x)]]": WORDS,
    "[boolean(t = $x)]": WORDS,
    "[boolean(p != $x)]": READ,
    "[concat(t, $x) = 'ab' or p = 4]": ("b", "a b", "ab", "", 5),
    "[substring(t, $x) = 'A']": PLACED,
    "[substring-before(t, $x) = 'x']": WORDS,
    "[not(concat(t, $x) = concat($x, t))]": WORDS,
    "[(p > $x) != (count(t) > 1)]": READ,
    "[(p = $x) = e]": READ,
    "[string(1 div ((count(t) - 1) * $x)) = 'Infinity']": READ,
    "[round(p div $x) = 2]": READ,
    "[string(t = $x) = 'true' and p != 5]": WORDS,
    "[p[. != 5] = $x * count(t)]": READ,
    "[e[concat(t, $x) = 'ab']/p]": ("b", "a b", " b", ""),
    "[e[p > count(t) * $x][t]]": READ,
    "[e[t = $x and p or p = 7]/p > 4]": WORDS,
    "[not(e[t = $x][p > 4])]": WORDS,
    "[t[. != 'a'][$x] = 'A']": PLACED,
    "[not(e[p > count(t) * $x]/t)]": READ,
    "[not(e[not(t = $x)])]": WORDS,
    "[e[p > $x][2]]": NUMBERS,
    "[count(t[. = $x]) > 1]": MIXED,
    "[p = 7 or *[last() - $x] = 'a']": PLACED,
    "[not(.//t[. = $x][last()])]": WORDS,
    "[string(*[self::t][contains(., $x)]/text()) = 'a b' or not(e[t = $x][p = $x])]": WORDS,
    "[e/t[substring(., $x) = 'a']][e[p mod $x = 1]]": PLACED,
}


MANY = size(20, 1_000)
EACH = ("[not(p * 2 <= $x)]",)
"""Decided for one by one: strings for what must be a number."""


ITEMS: dict[str, Any] = {"documents": 8, "prices": ("5", "5.0", "7", "x", "", "NaN")}
case_of = partial(given_items.case_of, **ITEMS)


@pytest.mark.parametrize("place", PLACES)
def test_each_assignment_has_what_the_oracle_says(place: str) -> None:
    """All that is asked in a place by one engine, each in one of the places at least."""
    seed = [*PLACES].index(place)
    queries = {
        f"q{number}": (PLACES[place](asked), ASKED[asked])
        for number, asked in enumerate(ASKED)
        if is_searching() or (number + seed) % len(PLACES) == 0
    }
    case = parse_case(given_items.case_of_all(queries, seed, **ITEMS))
    stays = [Stay(q, values, 0, 8) for q, rows in case.assignments.items() for values in rows]
    shards = 1 + 2 * (place in ("right", "middle of three"))
    assert given_by_engine(case, stays, [0, 3], [], shards) == given_by_oracle(case, stays)


@pytest.mark.parametrize("place", ["before the next", "not followed", "before runs"])
def test_numbers_and_strings_come_and_go_before_a_decision(place: str) -> None:
    given = (5, "5", 7.0, "7", "x", 6)
    case = parse_case(case_of(PLACES[place]("[p = $x or t = $x]"), given, 3))
    stays = [Stay("q", values, i % 3, 6 + i % 3) for i, values in enumerate(case.assignments["q"])]
    for cuts in ([0, 3], range(9)):
        assert given_by_engine(case, stays, cuts, [4], 1) == given_by_oracle(case, stays)


@pytest.mark.parametrize("asked", ASKED)
def test_many_assignments_are_one_class_for_each_operator(asked: str) -> None:
    values = map(str, range(MANY)) if ASKED[asked] is WORDS else range(MANY)
    classes = ClassRegistry()
    (query,) = parse(PLACES["middle of three"](asked), id="q")
    assignments = tuple({"x": each} for each in values)
    QuerySet(classes).add(RegisteredQuery(query, 0, assignments))
    assert len(classes.by_number) == 2


@pytest.mark.parametrize("place", ["limited", "before the next", "not followed", "before runs"])
def test_assignments_are_one_class_for_each_operator_where_something_is_decided(place: str) -> None:
    for asked in some((each for each in ASKED if each not in EACH), 40):
        classes: list[int] = []
        for count in (1, 4):
            registry = ClassRegistry()
            (query,) = parse(PLACES[place](asked), id="q")
            is_text = ASKED[asked] not in (NUMBERS, PLACED)
            values = (str(i) if is_text else i for i in range(count))
            QuerySet(registry).add(RegisteredQuery(query, 0, tuple({"x": each} for each in values)))
            classes.append(len(registry.by_number))
        assert classes[0] == classes[1], asked


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("S//a NEXT {, 9 s} S//b[not(count(k) > $n)]", [3, 3, 5]),
        ("S//a[not(count(k) >= $n)] NEXT {, 9 s} S//b", [3, 3, 5]),
        ("S//a->v JOIN {, 9 s} S//b[not(sum(k) < $n)][t = $n]", [1, 1, 3]),
        ("S//a[not(count(k) > $n)] LIMIT 1 PER 1 day", [2, 2, 4]),
    ],
)
def test_texts_that_are_no_number_are_one_class_for_a_bound_behind_not(
    text: str, counts: list[int]
) -> None:
    classes = ClassRegistry()
    (query,) = parse(text, id="q")
    queries = QuerySet(classes)
    queries.add(RegisteredQuery(query, 0))
    found = []
    for given in (["x"], ["x", "INF", "y"], [1, "x", "2", 3, "y"]):
        for each in given:
            queries.assign("q", {"n": each})
        found.append(len(classes.by_number))
        for each in given:
            queries.unassign("q", {"n": each})
    assert found == counts
    queries.remove("q")
    assert not classes.by_number


@pytest.mark.parametrize(
    ("asked", "own", "other"),
    [("[not(contains(t, $x))]", "b", "a"), ("[t = $x or p < 1]", "a", "b")],
)
def test_who_is_given_words_is_paused_for_pairs_as_who_has_them_written(
    asked: str, own: str, other: str
) -> None:
    documents = stream(["<t>a</t><p>2</p><l>1</l>"] * 9)
    xml = {each.docid: each.xml for each in documents}
    text = PLACES["left"](asked)
    (query,) = parse(text, id="q")
    (written,) = parse(text.replace("$x", f"'{own}'"), id="q")
    pauses = []
    for registered in (
        RegisteredQuery(written, 0),
        RegisteredQuery(query, 0, ({"x": own},)),
        RegisteredQuery(query, 0, ({"x": own}, {"x": other})),
    ):
        budget = replace(UNLIMITED, pairs_per_document=4)
        engine = Engine([registered], lateness_us=0, budget=budget)
        step = engine.process(
            engine.evaluate(documents), lambda docids: {docid: xml[docid] for docid in docids}
        )
        pauses.append([(each.docid, each.reason) for each in step.pauses])
    assert len(pauses[0]) == 1
    assert pauses[1:] == pauses[:1] * 2


@pytest.mark.parametrize(
    ("asked", "count"),
    [
        ("[count(t[. = $x]) > 0]", 0),
        ("[t = concat($x, 'b')]", 0),
        ("[concat(t, $x) != 'ab']", 1),
        ("[string(t) = $x]", 0),
        ("[t[2][concat(., $x) = 'a']]", 0),
        ("[not(concat(t, $x) = 'a')]", 1),
    ],
)
def test_what_xml_has_no_way_to_write_is_in_no_text(asked: str, count: int) -> None:
    documents = stream(["<t>a</t>"])
    written = asked.replace("$x", "'\x01'")
    for condition, assignments in ((asked, ({"x": "\x01"},)), (written, ())):
        (query,) = parse(f"S//i{condition}->a", id="q")
        engine = Engine([RegisteredQuery(query, 0, assignments)], lateness_us=0)
        step = engine.process(engine.evaluate(documents), lambda _: {1: documents[0].xml})
        assert len(step.matches) == count


BRACES = "S//i->a FOLLOWED BY {{a/l = b/l AND {}, 1 h}} S//i->b"
INNER = f"({BRACES}) FOLLOWED BY {{{{b/l = c/l, 1 h}}}} S//i->c"


@pytest.mark.parametrize("text", [BRACES, INNER])
@pytest.mark.parametrize(
    "asked", ["contains(lower-case(b/t), {})", "starts-with(normalize-space(a/t), {})"]
)
def test_functions_of_texts_are_looked_through_in_braces(text: str, asked: str) -> None:
    case = parse_case(case_of(text.format(asked.format("$x")), WORDS, 3))
    stays = [Stay("q", values, 0, 8) for values in case.assignments["q"]]
    assert given_by_engine(case, stays, [0, 3], [], 1) == given_by_oracle(case, stays)
    written = "\n".join(
        each
        for each in case_of(text.format(asked.format("'a'")), (), 3).splitlines()
        if not each.startswith("parameters")
    )
    case = parse_case(f"{written}\n")
    assert case.queries
    assert lines(run_engine(case)) == lines(run_oracle(case)) != []


OF_SEVERAL = {
    "[t = $x][2]": WORDS,
    "[p > $x][1]": NUMBERS,
    "[not(e/t = $x)][last()]": WORDS,
    "[t][last() - $x][e]": PLACED,
    "[position() * 2 = $x + 1]": PLACED,
    "[last() = $x]": PLACED,
    "[../@n = $x]": WORDS,
    "[following-sibling::i/t = $x][position() < 3]": WORDS,
    "[/f/@n = $x or preceding-sibling::*[1]/t = $x]": WORDS,
    "[t[lang($x)]]": WORDS,
    "[t[. = $x][1][../../@n = $x]]": WORDS,
}


@pytest.mark.parametrize("asked", OF_SEVERAL)
def test_what_is_beside_an_item_is_data_in_all_places(asked: str) -> None:
    number = [*OF_SEVERAL].index(asked)
    for seed, place in enumerate(PLACES):
        if (number + seed) % len(PLACES) and not is_searching():
            continue
        classes: list[int] = []
        for count in (1, MANY):
            registry = ClassRegistry()
            (query,) = parse(PLACES[place](asked), id="q")
            values = (str(i) if OF_SEVERAL[asked] is WORDS else i for i in range(count))
            QuerySet(registry).add(RegisteredQuery(query, 0, tuple({"x": each} for each in values)))
            classes.append(len(registry.by_number))
        assert classes[0] == classes[1], place
        case = parse_case(case_of(PLACES[place](asked), OF_SEVERAL[asked], seed, items=3))
        stays = [Stay("q", values, i % 2, 8) for i, values in enumerate(case.assignments["q"])]
        found = given_by_engine(case, stays, [0, 3], [5], 1 + 2 * (seed % 2))
        assert found == given_by_oracle(case, stays), place


ASKED_OF_EACH = [
    *("[not(e[t = $x][p > 4])]", "[t[. != 'a'][$x] = 'A']", "[count(t[. = $x]) > 1]"),
    *("[not(e[p > count(t) * $x]/t)]", "[e[not(t = $x) and p][last()]]"),
    *("[not(concat(t, $x) = 'aa')]", "[not(p != count(t) * $x) and t = $x or e]"),
]
DECIDED = {
    "the next": PAIR.format("", "%s").replace("FOLLOWED BY", "NEXT"),
    "both": PAIR.format("%s", "%s").replace("FOLLOWED BY", "NEXT"),
    "what is absent": f"{PAIR.format('', '')} UNLESS {{c/l = a/l}} S//i%s->c",
    "not followed": PAIR.format("%s", "%s").replace("FOLLOWED", "NOT FOLLOWED"),
    "elements": f"{PAIR.format('', '%s')}+",
}


@pytest.mark.parametrize("place", DECIDED)
def test_who_is_asked_for_each_text_has_what_the_oracle_says(place: str) -> None:
    number = [*DECIDED].index(place)
    tried = [
        each for each in enumerate(ASKED_OF_EACH) if is_searching() or each[0] % 2 == number % 2
    ]
    for seed, half in enumerate((tried[::2], tried[1::2])):
        queries = {
            f"q{n}": (DECIDED[place].replace("%s", asked), PLACED if "[$x]" in asked else MIXED)
            for n, asked in half
        }
        case = parse_case(given_items.case_of_all(queries, 2 * number + seed, **ITEMS))
        stays = [
            Stay(q, values, i % 2, 8)
            for q, rows in case.assignments.items()
            for i, values in enumerate(rows)
        ]
        found = given_by_engine(case, stays, [0, 3], [5], 1 + seed % 2)
        assert found == given_by_oracle(case, stays), seed


@pytest.mark.parametrize("place", ["the next", "what is absent", "not followed"])
def test_who_is_asked_for_each_text_is_decided_for_together(place: str) -> None:
    for asked in ("[count(t[. = $x]) > 1]", "[not(concat(t, $x) = 'aa')]", "[not(p != t * $x)]"):
        classes: list[int] = []
        for count in (1, 4):
            registry = ClassRegistry()
            (query,) = parse(DECIDED[place].replace("%s", asked), id="q")
            assignments = tuple({"x": str(each)} for each in range(count))
            QuerySet(registry).add(RegisteredQuery(query, 0, assignments))
            classes.append(len(registry.by_number))
        assert classes[0] == classes[1], asked


@pytest.mark.parametrize(
    ("asked", "is_paused"),
    [
        *(("[not(concat(t, $x) = 'aa')]", False), ("[not(e[t = $x][p < $x])]", False)),
        *(("[starts-with(t, $x)]", True), ("[t[starts-with(., $x)] or t = $x]", True)),
    ],
)
def test_who_is_asked_counts_for_no_document_of_a_block_and_who_is_found_for_each(
    asked: str, is_paused: bool
) -> None:
    documents = stream(["<t>123</t><l>1</l>"] * 9)
    xml = {each.docid: each.xml for each in documents}
    (query,) = parse(f"{DECIDED['the next'].replace('%s', asked)} GRACE 0 s", id="q")
    given = tuple({"x": each} for each in ("1", "12", "123", ""))
    budget = replace(UNLIMITED, matches_per_1000_documents=40)
    engine = Engine([RegisteredQuery(query, 0, given)], lateness_us=0, budget=budget)
    step = engine.process(engine.evaluate(documents), lambda docids: {d: xml[d] for d in docids})
    assert bool(step.pauses) == is_paused
