"""Editors are helped: what is completed, what a word means, where a name stands."""

from __future__ import annotations

from pathlib import Path

import pytest

import xscl
from xscl.editing.completion import Vocabulary, complete
from xscl.editing.fixes import fixes
from xscl.editing.hover import hover
from xscl.editing.loosening import loosenings
from xscl.editing.mentions import mentions_of

PAIR = "news//item->a[author->x] FOLLOWED BY {x = b/author, 1 day} news//item->b"
SEEN = Vocabulary({"news": 9, "blog": 3}, {"news": {"title": 9, "author": 7, "@lang": 2}})


def completed(text: str, vocabulary: Vocabulary | None = None) -> list[str]:
    """Return what may stand at the bar of a text."""
    offset = text.index("|")
    return [each.text for each in complete(text.replace("|", ""), offset, vocabulary)]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("|", ["news", "blog", "SELECT"]),
        ("news//item->a FO|", ["FOLLOWED BY", "FOLD"]),
        ("news//item->a FOLLOWED BY {, 1 d} b|", ["blog", "BY"]),
        ("news//|", ["title", "author", "@lang"]),
        ("news//item[|", ["title", "author", "@lang"]),
        ("news//item[title = 'x'][au|", ["author"]),
        ("news//item->a WHERE a/@|", ["lang"]),
        ("news//item->a WHERE a/t|", ["title"]),
        ("news//item->a[author->x] FOLLOWED BY {|", ["a", "x", "contains"]),
        ("news//item->a[author->x] WHERE low|", ["lower-case"]),
        ("SELECT | FROM news//item->a", ["a"]),
        ("news//item->|", []),
    ],
)
def test_what_may_stand_at_a_place_comes_likeliest_first(text: str, first: list[str]) -> None:
    found = completed(text, SEEN)
    assert found[: len(first)] == first if first else found == []


def test_without_documents_names_come_from_the_other_blocks() -> None:
    assert completed("news//item[author] FOLLOWED BY {, 1 d} news//item[|")[:2] == [
        "item",
        "author",
    ]


def test_variables_of_another_statement_are_not_offered() -> None:
    assert completed("S//a->one; S//b->two WHERE |")[0] == "two"


def test_a_completion_replaces_the_word_that_was_begun() -> None:
    [found] = complete("news//item->a FOLLOWED BY {a/au", 31, SEEN)
    assert (found.text, found.span.start, found.span.end) == ("author", 29, 31)


def test_hover_says_how_many_documents_have_a_name() -> None:
    names = {"news": {"item": 8, "by": 5, "@id": 2, "*:creator": 1}, "wire": {"by": 7}}
    known = Vocabulary({"news": 8, "wire": 12}, names)

    def said(text: str, word: str) -> str | None:
        found = hover(text, text.index(word), known)
        return None if found is None else found.text

    text = "news//item->a[by->x][@id->y][dc:creator->z] JOIN {x = t, 1 h} wire//note->b[by->t]"
    assert said(text, "by") == "`by`: in recent documents, 7 of 12 of `wire`, 5 of 8 of `news`"
    assert said(text, "item") == "`item`: in recent documents, 8 of 8 of `news`"
    assert said(text, "id") == "`@id`: in recent documents, 2 of 8 of `news`"
    assert said(text, "creator") == "`*:creator`: in recent documents, 1 of 8 of `news`"
    assert said(text, "note") is None
    assert said(text, "JOIN") == said("S JOIN T", "JOIN")
    stream = said(text, "wire")
    assert stream is not None
    assert stream.endswith("; 12 of 20 recent documents")


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("FOLLOWED", "`FOLLOWED BY`: the left side ends before"),
        ("BY", "`FOLLOWED BY`: the left side ends before"),
        ("x =", "variable of `news//item->a[author->x]`"),
        ("news//item->b", "stream `news`, of documents from outside, read by 2 blocks"),
    ],
)
def test_hover_says_what_a_word_means(word: str, says: str) -> None:
    found = hover(PAIR, PAIR.index(word))
    assert found is not None
    assert found.text.startswith(says)


def test_a_variable_is_all_its_mentions_also_in_constructors() -> None:
    text = (
        'SELECT <m by="{a/by}">{a/t, count(a/c[. = $b/c]), "a"}</m> '
        "FROM S//i->a[a] JOIN {a/t = b/t, 1 h} S//i->b; S//a->a"
    )
    mentions = mentions_of(text)
    binding = next(each for each in mentions.variables if each.is_binding and each.name == "a")
    found = [each.span.start for each in mentions.same(binding)]
    renamed = text
    for start in reversed(found):
        renamed = f"{renamed[:start]}item{renamed[start + 1 :]}"
    assert renamed == (
        'SELECT <m by="{item/by}">{item/t, count(item/c[. = $b/c]), "a"}</m> '
        "FROM S//i->item[a] JOIN {item/t = b/t, 1 h} S//i->b; S//a->a"
    )
    assert [query.text for query in xscl.parse(renamed)]


def test_a_fix_does_what_a_diagnostic_asks() -> None:
    text = PAIR.replace("b/author", "bb/author")
    [wrong] = [each for each in xscl.check(text)[1] if fixes(each)]
    [fix] = fixes(wrong)
    assert text[: fix.span.start] + fix.text + text[fix.span.end :] == PAIR


@pytest.mark.parametrize("end", range(len(PAIR) + 1))
def test_no_text_that_is_being_written_is_too_short_to_be_helped_with(end: int) -> None:
    complete(PAIR[:end], end, SEEN)
    hover(PAIR[:end], end)
    mentions_of(PAIR[:end])


@pytest.mark.parametrize(
    ("braces", "looser"),
    [
        ("a/x = b/x, 500 ms", ["a/x = b/x, 1500 ms"]),
        ("a/x = b/x, INF", []),
        (
            "a/x = b/x AND (a/y = b/y OR a/z = b/z) AND a/q != b/q, INF",
            ["a/x = b/x AND a/q != b/q, INF", "a/x = b/x AND (a/y = b/y OR a/z = b/z), INF"],
        ),
    ],
)
def test_a_looser_statement_asks_what_is_left_as_it_was_asked(
    braces: str, looser: list[str]
) -> None:
    text = f"S->a JOIN {{{braces}}} S->b"
    assert [each.edited(text) for each in loosenings(text)] == [
        f"S->a JOIN {{{each}}} S->b" for each in looser
    ]


@pytest.mark.parametrize(
    ("where", "looser"),
    [
        ("WHERE a/y > 3", [""]),
        (
            "WHERE a/y > 3 AND (a/z = 'q' OR b/z = 'q')",
            ["WHERE (a/z = 'q' OR b/z = 'q')", "WHERE a/y > 3"],
        ),
        ("WHERE a/y > 3 OR b/y > 3", [""]),
    ],
)
def test_a_condition_on_all_is_left_out_where_an_equality_joins(
    where: str, looser: list[str]
) -> None:
    text = "FROM S->a JOIN {a/x = b/x} S->b WITHIN INF "
    assert [each.edited(text + where) for each in loosenings(text + where)] == [
        text + each for each in looser
    ]
    alone = "FROM S->a JOIN {} S->b WITHIN INF "
    assert loosenings(alone + where) == []


def test_every_loosening_of_the_examples_is_a_query() -> None:
    count = 0
    for path in sorted(Path("examples").glob("**/*.xscl")):
        text = path.read_text()
        for each in loosenings(text):
            count += 1
            assert not any(found.is_error for found in xscl.check(each.edited(text))[1]), each
    assert count > 10
    assert loosenings("S; T") == []
