"""Sequences over streams that lose documents: what is found again, how surely, and what it costs.

    python -m benchmarks ayac [--groups 2000]

AYAC (Toossi, *A Probabilistic Complex Event Processor for Incomplete Streams*, 2007) reports no
measurement: these are the ones that its model asks for.  Groups of documents are announced,
reviewed, sold and returned, with 1 to 10 s between them, and a share of those in the middle is
lost (`benchmarks losses` has more on costs).  A group is found if a match begins and ends with its
documents; a match is wrong if these are of no group, or of one whose documents were all there and
has been told twice.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Iterator, Sequence

import xscl
from benchmarks._paper_plots import print_head, print_row
from benchmarks.losses import BATCH, GRACE_US, SECOND_US, numbered
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery

KINDS = ("announce", "review", "sale", "return", "refund")
SHARES = (0.0, 0.01, 0.05, 0.1, 0.2)
CONFIDENCES = ("0.001", "0.01", "0.05", "0.09")
WINDOWS = (20, 60, 300, 900)
BINS = 10


def chain(units: int, share: float, confidence: str, window: int = 60) -> str:
    """Return a sequence whose inner units may be lost; a plain one where nothing is."""
    parts = [f"S//{KINDS[0]}[k->v0]"]
    for i in range(1, units):
        loss = f" LOSS {share} DELAY uniform(0 s, 10 s)" if share and i < units - 1 else ""
        parts.append(f"FOLLOWED BY {{v{i - 1} = v{i}, 20 s}} S//{KINDS[i]}[k->v{i}]{loss}")
    asked = f" CONFIDENCE {confidence} GRACE 0 s" if share else ""
    return f"{' '.join(parts)} WITHIN {window} s{asked}"


def groups(count: int, share: float, units: int = 4) -> list[Document]:
    """Return the documents of groups, of which a share of those in the middle is lost."""
    chance = random.Random(42)
    events: list[tuple[int, str, int]] = []
    for key in range(count):
        at = key * SECOND_US
        for i, kind in enumerate(KINDS[:units]):
            at += chance.randint(1, 10) * SECOND_US if i else 0
            if i in (0, units - 1) or chance.random() >= share:
                events.append((at, kind, key))
    return numbered(events)


def matches(text: str, documents: Sequence[Document]) -> tuple[float, list[dict]]:
    """Return the seconds of the processor that a statement takes, and its match lines as data."""
    engine = Engine([RegisteredQuery(xscl.parse(text, id="q")[0])], lateness_us=GRACE_US)
    xml = {each.docid: each.xml for each in documents}
    lines: list[dict] = []
    spent = 0.0
    for first in range(0, len(documents), BATCH):
        witnesses = engine.evaluate(documents[first : first + BATCH])
        started = time.process_time()
        step = engine.process(witnesses, lambda docids: {docid: xml[docid] for docid in docids})
        spent += time.process_time() - started
        lines += [json.loads(match.line) for match in step.matches]
    return spent, lines


def ends(lines: Sequence[dict], documents: Sequence[Document]) -> Iterator[tuple[int, int]]:
    """Yield the keys of the first and the last document of each match."""
    key_of = {each.docid: int(each.xml.split(b"<k>")[1].split(b"<")[0]) for each in documents}
    for line in lines:
        docids = [each["docid"] for each in line["documents"]]
        yield key_of[docids[0]], key_of[docids[-1]]


def losses(count: int) -> None:
    """Print how many groups are found where documents are lost."""
    print("\nfound of all groups, by the share of documents that is lost: four units, two lossy\n")
    print_head("lost", "plain", "with LOSS", "wrong", "expected of plain")
    for share in SHARES:
        documents = groups(count, share)
        plain = {first for first, _ in ends(matches(chain(4, 0, ""), documents)[1], documents)}
        lossy = [*ends(matches(chain(4, share, "0.00001"), documents)[1], documents)]
        found = {first for first, last in lossy if first == last}
        wrong = sum(first != last for first, last in lossy) + len(lossy) - len(set(lossy))
        print_row(
            f"{share}",
            f"{len(plain) / count:.4f}",
            f"{len(found) / count:.4f}",
            f"{wrong}",
            f"{(1 - share) ** 2:.4f}",
        )


def confidences(count: int) -> None:
    """Print what is left, and what it costs, where more confidence is asked for."""
    print("\nby confidence: four units, two lossy, a tenth lost\n")
    print_head("confidence", "documents/s", "matches", "of incomplete groups")
    documents = groups(count, 0.1)
    for confidence in CONFIDENCES:
        seconds, lines = matches(chain(4, 0.1, confidence), documents)
        incomplete = sum(bool(line["missing"]) for line in lines)
        rate = f"{len(documents) / seconds:,.0f}"
        print_row(confidence, rate, f"{len(lines):,}", f"{incomplete:,}")


def windows(count: int) -> None:
    """Print what windows cost."""
    print("\nby window: four units, two lossy, a tenth lost\n")
    print_head("window", "documents/s", "plain documents/s")
    documents = groups(count, 0.1)
    for window in WINDOWS:
        rates = [
            f"{len(documents) / matches(chain(4, share, '0.01', window), documents)[0]:,.0f}"
            for share in (0.1, 0)
        ]
        print_row(f"{window} s", *rates)


def lengths(count: int) -> None:
    """Print what units cost; more than three that may be lost are refused."""
    print("\nby units, all inner ones lossy, confidence above that of two missing\n")
    print_head("units", "documents/s", "plain documents/s")
    for units in range(3, 6):
        documents = groups(count, 0.1, units)
        rates = [
            f"{len(documents) / matches(chain(units, share, '0.011'), documents)[0]:,.0f}"
            for share in (0.1, 0)
        ]
        print_row(f"{units}", *rates)


def calibration(count: int) -> None:
    """Print how many matches are true by their confidence, of an unseen negative, and its score."""
    print("\nunseen negative: confidence of matches, and the share that is true\n")
    print_head("confidence", "matches", "mean", "true")
    chance = random.Random(7)
    events: list[tuple[int, str, int]] = []
    is_true: list[bool] = []
    for key in range(count):
        gap = chance.randint(1, 30 * SECOND_US)
        delay = round(chance.uniform(0, 40 * SECOND_US))
        events += [(key * SECOND_US, "exit", key), (key * SECOND_US + gap, "enter", key)]
        if chance.random() >= 0.5:
            events.append((key * SECOND_US + delay, "wash", key))
        is_true.append(delay >= gap)
    # Something moves the clock past the last pair.
    events.append((2 * count * SECOND_US + GRACE_US, "end", 0))
    documents = numbered(events)
    text = (
        "S//exit[k->x] FOLLOWED BY {x = y, 30 s} S//enter[k->y] UNLESS {x = z} S//wash[k->z]"
        " LOSS 0.5 DELAY uniform(0 s, 40 s) GRACE 0 s"
    )
    lines = matches(text, documents)[1]
    bins: list[list[tuple[float, bool]]] = [[] for _ in range(BINS)]
    for line, (key, _) in zip(lines, ends(lines, documents), strict=True):
        confidence = line["confidence"]
        bins[min(BINS - 1, int(confidence * BINS))].append((confidence, is_true[key]))
    for number, own in enumerate(bins):
        if own:
            mean, true = (sum(each) / len(own) for each in zip(*own, strict=True))
            between = f"{number / BINS} to {(number + 1) / BINS}"
            print_row(between, f"{len(own):,}", f"{mean:.4f}", f"{true:.4f}")
    pairs = [pair for own in bins for pair in own]
    brier = sum((confidence - true) ** 2 for confidence, true in pairs) / len(pairs)
    print(f"\nBrier score {brier:.4f} of {len(pairs):,} matches")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--groups", type=int, default=2_000)
    options = parser.parse_args()
    losses(options.groups)
    confidences(options.groups)
    windows(options.groups)
    lengths(options.groups)
    calibration(5 * options.groups)


if __name__ == "__main__":
    main()
