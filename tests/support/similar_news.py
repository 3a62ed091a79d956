"""Which titles of the recorded news are similar, by brute force: every pair is counted.

    python -m support.similar_news [DOCUMENTS]         with tests/ and the project on the path

A pair is an item and a later one of another feed, at most two days apart, whose titles have a
Jaccard index of at least a threshold (semantics, sections 1.1, 4 and 10).  For each item the words
that it shares with every item before it are counted, over lists of all items that have a word: no
item is left out by its words, its size or a bound.  It prints for some thresholds how many pairs
there are, and a hash of them.
"""

from __future__ import annotations

import hashlib
import sys
from array import array
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import islice

import numpy as np
import oracle
from oracle.similarity import words

from broker.documents.document import Document
from broker.documents.recorded import read_document_lines
from support.recorded_data import news_file
from xpath_eval.structure import parse_xml

__all__ = ["KEPT", "QUERY", "RECORDED", "digest", "news", "similar_pairs"]

QUERY = (
    "news//item->a FOLLOWED BY {similar(a/title, b/title) >= %s AND a/feed != b/feed, 2 days}"
    " news//item->b"
)
LATENESS_US = 86_400_000_000
WINDOW_US = 2 * LATENESS_US

THRESHOLDS = ("0.4", "0.5", "0.6", "0.8")

RECORDED = 70_110
"""Items; five of them are repetitions."""

KEPT = {
    "0.4": (14_043, "1f6c2d3966aec047"),
    "0.5": (7_387, "e4959e48b297839f"),
    "0.6": (4_045, "dc6f17b1e0d8b5a1"),
    "0.8": (2_060, "ed673de7690b8558"),
}
"""What this program found once of all recorded items: how many pairs, and a hash of them."""

Pair = tuple[int, int]
"""The document numbers of the earlier item and of the later one."""


def news(count: int | None = None) -> list[Document]:
    """Return the recorded items, or the first of them, as documents."""
    lines = islice(read_document_lines([news_file()]), count)
    return oracle.number_documents(line for _, line in lines)


def similar_pairs(
    documents: Sequence[Document], thresholds: Sequence[str]
) -> dict[str, list[Pair]]:
    """Return the pairs of items that are similar, for each threshold."""
    roots = [parse_xml(document.xml).root for document in documents]
    sets = [set(words(root.findtext("title") or "")) for root in roots]
    feeds = np.unique([root.findtext("feed") or "" for root in roots], return_inverse=True)[1]
    has_feed = np.array([root.find("feed") is not None for root in roots])
    sizes = np.array(list(map(len, sets)))
    ends = np.array([document.end_us for document in documents])
    having: dict[str, array[int]] = {}
    found: dict[str, list[Pair]] = {threshold: [] for threshold in thresholds}
    for i, document in enumerate(documents):
        lists = [having.setdefault(word, array("q")) for word in sets[i]]
        having_any = np.concatenate([np.zeros(0, np.int64), *map(np.array, lists)])
        shared = np.bincount(having_any.astype(np.int64), minlength=i)[:i]
        union = sizes[i] + sizes[:i] - shared
        fits = (shared > 0) & (feeds[:i] != feeds[i]) & has_feed[:i] & has_feed[i]
        fits &= (np.abs(ends[:i] - ends[i]) <= WINDOW_US) & (ends[:i] != ends[i])
        fits &= ends[:i] >= document.watermark_us - WINDOW_US - LATENESS_US
        for threshold, pairs in found.items():
            least = Fraction(threshold)
            is_similar = shared * least.denominator >= union * least.numerator
            for j in np.flatnonzero(is_similar & fits).tolist():
                pair = (j, i) if ends[j] < ends[i] else (i, j)
                pairs.append((documents[pair[0]].docid, documents[pair[1]].docid))
        for own in lists:
            own.append(i)
    return {threshold: sorted(pairs) for threshold, pairs in found.items()}


def digest(pairs: Iterable[Pair]) -> str:
    """Return a hash of pairs in order."""
    text = "".join(f"{a} {b}\n" for a, b in sorted(pairs))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else None
    for threshold, pairs in similar_pairs(news(count), THRESHOLDS).items():
        print(threshold, len(pairs), digest(pairs))
