"""The labelled pairs of recorded titles are what the table in docs/similarity.md is of."""

from __future__ import annotations

import pytest
from oracle.similarity import score, words
from support.labelled_news import LABELS, kappa, labelled_pairs, titles
from support.similar_news import news

PAIRS = labelled_pairs()


def test_four_hundred_pairs_were_read_twice() -> None:
    assert len({(pair.earlier, pair.later) for pair in PAIRS}) == 400
    assert {pair.first for pair in PAIRS} == {pair.second for pair in PAIRS} == set(LABELS)
    # Beyond 0.8 agreement is called almost perfect (Landis and Koch, 1977).
    assert 0.8 < kappa([(pair.first, pair.second) for pair in PAIRS]) < 1


def test_two_readers_agree() -> None:
    assert {pair.other for pair in PAIRS} == set(LABELS)
    # Beyond 0.6 it is called substantial.
    assert 0.6 < kappa([(pair.label, pair.other) for pair in PAIRS]) < 1


@pytest.mark.slow
def test_a_pair_has_the_score_that_it_was_drawn_by() -> None:
    documents = news()
    for pair in PAIRS:
        first, second = (set(words(title)) for title in titles(documents, pair))
        assert round(float(score("jaccard", first, second)), 4) == pair.score
