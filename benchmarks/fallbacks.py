"""Where signatures help least: signatures against the paper's views, by processor time.

    python -m benchmarks fallbacks

    equal      documents that share 20 values, each on 20 nodes: 400 equal pairs of nodes
    subsets    8 of 16 values in each document: hardly two pairs have one signature
    shapes     every document has a structure of its own

The figures are processor time (all threads) for each document, stage 1 included, and the share of
signatures that were known.  Both engines find equal matches.
"""

from __future__ import annotations

import random
import time
from collections.abc import Sequence

import xscl
from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.matching.engine import Engine, RegisteredQuery
from joins.engines import EngineName
from joins.signature.engine import SignatureProcessor

SECOND_US = 1_000_000
QUERIES = (
    "S//i->a FOLLOWED BY {a//c = b//c, 1 h} S//i->b",
    "S//i[.//c->x][.//c->y] FOLLOWED BY {x = z AND y = w, 1 h} S//i[.//c->z][.//c->w]",
)


def documents(bodies: Sequence[str]) -> list[Document]:
    """Return documents a second apart."""
    found, watermark_us = [], FIRST_WATERMARK_US
    for docid, body in enumerate(bodies, 1):
        time_us = docid * SECOND_US
        xml = f"<i>{body}</i>".encode()
        times = (time_us, time_us, time_us, watermark_us)
        found.append(Document(docid, "S", str(docid), *times, xml))
        watermark_us = time_us
    return found


def workloads() -> dict[str, tuple[Sequence[str], list[Document]]]:
    """Return queries and documents by name."""
    random_ = random.Random(5)
    equal = ["<c>same</c>" * 20 for _ in range(20)]
    subsets = [
        "".join(f"<c>{value}</c>" for value in random_.sample(range(16), 8)) for _ in range(40)
    ]
    shapes = [f"<p{n}><c>{random_.randrange(12)}</c></p{n}>" for n in range(100)]
    return {
        "equal": (QUERIES[:1], documents(equal)),
        "subsets": (QUERIES, documents(subsets)),
        "shapes": (QUERIES[:1], documents(shapes)),
    }


def measure(
    texts: Sequence[str], stream: list[Document], engine: EngineName
) -> tuple[float, int, float | None]:
    """Return milliseconds a document, matches, and the share of known signatures."""
    queries = [RegisteredQuery(xscl.parse(t, id=f"q{i}")[0]) for i, t in enumerate(texts)]
    running = Engine(queries, lateness_us=0, engine=engine)
    xml = {one.docid: one.xml for one in stream}
    matches, started = 0, time.process_time()
    for start in range(0, len(stream), 20):
        witnesses = running.evaluate(stream[start : start + 20])
        step = running.process(witnesses, lambda docids: {docid: xml[docid] for docid in docids})
        matches += len(step.matches)
    ms = (time.process_time() - started) * 1e3 / len(stream)
    processor = running.processor
    if not isinstance(processor, SignatureProcessor):
        return ms, matches, None
    view = processor.view
    return ms, matches, view.hits / max(1, view.hits + view.misses)


def main() -> None:
    """Print a table."""
    print("| workload | matches | signatures ms/document | known | mmqjp-views ms/document |")
    print("|---|---|---|---|---|")
    for name, (texts, stream) in workloads().items():
        ours, matches, known = measure(texts, stream, "signatures")
        theirs, expected, _ = measure(texts, stream, "mmqjp-views")
        assert matches == expected
        print(f"| {name} | {matches:,} | {ours:.1f} | {known:.0%} | {theirs:.1f} |", flush=True)


if __name__ == "__main__":
    main()
