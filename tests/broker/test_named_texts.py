"""Texts of documents that handed-on values name are held while somebody may read them."""

from __future__ import annotations

import gc

import pyarrow as pa
import pytest

from broker.matching.boxes.namedtexts import NamedTexts
from xscl.sharedtexts import SHARED, name_of, shared_text


def rows(*documents: tuple[int, list[str]]) -> pa.Table:
    """Return rows of documents that end at a time, each with a value and some texts behind it."""
    return pa.table(
        {
            "nodes": pa.array(
                [[7, *[SHARED] * len(t)] for _, t in documents], pa.list_(pa.int32())
            ),
            "vals": pa.array([["value", *t] for _, t in documents], pa.list_(pa.string())),
            "end_us": [end_us for end_us, _ in documents],
        }
    )


def is_found(text: str) -> bool:
    gc.collect()
    try:
        return shared_text(name_of(text)) == text
    except KeyError:
        return False


def test_texts_are_found_until_their_documents_are_of_no_use() -> None:
    texts = NamedTexts(lambda: True, held_min=0)
    texts.note(rows((5, []), (1, ["<a/>"]), (2, ["<b/>", "<c/>"]), (3, [])))
    assert len(texts) == 3
    assert all(map(is_found, ("<a/>", "<b/>", "<c/>")))
    assert not is_found("value")
    texts.forget(2)
    assert [*map(is_found, ("<a/>", "<b/>", "<c/>"))] == [False, True, True]


@pytest.mark.parametrize("ends", [(1, 9), (9, 1)])
def test_a_text_of_two_documents_is_held_for_both(ends: tuple[int, int]) -> None:
    texts = NamedTexts(lambda: True, held_min=0)
    for end_us in ends:
        texts.note(rows((end_us, ["<a/>"])))
    texts.forget(5)
    assert is_found("<a/>")


def test_few_are_not_looked_through() -> None:
    texts = NamedTexts(lambda: True, held_min=2)
    texts.note(rows((1, ["<a/>"]), (2, ["<b/>"])))
    texts.forget(9)
    assert len(texts) == 2
    texts.note(rows((9, ["<c/>"])))
    texts.forget(9)
    assert len(texts) == 1


def test_nothing_is_held_that_nobody_reads() -> None:
    are_read = [True]
    texts = NamedTexts(lambda: are_read[0], held_min=0)
    texts.note(rows((1, ["<a/>"])).slice(0))
    are_read[0] = False
    texts.note(rows((1, ["<b/>"])))
    assert len(texts) == 0
    assert not is_found("<a/>")
    assert not is_found("<b/>")


def test_of_some_rows_of_a_table_those_are_held() -> None:
    texts = NamedTexts(lambda: True, held_min=0)
    texts.note(rows((1, ["<a/>"]), (2, ["<b/>"]), (3, ["<c/>"])).slice(1, 1))
    texts.forget(2)
    assert [*map(is_found, ("<a/>", "<b/>", "<c/>"))] == [False, True, False]
