"""What people write who know other languages: where it is wrong, and what to write instead."""

from __future__ import annotations

import pytest

import xscl

CASES = [
    (
        "S//a->x JOIN {x = y, x/t != y/t, 2 d} T->y",
        "x",
        "comparisons are joined by AND; the window stands last",
        "S//a->x JOIN {x = y AND x/t != y/t, 2 d} T->y",
    ),
    (
        "S//a->x JOIN {x = y AND WITHIN 2 d} T->y",
        "WITHIN 2 d",
        "write `{..., 2 d}`",
        "S//a->x JOIN {x = y, 2 d} T->y",
    ),
    (
        "S//a->x JOIN {x = y, within $w} T->y",
        ", within $w",
        "write `{..., $w}`",
        "S//a->x JOIN {x = y, $w} T->y",
    ),
    (
        "S//a->x JOIN {x = y, 1 h 30 min} T->y",
        "1 h 30 min",
        "add them up, as in `90 min`, or write `PT1H30M`",
        "S//a->x JOIN {x = y, PT1H30M} T->y",
    ),
    (
        "S//a->x FOLLOWED BY {x = y} T->y WITHIN 1 h FOLLOWED BY {y = z, 1 h} U->z",
        "FOLLOWED",
        "clauses stand behind the last operand, or in parentheses with what they speak of:"
        " `(S FOLLOWED BY T WITHIN 1 h) FOLLOWED BY ...`",
        "(S//a->x FOLLOWED BY {x = y} T->y WITHIN 1 h) FOLLOWED BY {y = z, 1 h} U->z",
    ),
    (
        "S//a->x NEXT {x = y, 1 h} GRACE 1 h T//b->y",
        "GRACE",
        "it stands behind the last operand; a stream of this name needs a path",
        "S//a->x NEXT {x = y, 1 h} T//b->y GRACE 1 h",
    ),
    (
        "S//a->x NEXT {x = y, 1 h} T//b->y GRACE 1 h WHERE x > 3",
        "WHERE",
        "the order is WITHIN, SAME, MATCH, WHERE, WINDOW, LIMIT, CONFIDENCE, GRACE, ON MATCH",
        "S//a->x NEXT {x = y, 1 h} T//b->y WHERE x > 3 GRACE 1 h",
    ),
    (
        "SELECT <n>{count()}</n> FROM S//a->x WINDOW 6 h GROUP BY x/k HAVING count() > 5 GRACE 1 h",
        "GROUP",
        "write `BY` alone, as in `WINDOW 6 h BY x/author`",
        "SELECT <n>{count()}</n> FROM S//a->x WINDOW 6 h BY x/k HAVING count() > 5 GRACE 1 h",
    ),
    (
        "SELECT <n>{x/t}</n> FROM S//a->x WINDOW 6 h BY x/k GRACE 1 h",
        "x/t",
        "name it behind BY, or write `max(x/t)`, `collect(x/t)`, ...",
        "SELECT <n>{max(x/t)}</n> FROM S//a->x WINDOW 6 h BY x/k GRACE 1 h",
    ),
    (
        "S//a->x WINDOW 6 h BY x/k HAVING count(*) > 5 GRACE 1 h",
        "count(*)",
        "write `count()`",
        "S//a->x WINDOW 6 h BY x/k HAVING count() > 5 GRACE 1 h",
    ),
    (
        "SELECT <n>{count()}</n> FROM S//a->x",
        "count()",
        "`count()` is of a row: `WINDOW 6 h BY x/author` makes rows; of one match, `count(x)`",
        "SELECT <n>{count(x)}</n> FROM S//a->x",
    ),
    (
        "S//a->x HAVING count() > 3",
        "HAVING",
        "it stands behind WINDOW, as in `WINDOW 6 h BY x/author HAVING count() > 3`",
        "S//a->x WINDOW 6 h BY x/author HAVING count() > 3 GRACE 0 s",
    ),
    (
        "S//a->x LIMIT 1 PER day GRACE 1 h",
        "day",
        "write `1 day`",
        "S//a->x LIMIT 1 PER 1 day GRACE 1 h",
    ),
    (
        "SELECT x/t AS n FROM S//a->x",
        "n",
        "build an element: `SELECT <n>{x/t}</n>`",
        "SELECT <n>{x/t}</n> FROM S//a->x",
    ),
    (
        "S//a->x WHERE x/p BETWEEN 3 AND 5",
        "BETWEEN",
        "write two comparisons: `x >= 3 AND x <= 5`",
        "S//a->x WHERE x/p >= 3 AND x/p <= 5",
    ),
    (
        "S//a->x WHERE x/t LIKE '%tide%'",
        "LIKE",
        "write `contains(x, 'part')`, `starts-with(x, 'part')` or `matches(x, 'pattern')`",
        "S//a->x WHERE contains(x/t, 'tide')",
    ),
    (
        "S//a->x WHERE x/t IS NULL",
        "IS",
        "write `empty(x)` where nothing is there, `exists(x)` where something is",
        "S//a->x WHERE empty(x/t)",
    ),
    (
        "S//a->x WHERE NOT (x/t = 'y')",
        "NOT (x/t = 'y')",
        "turn the comparison around, `!=` or `>=`; `not(...)` stands in predicates of steps",
        "S//a->x WHERE x/t != 'y'",
    ),
    (
        "S//a->x WHERE time(x) > now() - 1 h",
        "now",
        "a query knows the times of documents only: `time(x)`, `start()`, `end()`, `dur()`",
        "S//a->x WHERE time(x) > 0",
    ),
    (
        "S//a->x JOIN {x = y, 1 h} T->y\n\nS//c->z",
        "S",
        "two blocks are combined with `FOLLOWED BY {...}` or `JOIN {...}`, statements separated by"
        " `;`",
        "S//a->x JOIN {x = y, 1 h} T->y;\n\nS//c->z",
    ),
    (
        "S//a->x THEN {x = y, 1 h} T->y",
        "THEN",
        "a document behind another is found by `FOLLOWED BY {...}` or `NEXT {...}`",
        "S//a->x FOLLOWED BY {x = y, 1 h} T->y",
    ),
    (
        "(S//a->x OR T->y) JOIN {x = z, 1 h} U->z",
        "OR",
        "alternatives are written `(S//a | T//b)`; conditions stand behind WHERE",
        "(S//a->x | T->y) JOIN {x = z, 1 h} U->z",
    ),
    (
        "S//a->x FOLLOWED BY {x = y, 1 h} T->y{3,}",
        "{",
        "a block is repeated by `+`; how often, says `WHERE count(x) >= 3`",
        "S//a->x FOLLOWED BY {x = y, 1 h} T->y+ WHERE count(y) >= 3",
    ),
    (
        "S//a->x FOLLOWED BY {x = y, 1 h} T->y*",
        "*",
        "a block is repeated by `+`: `S//item->x+`",
        "S//a->x FOLLOWED BY {x = y, 1 h} T->y+",
    ),
    (
        "S//a->x FOLLOWED BY (x = y, 1 h) T->y",
        "FOLLOWED BY",
        "the predicate and the window stand in braces: `{x2 = x5, 30 days}`",
        "S//a->x FOLLOWED BY {x = y, 1 h} T->y",
    ),
    (
        "S//a->x JOIN {$x/k = y, 1 h} T->y",
        "$x/k",
        "`$x` is a parameter; the variable is `x`",
        "S//a->x JOIN {x/k = y, 1 h} T->y",
    ),
    ("S//a[b = ‘it’]", "‘it’", "write 'it'", "S//a[b = 'it']"),
    ("S//a[b = “it's”]", "“it's”", 'write "it\'s"', 'S//a[b = "it\'s"]'),
    (
        "S//a\u00a0JOIN {,\u00a0\u00a01 h} T",
        "\u00a0",
        "write a plain space in its place",
        "S//a JOIN {, 1 h} T",
    ),
    ("S//a–>x", "–", "write a plain `-`; a variable is bound with `->`", "S//a->x"),
    (
        "S//yt:a",
        "yt:a",
        "declare it first: `DECLARE NAMESPACE yt = 'http://...';`",
        "DECLARE NAMESPACE yt = 'http://www.youtube.com/xml/schemas/2015'; S//yt:a",
    ),
    (
        "SELECT x/yt:a FROM S->x",
        "x/yt:a",
        "declare it first: `DECLARE NAMESPACE yt = 'http://...';`",
        "DECLARE NAMESPACE yt = 'http://www.youtube.com/xml/schemas/2015'; SELECT x/yt:a FROM S->x",
    ),
    (
        "S//a FOLLOWED BY T WITHIN 1 h SAME (//k) AND SAME (//l)",
        "AND",
        "as in `SAME (//author, //category)`",
        "S//a FOLLOWED BY T WITHIN 1 h SAME (//k, //l)",
    ),
    (
        "CREATE TABLE t (k KEY, muted DEFAULT no)",
        "no",
        "a string stands in quotes: 'no'",
        "CREATE TABLE t (k KEY, muted DEFAULT 'no')",
    ),
    (
        "CREATE TABLE p:t (k KEY)",
        "p:t",
        "a name has letters, digits, `_`, `-` and `.`, neither a prefix nor primes",
        "CREATE TABLE t (k KEY)",
    ),
    (
        "S//a->x WHERE if (x > 3) then x = 5 else x = 2",
        "=",
        "branches are values; the whole is compared: `if (x > 3) then x else 3 = y`",
        "S//a->x WHERE if (x > 3) then 5 else 2 = x",
    ),
    ("S//a->p:x", "p:x", "write `x`", "S//a->x"),
    ("S//a[childs::b]", "childs", "did you mean `child`?", "S//a[child::b]"),
    (
        "S//a[b/]",
        "]",
        "a step is a name, `@name`, `*` or `text()`, as in `x/author`",
        "S//a[b/text()]",
    ),
    ("S//a[b = ]", "]", "as in `x/author`, `'Ann'` or `3`", "S//a[b = 3]"),
    (
        "S//a->x FOLLOWED BY {x = y AND x-y > 2, 1 h} T//b->y",
        "x-y",
        "write `x - y`",
        "S//a->x FOLLOWED BY {x = y AND x - y > 2, 1 h} T//b->y",
    ),
    (
        "S//a->x FOLLOWED BY {x = y AND x/p / 2 > y, 1 h} T//b->y",
        "2",
        "`/` begins a step; to divide, write `div`",
        "S//a->x FOLLOWED BY {x = y AND x/p div 2 > y, 1 h} T//b->y",
    ),
    (
        "S//a->x FOLLOWED BY {x = y || x/p = y, 1 h} T//b->y",
        "|",
        "write `or`",
        "S//a->x FOLLOWED BY {x = y or x/p = y, 1 h} T//b->y",
    ),
    (
        "S//a->x FOLLOWED BY {x@id = y, 1 h} T//b->y",
        "@",
        "write `x/@...`",
        "S//a->x FOLLOWED BY {x/@id = y, 1 h} T//b->y",
    ),
    (
        "S//a->x FOLLOWED BY {x = y AND +x > 3, 1 h} T//b->y",
        "+",
        "leave the `+` out: a number without a sign is positive",
        "S//a->x FOLLOWED BY {x = y AND x > 3, 1 h} T//b->y",
    ),
    (
        "S//a->x FOLLOWED BY {x = y AND dur() > PT2H, 1 h} T//b->y",
        "PT2H",
        "in a condition a duration is a number and a unit, as in `2 h`",
        "S//a->x FOLLOWED BY {x = y AND dur() > 2 h, 1 h} T//b->y",
    ),
    (
        "S//a->x FOLLOWED BY {x = y AND dur > 2 h, 1 h} T//b->y",
        "dur",
        "the function has parentheses: `dur()`",
        "S//a->x FOLLOWED BY {x = y AND dur() > 2 h, 1 h} T//b->y",
    ),
    (
        "S//a->x FOLLOWED BY {x = y AND dur() < INF, 1 h} T//b->y",
        "INF",
        "without a bound nothing is compared: leave it out",
        "S//a->x FOLLOWED BY {x = y, 1 h} T//b->y",
    ),
    (
        "S//a->x FOLLOWED BY {x = y AND empty x/p, 1 h} T//b->y",
        "x",
        "write `empty(x)`",
        "S//a->x FOLLOWED BY {x = y AND empty(x/p), 1 h} T//b->y",
    ),
    (
        "S//a->x FOLLOWED BY {if x > 3 then x else 3 = y, 1 h} T//b->y",
        "x",
        "its condition has parentheses: `if (x > 3) then x else 3`",
        "S//a->x FOLLOWED BY {if (x > 3) then x else 3 = y, 1 h} T//b->y",
    ),
    (
        "S//a->x FOLLOWED BY {x = y AND not(contains(x/t, y/t)), 1 h} T//b->y",
        "not(contains(x/t, y/t))",
        "write `[not(contains(...))]` on a step, or `if (contains(x, y)) then 0 else 1 = 1`",
        "S//a->x FOLLOWED BY {x = y AND if (contains(x/t, y/t)) then 0 else 1 = 1, 1 h} T//b->y",
    ),
    (
        "S//a->x FOLLOWED BY {x = y AND exists(x/p) = 1, 1 h} T//b->y",
        "exists(x/p)",
        "it stands alone, joined to others by AND and OR: `exists(...) AND x = y`",
        "S//a->x FOLLOWED BY {x = y AND exists(x/p), 1 h} T//b->y",
    ),
    (
        "S//a->x FOLLOWED BY {x = y AND position() = 1, 1 h} T//b->y",
        "position",
        "it stands in predicates of steps: `a[position(...)]`",
        "S//a[position() = 1]->x FOLLOWED BY {x = y, 1 h} T//b->y",
    ),
    (
        "S//a[time(.) > 3]",
        "time",
        "it stands between an operator's braces, and behind WHERE",
        "S//a->x WHERE time(x) > 3",
    ),
    (
        "S//a->x FOLLOWED BY {matches(x, 'a', 'z'), 1 h} T//b->y",
        "'z'",
        "the flags are i (in any case), m (lines), s (a dot is any character), x (layout)",
        "S//a->x FOLLOWED BY {matches(x, 'a', 'i'), 1 h} T//b->y",
    ),
    (
        "S//a->x FOLLOWED BY {matches(x, '(a)-\\1'), 1 h} T//b->y",
        "'(a)-\\1'",
        "compare two parts: `substring-before(x, '-') = substring-after(x, '-')`",
        "S//a->x FOLLOWED BY {substring-before(x, '-') = substring-after(x, '-'), 1 h} T//b->y",
    ),
    (
        "S//a->x NEXT {x = y, 1 h} T//b->y GRACE -1 s",
        "-1 s",
        "the shortest length here is `0 s`",
        "S//a->x NEXT {x = y, 1 h} T//b->y GRACE 0 s",
    ),
    (
        "SELECT <o>{time(x)}</o> FROM S//a->x",
        "time(x)",
        "it stands in conditions; of a match there are `start()`, `end()` and `dur()` here",
        "SELECT <o>{end()}</o> FROM S//a->x",
    ),
    (
        "S//a->x FOLLOWED BY {x = y} T//b->y",
        "{x = y}",
        "the window says how far apart in time: `{x2 = x5, 30 days}`, or `INF`;"
        " or bound the whole: `WITHIN 30 days` at its end",
        "S//a->x FOLLOWED BY {x = y} T//b->y WITHIN 30 days",
    ),
    (
        "S//a->x FOLLOWED BY {x = y, 1 h} T//b->y FOLLOWED BY {, 1 h}",
        "",
        "as in `S//item->x`: all `item` elements of the stream `S`",
        "S//a->x FOLLOWED BY {x = y, 1 h} T//b->y FOLLOWED BY {, 1 h} S//item->z",
    ),
]


@pytest.mark.parametrize(("text", "place", "hint", "right"), CASES)
def test_the_hint_says_what_to_write(text: str, place: str, hint: str, right: str) -> None:
    _, found = xscl.check(text)
    errors = [each for each in found if each.is_error]
    assert errors, "this is wrong"
    first = errors[0]
    assert (text[first.span.start : first.span.end], first.hint) == (place, hint)
    assert {each.hint for each in errors} == {hint}
    assert not [each for each in xscl.check(right)[1] if each.is_error]


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("S->x JOIN {x = y AND similar(x/t, y/t) >= 80, 1 h} T->y", "XS502", "80"),
        ("S->x JOIN {x = y AND 1 < jaccard(words(x/t), words(y/t)), 1 h} T->y", "XS502", "1"),
        ("S->x JOIN {x = y, 1 h} T->y WHERE dur() > '2 h'", "XS502", "'2 h'"),
        ("S->x JOIN {x = y, 1 h} T->y WHERE time(x) > '2026-01-01'", "XS502", "'2026-01-01'"),
        ("S->x JOIN {x = y, 1 h} T->y WHERE time(y) - time(x) > 3600", "XS510", "3600"),
    ],
)
def test_a_literal_that_does_not_suit_its_side_is_warned_of(
    text: str, code: str, place: str
) -> None:
    _, found = xscl.check(text)
    assert [(each.code, text[each.span.start : each.span.end]) for each in found] == [(code, place)]


@pytest.mark.parametrize(
    "text",
    [
        "S->x JOIN {x = y AND overlap(words(x/t), words(y/t)) >= 4, 1 h} T->y",
        "S->x JOIN {x = y AND similar(x/t, y/t) >= 1, 1 h} T->y",
        "S->x JOIN {x = y, 1 h} T->y WHERE dur() > 0 AND time(y) - time(x) > 2 min",
        "S->x JOIN {x = y, 1 h} T->y WHERE dur() div 1000000 > 3 AND dur() > 2000000",
    ],
)
def test_a_literal_that_suits_its_side_is_not(text: str) -> None:
    assert xscl.check(text)[1] == []


def test_no_grace_is_missed_where_a_clause_could_not_be_read() -> None:
    _, found = xscl.check("S//a->x NEXT {x = y, 1 h} T->y GRACE 0")
    assert [each.code for each in found] == ["XS404"]
