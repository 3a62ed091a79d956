"""Compare bindings with the oracle's on random documents and patterns of the whole fragment.

    python benchmarks/xpath_is_right.py [--pairs 20000] [--seed 0]

Prints the first difference and exits 1, or the number of pairs compared.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from generators.random_paths import random_block, random_nested_block, random_xml  # noqa: E402
from oracle.paths import bindings  # noqa: E402
from oracle.tree import parse_tree  # noqa: E402
from support.registered import register  # noqa: E402


def compare(seed: int, blocks: int = 20, documents: int = 10) -> tuple[int, int]:
    """Return how many pairs were compared, and in how many there was something to find."""
    random_ = random.Random(seed)
    make = random_nested_block if seed % 5 == 0 else random_block
    chosen = [make(random_) for _ in range(blocks)]
    registered, evaluator = register(chosen)
    found = 0
    for _ in range(documents):
        xml = random_xml(random_)
        witnesses = evaluator.evaluate("S", xml)
        tree = parse_tree(xml)
        for block, one in zip(chosen, registered, strict=True):
            expected = {
                frozenset((v, node.number) for v, node in assignment if v in block.variables)
                for assignment in bindings(block.path, tree, {})
            }
            found += bool(expected)
            if one.bindings(witnesses) != expected:
                print(f"seed {seed}\n{block}\n{xml!r}\nexpected {expected}")
                print(f"found    {one.bindings(witnesses)}")
                sys.exit(1)
    return blocks * documents, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    start, pairs, found, seed = time.monotonic(), 0, 0, arguments.seed
    while pairs < arguments.pairs:
        compared, bound = compare(seed)
        pairs, found, seed = pairs + compared, found + bound, seed + 1
    print(f"{pairs:,} pairs agree, {found:,} of them with bindings", end="")
    print(f" (seeds {arguments.seed} to {seed - 1}, {time.monotonic() - start:.0f} s)")


if __name__ == "__main__":
    main()
