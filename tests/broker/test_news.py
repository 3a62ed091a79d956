"""Recorded news: what the broker finds in it is what the oracle finds."""

from __future__ import annotations

import gzip
import io
from itertools import islice
from pathlib import Path

import oracle
import pytest
from oracle.lines import render
from support.examples import size
from support.recorded_data import news_file

import xscl
from broker.documents.document import parse_document_line
from broker.pipeline.lookback.replay import replay

ROOT = Path(__file__).parents[2]
DAY_US = 86_400_000_000
ITEMS = size(2_000, 5_000)


@pytest.fixture
def first_news(tmp_path: Path) -> Path:
    path = tmp_path / "news.jsonl"
    with gzip.open(news_file(), "rb") as file:
        path.write_bytes(b"".join(islice(file, ITEMS)))
    return path


@pytest.mark.slow
def test_the_first_items_have_the_matches_that_the_oracle_finds(
    first_news: Path,
) -> None:
    queries = xscl.load([ROOT / "examples" / "queries" / "same-author-other-feed.xscl"])
    found = io.StringIO()
    replay(queries, [first_news], found, lateness_us=DAY_US, spark=False)
    lines = map(parse_document_line, first_news.read_bytes().splitlines())
    expected = oracle.matches(queries, oracle.number_documents(lines), lateness_us=DAY_US)
    assert found.getvalue().splitlines() == [render(match) for match in expected]
    assert len(expected) == size(26, 143)
