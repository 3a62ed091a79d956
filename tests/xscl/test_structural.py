"""A path of names alone is read at once, as the parser reads it."""

import random

import pytest

from xscl.path import Exists, Path, Span
from xscl.reader import read
from xscl.structural import structural_query

WRITTEN = [
    "S/a",
    "S//a/*//b.c",
    "S//a[b]",
    "S//a[b/*//c][*]/d[é]",
    "S/text/node/comment",
    "s.t-u//a-b",
    "create//a",
    "declare//namespace",
]
LEFT_TO_THE_PARSER = ["S", "S//a->x", "S//a[1]", "S//a[.//b]", "S//a-", "S//a'", "S//a ", "*//a"]
LEFT_TO_THE_PARSER += [
    "NOT//a",
    "next//a",
    "SELECT//a",
    "S//a//",
    "S//a[b]]",
    "S//a[b = 'x']",
    "S" + "/a" * 60,
]
PIECES = ["a", "b-c", "d.e", "é", "_f", "*", "[g]", "[h/i]", "[*//j]", "text", "div", "and", "as"]
PIECES += ["AS", "LAST", "NEXT", "FROM", "1", "-", ".", "@", "(", ")", "]", "·", " ", "->", "--"]


def spans(path: Path) -> list[Span | None]:
    found: list[Span | None] = []
    for step in path.steps:
        found.append(step.span)
        for each in step.predicates:
            assert isinstance(each, Exists)
            found += spans(each.path)
    return found


def assert_agrees(text: str) -> None:
    """Compare with what is read beside a comment, which only the parser knows."""
    found = structural_query(text, "q")
    assert found is not None
    parsed = read(f"{text} -- a comment", id="q")
    assert not parsed.diagnostics, text
    assert repr(found) == repr(parsed.queries[0])
    assert spans(found.blocks[0].path) == spans(parsed.queries[0].blocks[0].path)


@pytest.mark.parametrize("text", WRITTEN)
def test_a_path_of_names_is_read_as_the_parser_reads_it(text: str) -> None:
    assert_agrees(text)
    (query,) = read(text, id="q").queries
    assert query == structural_query(text, "q")


@pytest.mark.parametrize("text", LEFT_TO_THE_PARSER)
def test_anything_else_is_left_to_the_parser(text: str) -> None:
    assert structural_query(text, "q") is None


def test_generated_texts_are_read_as_the_parser_reads_them() -> None:
    random_ = random.Random(20)
    found = 0
    for _ in range(4_000):
        pieces = random_.choices(PIECES[:13] * 3 + PIECES, k=random_.randint(1, 5))
        text = "S" * random_.randint(0, 9) + "".join(
            random_.choice(("/", "//", "")) + each for each in pieces
        )
        if structural_query(text, "q") is not None:
            assert_agrees(text)
            found += 1
    assert found > 500


def test_a_text_of_a_file_has_the_name_of_the_file() -> None:
    (query,) = read("S//a", path="some/where.xscl").queries
    assert query.id == "where"
    assert read("S//a", id="q", path="some/where.xscl").queries[0].id == "q"
    assert read("S//a").queries[0].id == "query"
