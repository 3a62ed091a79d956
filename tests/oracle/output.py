"""The output of a match, as the language builds it: all that the oracle does not redo."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lxml import etree

from broker.documents.document import Document
from xscl.nodes import NumberedTree
from xscl.output import build
from xscl.query import Query

__all__ = ["build_output"]


def build_output(
    query: Query,
    documents: Sequence[Document],
    nodes: Mapping[str, Sequence[tuple[int, int]]],
    start_us: int,
    end_us: int,
    confidence: float = 1.0,
    folds: Mapping[str, Any] | None = None,
) -> tuple[str, str | None]:
    """Return the output, and the reason where the query's own constructor failed."""
    trees = [NumberedTree(etree.fromstring(document.xml)) for document in documents]
    return build(query, trees, nodes, start_us, end_us, confidence=confidence, folds=folds)
