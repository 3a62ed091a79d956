"""Print the matches that the oracle finds in recorded documents, as `xscl replay` prints them.

    python benchmarks/oracle_replay.py QUERY_FILE_OR_DIR... --documents docs.jsonl.gz --first 5000

So `diff` tells whether a broker finds the same.  The oracle compares every pair of documents: with
one query, 5,000 documents take some ten seconds.
"""

from __future__ import annotations

import argparse
import gzip
import sys
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import oracle  # noqa: E402
from oracle.lines import render  # noqa: E402
from support.kit import us  # noqa: E402

import xscl  # noqa: E402
from broker.documents.document import parse_document_line  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("queries", type=Path, nargs="+", metavar="QUERY_FILE_OR_DIR")
    parser.add_argument("--documents", type=Path, required=True)
    parser.add_argument("--first", type=int, help="read only so many documents")
    parser.add_argument("--lateness", default="1 d")
    options = parser.parse_args()
    open_ = gzip.open if options.documents.suffix == ".gz" else open
    with open_(options.documents, "rb") as file:
        lines = [parse_document_line(line) for line in islice(file, options.first)]
    matches = oracle.matches(
        xscl.load(options.queries),
        oracle.number_documents(lines),
        lateness_us=us(options.lateness),
    )
    for match in matches:
        print(render(match))


if __name__ == "__main__":
    main()
