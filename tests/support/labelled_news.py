"""Which similar titles of the recorded news tell the same story: 400 pairs, read and labelled.

    python -m support.labelled_news         with tests/ and the project on the path

The pairs were drawn by bands of the score, at random within a band, from all pairs of
`support.similar_news` at 0.3.  The question was: *would somebody who has read one of them want to
be told of the other?*  `yes`, `no` or `unclear`.  They were read twice by one reader, in two orders
and without a look at the first labels; the second time with the feeds and the hours between.  A
pair is of the same story if both readings say so, of different ones if both say that.  Another
reader, who knew neither labels nor scores, read the titles alone, in an order of its own, and asked
whether they tell of the same event.

It prints how far readings and readers agree, and the precision and the recall of thresholds and
residuals.
Each band stands for all of its pairs; recall is of the pairs at 0.3 and above.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from oracle.similarity import words

from broker.documents.document import Document
from support.similar_news import news
from xpath_eval.structure import parse_xml

__all__ = ["LabelledPair", "kappa", "labelled_pairs", "titles"]

FILE = Path(__file__).parents[1] / "joins" / "labelled_pairs.tsv"

DRAWN_FROM = {0.3: 27_022, 0.4: 6_656, 0.5: 3_342, 0.6: 1_303, 0.7: 682, 0.8: 845, 1.0: 1_215}
"""How many pairs of the recorded news there are in each band, by its lowest score."""

LABELS = ("yes", "no", "unclear")


class LabelledPair(NamedTuple):
    """Two documents by number, the share of words that both titles have, and labels.

    `first` and `second` are of one reader, `other` is of the other one.
    """

    earlier: int
    later: int
    score: float
    first: str
    second: str
    other: str

    @property
    def label(self) -> str:
        """What both readings of the first reader say."""
        return self.first if self.first == self.second else "unclear"

    @property
    def band(self) -> float:
        """The lowest score of the pair's band."""
        return max(lowest for lowest in DRAWN_FROM if lowest <= self.score)


def labelled_pairs() -> list[LabelledPair]:
    """Return the labelled pairs."""
    rows = [line.split("\t") for line in FILE.read_text().splitlines()[1:]]
    return [LabelledPair(int(a), int(b), float(score), *labels) for a, b, score, *labels in rows]


def kappa(labels: Sequence[tuple[str, str]]) -> float:
    """Return Cohen's kappa of two labels of each pair: how far they agree beyond chance."""
    agreed = sum(one == other for one, other in labels) / len(labels)
    shares = [
        [own.count(label) / len(labels) for label in LABELS] for own in zip(*labels, strict=True)
    ]
    by_chance = sum(a * b for a, b in zip(*shares, strict=True))
    return (agreed - by_chance) / (1 - by_chance)


def titles(documents: Sequence[Document], pair: LabelledPair) -> tuple[str, str]:
    """Return the titles of a pair."""
    first, second = (
        parse_xml(documents[number - 1].xml).root.findtext("title") or ""
        for number in (pair.earlier, pair.later)
    )
    return first, second


def _numbers(text: str) -> set[str]:
    return set(re.findall(r"\d+", text))


def _shared(first: str, second: str) -> int:
    return len(set(words(first)) & set(words(second)))


RESIDUALS: dict[str, Callable[[str, str], bool]] = {
    "": lambda first, second: True,
    "equal numbers": lambda first, second: _numbers(first) == _numbers(second),
    "3 words shared": lambda first, second: _shared(first, second) >= 3,
    "4 words shared": lambda first, second: _shared(first, second) >= 4,
    "both": lambda a, b: _shared(a, b) >= 4 and _numbers(a) == _numbers(b),
}


def main() -> None:
    """Print agreement, precision and recall."""
    pairs = labelled_pairs()
    compared = {
        "one reader, twice": [(pair.first, pair.second) for pair in pairs],
        "two readers": [(pair.label, pair.other) for pair in pairs],
        "two readers, both sure": [
            (pair.label, pair.other) for pair in pairs if "unclear" not in (pair.label, pair.other)
        ],
    }
    for what, labels in compared.items():
        agreed = sum(one == other for one, other in labels)
        print(f"{what}: {len(labels)} pairs, {agreed} alike, kappa {kappa(labels):.2f}")
    documents = news()
    read = {pair: titles(documents, pair) for pair in pairs}
    drawn = {band: sum(pair.band == band for pair in pairs) for band in DRAWN_FROM}
    for band in DRAWN_FROM:
        counts = [sum(p.band == band and p.label == label for p in pairs) for label in LABELS]
        print(band, dict(zip(LABELS, counts, strict=True)))
    weight = {pair: DRAWN_FROM[pair.band] / drawn[pair.band] for pair in pairs}
    same = sum(weight[pair] for pair in pairs if pair.label == "yes")
    for name, holds in RESIDUALS.items():
        for threshold in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8):
            found = [p for p in pairs if p.band >= threshold and holds(*read[p])]
            yes, no, unclear = (
                sum(weight[p] for p in found if p.label == label) for label in LABELS
            )
            print(
                f"{name:>15} {threshold}: precision {yes / (yes + no):.2f}"
                f" ({yes / (yes + no + unclear):.2f} where unclear is no), recall {yes / same:.2f}"
            )


if __name__ == "__main__":
    main()
