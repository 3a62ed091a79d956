"""The pages of the language are right: their queries parse, and match what the pages say."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import oracle
import pytest

import xscl
from broker.documents.document import DocumentLine, parse_document_line, tick
from broker.matching.match import Match
from xscl.namespaces import KNOWN_PREFIXES
from xscl.operands import RESERVED

DOCS = Path(__file__).parents[2] / "docs"
PAGES = {
    name: (DOCS / name).read_text(encoding="utf-8")
    for name in ("xscl.md", "semantics.md", "sequences.md")
}
PAGE = PAGES["xscl.md"]
_EXAMPLE = re.compile(
    r"```xscl(| wrong)\n((?:(?!```).)*)\n```\n(?:\n(Matches|Output): (.*?)\n)?", re.DOTALL
)
_FOUND = [(name, each) for name, page in PAGES.items() for each in _EXAMPLE.finditer(page)]
EXAMPLES = [(name, each[2], each[3], each[4]) for name, each in _FOUND if not each[1]]
MISTAKES = [(name, each[2], each[3], each[4]) for name, each in _FOUND if each[1]]


_TABLE = re.compile(r"\bOver the documents `([^`]+)`\n\n\|[^\n]*\|\n\|[-|]*\|\n((?:\|.*\|\n)+)")
TABLES = [(found[1], row) for found in _TABLE.finditer(PAGE) for row in found[2].splitlines()]
"""A statement and what it finds, each with its documents by root and time: `A@1 B@2`."""

NUMBERS = {"ten": 10}


def matches_of(text: str, page: str = "xscl.md") -> list[Match]:
    """Return the matches of a query over a page's documents, as the oracle finds them."""
    found = re.search(r"```documents\n(.*?)\n```", PAGES[page], re.DOTALL)
    assert found is not None
    lines = [parse_document_line(line) for line in found[1].splitlines()]
    return list(oracle.matches(xscl.parse(text), oracle.number_documents(lines), lateness_us=0))


def test_the_pages_have_examples_of_both_kinds() -> None:
    kinds = Counter((page, kind) for page, _, kind, _ in EXAMPLES)
    assert kinds["xscl.md", "Matches"] > 10
    assert kinds["xscl.md", "Output"] > 1
    assert kinds["semantics.md", "Matches"] == 3
    assert len(TABLES) == 8


@pytest.mark.parametrize("text", [text for _, text, _, _ in EXAMPLES])
def test_every_example_is_a_query_without_warnings(text: str) -> None:
    assert xscl.check(text)[1] == []


@pytest.mark.parametrize(
    ("page", "text", "kind", "expected"),
    [each for each in [*EXAMPLES, *MISTAKES] if each[2] is not None],
)
def test_examples_match_what_the_page_says(page: str, text: str, kind: str, expected: str) -> None:
    found = matches_of(text, page)
    if kind == "Output":
        assert [f"`{match.output}`" for match in found] == [expected]
    else:
        tuples = sorted(tuple(each.docid for each in match.documents) for match in found)
        shown = " ".join(f"({', '.join(map(str, each))})" for each in tuples)
        assert (shown or "nothing") == expected


@pytest.mark.parametrize(("documents", "row"), TABLES)
def test_statements_in_tables_find_what_stands_beside_them(documents: str, row: str) -> None:
    _, statement, said, _ = row.split("|")
    lines = [
        DocumentLine("S", f"<{name}/>".encode(), time_us=int(second) * 1_000_000)
        for name, second in (each.split("@") for each in documents.split())
    ]
    # What is still to be decided is, behind a tick.
    lines.append(tick(1_000_000_000))
    found = oracle.matches(
        xscl.parse(statement.strip(" `")), oracle.number_documents(lines), lateness_us=0
    )
    tuples = [" ".join(str(each.docid) for each in match.documents) for match in found]
    expected = re.findall(r"`([\d ]+)`", said.partition(":")[0])
    count = NUMBERS.get(said.split()[0], len(expected))
    assert (sorted(tuples), len(tuples)) == (sorted(expected or tuples), count)


def test_each_question_has_a_mistake_that_matches_something_else() -> None:
    sections = re.split(r"^## ", PAGES["sequences.md"], flags=re.MULTILINE)[1:]
    assert len(sections) == 12
    for section in sections:
        right, wrong = _EXAMPLE.finditer(section)
        assert (right[1], wrong[1]) == ("", " wrong"), section
        assert wrong[4] not in (None, right[4]), section


def test_a_query_written_from_the_page_joins_part_of_a_url_and_categories_but_no_same_feed() -> (
    None
):
    text = """
    news//item->a
    FOLLOWED BY {host(a/link) = host(b/link) AND a/category = b/category AND a/feed != b/feed, 2 d}
    news//item->b
    """
    [match] = matches_of(text)
    assert [each.docid for each in match.documents] == [1, 2]


def test_the_table_of_prefixes_is_complete() -> None:
    rows = dict(re.findall(r"^\| `([a-z0-9]+)` \| `(http[^`]+)` \|$", PAGE, re.MULTILINE))
    assert rows == KNOWN_PREFIXES


def test_all_reserved_words_are_named() -> None:
    assert all(f"`{word}`" in PAGE for word in RESERVED)
