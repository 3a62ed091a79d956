"""Compare the engines with the oracle on many generated cases, and name the seeds that differ.

    python benchmarks/oracle_run.py --cases 5000 [--seed 0] [--engine mmqjp-views] [--keep DIR]

Each seed is a query set with a document stream (see `tests/strategies.py`).  The engine gets the
documents in batches of one, of three, and all at once, in turn; every fourth case restarts in the
middle.  A case that differs is printed as it stands, with expected and found matches.
"""

from __future__ import annotations

import argparse
import difflib
import sys
import time
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from kit import parse_case  # noqa: E402
from runners import ENGINES, EngineName, run_engine, run_oracle  # noqa: E402
from strategies import random_case  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--engine", choices=[*ENGINES, "all"], default="all")
    parser.add_argument("--keep", type=Path, help="write cases that differ to this directory")
    options = parser.parse_args()
    engines = list(ENGINES) if options.engine == "all" else [options.engine]
    counts: Counter[str] = Counter()
    started = time.monotonic()
    for seed in range(options.seed, options.seed + options.cases):
        difference = compare(seed, engines[seed % len(engines)], counts)
        if difference:
            counts["different"] += 1
            print(f"seed {seed}, {engines[seed % len(engines)]}:\n{difference}\n", flush=True)
            if options.keep:
                options.keep.mkdir(parents=True, exist_ok=True)
                (options.keep / f"{seed}.case").write_text(random_case(seed))
    seconds = time.monotonic() - started
    print(", ".join(f"{n} {name}" for name, n in counts.items()) + f", {seconds:.0f} s")
    sys.exit(1 if counts["different"] else 0)


def compare(seed: int, engine: EngineName, counts: Counter[str]) -> str:
    """Return how the engine differs from the oracle, or nothing."""
    text = random_case(seed)
    case = parse_case(text)
    batch_size = (1, None, 3)[seed // len(ENGINES) % 3]
    restart = len(case.lines) // 2 if seed % 4 == 0 else 0
    expected = [match.render() for match in run_oracle(case)]
    counts["cases"] += 1
    counts["cases with matches"] += bool(expected)
    counts["matches"] += len(expected)
    try:
        matches = run_engine(case, engine, batch_size=batch_size, restart_after=restart)
        found = [match.render() for match in matches]
    except Exception:
        found = traceback.format_exc(limit=-4).splitlines()
    if found == expected:
        return ""
    lines = difflib.unified_diff(expected, found, "oracle", engine, lineterm="", n=0)
    return f"batch size {batch_size}, restart {restart}\n{text}" + "\n".join(lines)


if __name__ == "__main__":
    main()
