"""Statements with LOSS beside the plain ones, alone and many, and whether confidence is right.

    python -m benchmarks losses [--groups 10000]

Documents are groups of announce, review, sale and return with a key, a tenth of the middle ones
dropped (AYAC's LOSSY); of NEG a third kind comes between the two of a pair, or later.  What is
counted begins with witnesses and ends with lines, as in `benchmarks sequences`; documents are
evaluated before the clock starts.  A cost is processor time by that of the plain statement.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence

import xscl
from broker.documents.document import Document
from broker.matching.engine import Engine, RegisteredQuery

SECOND_US = 1_000_000
BATCH = 10_000
GRACE_US = 60 * SECOND_US
STATEMENTS = (1, 100, 1_000, 10_000)
MATCHES = 400_000
"""Groups that so many statements match, one with another; each group is of four documents."""


LOSS = "LOSS 0.1 DELAY uniform(0 s, 10 s)"
CHAIN = ("announce", "review", "sale", "return")
NEG = (
    "S//exit[k->x] FOLLOWED BY {x = y, 30 s} S//enter[k->y] UNLESS {x = z} S//wash[k->z]"
    " LOSS 0.1 DELAY uniform(0 s, 40 s) GRACE 0 s"
)


def chain(lossy: int, confidence: str = "0.0001", units: int = 4) -> str:
    """Return a chain of units of which some in the middle are lossy."""
    parts = [f"S//{CHAIN[0]}[k->v0]"]
    for i in range(1, units):
        loss = f" {LOSS}" if i <= lossy else ""
        parts.append(f"FOLLOWED BY {{v{i - 1} = v{i}, 20 s}} S//{CHAIN[i]}[k->v{i}]{loss}")
    asked = f" CONFIDENCE {confidence}" if lossy else ""
    return f"{' '.join(parts)} WITHIN 60 s{asked}{' GRACE 0 s' if lossy else ''}"


def document(number: int, at: int, kind: str, key: int, newest: int) -> Document:
    xml = f"<{kind}><k>{key}</k></{kind}>".encode()
    return Document(number, "S", str(number), at, at, at, newest, xml)


def numbered(events: Sequence[tuple[int, str, int]]) -> list[Document]:
    """Return events as documents in the order of their times."""
    found: list[Document] = []
    newest = -(1 << 61)
    for number, (at, kind, key) in enumerate(sorted(events), 1):
        found.append(document(number, at, kind, key, newest))
        newest = max(newest, at)
    return found


def groups(count: int) -> list[Document]:
    """Return groups of a chain's documents, a tenth of those in the middle dropped."""
    chance = random.Random(42)
    events: list[tuple[int, str, int]] = []
    for key in range(count):
        at = key * SECOND_US
        for i, kind in enumerate(CHAIN):
            at += chance.randint(1, 10) * SECOND_US if i else 0
            if i in (0, len(CHAIN) - 1) or chance.random() >= 0.1:
                events.append((at, kind, key))
    return numbered(events)


def cost(texts: Sequence[str], documents: Sequence[Document]) -> tuple[float, int]:
    """Return the processor seconds of statements over documents, and how many matches there are."""
    queries = [RegisteredQuery(xscl.parse(text, id=f"q{i}")[0]) for i, text in enumerate(texts)]
    engine = Engine(queries, lateness_us=GRACE_US)
    xml = {each.docid: each.xml for each in documents}
    parts = [engine.evaluate(documents[i : i + BATCH]) for i in range(0, len(documents), BATCH)]
    started, matches = time.process_time(), 0
    for part in parts:
        step = engine.process(part, lambda docids: {docid: xml[docid] for docid in docids})
        matches += len(step.matches)
    return time.process_time() - started, matches


def calibration(pairs: int) -> tuple[int, float, float]:
    """Return how many matches of NEG there are, their mean confidence, and how many are true."""
    chance = random.Random(7)
    events: list[tuple[int, str, int]] = []
    is_true: list[bool] = []
    for key in range(pairs):
        start = key * SECOND_US
        gap = chance.randint(1, 30 * SECOND_US)
        delay = round(chance.uniform(0, 40 * SECOND_US))
        events += [(start, "exit", key), (start + gap, "enter", key)]
        if chance.random() >= 0.1:
            events.append((start + delay, "wash", key))
        is_true.append(delay >= gap)
    # Something moves the clock past the last pair.
    events.append((2 * pairs * SECOND_US + GRACE_US, "end", 0))
    documents = numbered(events)
    engine = Engine([RegisteredQuery(xscl.parse(NEG, id="q")[0])], lateness_us=GRACE_US)
    xml = {each.docid: each.xml for each in documents}
    look_up: Callable[..., dict[int, bytes]] = lambda docids: {n: xml[n] for n in docids}  # noqa: E731
    keys = {each.docid: int(each.xml.split(b"<k>")[1].split(b"<")[0]) for each in documents}
    confidences: list[float] = []
    true = 0
    for i in range(0, len(documents), BATCH):
        for found in engine.process(engine.evaluate(documents[i : i + BATCH]), look_up).matches:
            match = json.loads(found.line)
            confidences.append(match["confidence"])
            true += is_true[keys[match["documents"][0]["docid"]]]
    count = len(confidences)
    return count, sum(confidences) / count, true / count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--groups", type=int, default=10_000)
    options = parser.parse_args()
    documents = groups(options.groups)
    plain, matches = cost([chain(0)], documents)
    rate = len(documents) / plain
    print(f"{'plain':24} {rate:10,.0f} documents/s  {matches:,} matches")
    for lossy, confidence in ((1, "0.01"), (2, "0.02"), (2, "0.0001")):
        seconds, matches = cost([chain(lossy, confidence)], documents)
        name = f"{lossy} lossy, {confidence}"
        rate = len(documents) / seconds
        print(
            f"{name:24} {rate:10,.0f} documents/s  {matches:,} matches, cost {seconds / plain:.2f}"
        )
    print(f"statements that differ in CONFIDENCE: plain ones, lossy ones; {MATCHES:,} matches")
    for count in STATEMENTS:
        few = documents[: 4 * MATCHES // count]
        alike, _ = cost([chain(0).replace("60 s", f"{60 + i} s") for i in range(count)], few)
        own = [chain(1, f"{0.01 + i / 200_000:.6f}") for i in range(count)]
        seconds, _ = cost(own, few)
        print(f"{count:10,} {alike:10.2f} {seconds:10.2f}  ({seconds / alike:.2f})")
    count, mean, true = calibration(2 * options.groups)
    print(f"unseen negative: {count:,} matches, mean confidence {mean:.4f}, true {true:.4f}")


if __name__ == "__main__":
    main()
