"""What one document costs: its nodes are numbered once, and a query pays for what it asks of it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import pytest
from budget_runs import run

import broker.trees
from broker.budget import DEFAULT_BUDGET
from broker.document import FIRST_WATERMARK_US, Document
from xscl.nodes import NumberedTree

MINUTE_US = 60_000_000
NODES = "S//c->a FOLLOWED BY {a = b, 1 h} S//c->b"


def stream(bodies: Sequence[str]) -> list[Document]:
    """Return documents of a minute each."""
    found, watermark_us = [], FIRST_WATERMARK_US
    for docid, body in enumerate(bodies, 1):
        times = (docid * MINUTE_US, docid * MINUTE_US, docid * MINUTE_US, watermark_us)
        found.append(Document(docid, "S", str(docid), *times, f"<i>{body}</i>".encode()))
        watermark_us = docid * MINUTE_US
    return found


def test_the_nodes_of_a_document_are_numbered_once_for_all_matches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbered: list[Any] = []

    class Listening(NumberedTree):
        @cached_property
        def elements(self) -> list[Any]:
            numbered.append(self.root)
            return super().elements

    monkeypatch.setattr(broker.trees, "NumberedTree", Listening)
    documents = stream(["<c>same</c>" * 100 + "<e>other</e>" * 1_600] * 2)
    found = run({"nodes": NODES}, DEFAULT_BUDGET, documents)
    assert (len(found.lines), found.pauses) == (10_000, [])
    assert len(numbered) == 2
    assert found.lines[-1][2].endswith('"output": "<match><c>same</c><c>same</c></match>"}')
