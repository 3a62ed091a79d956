"""Tries a sample of mutants: see `mutants`.  Ends with 1 if one survives, or cannot be tried."""

from __future__ import annotations

import argparse
import random
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from mutants.mutations import Mutant, mutants_of
from mutants.rooms import ROOMS, Room
from mutants.trial import Fate, Trial, copy_of_checkout

__all__ = ["explained", "main", "modules_of", "sample_of"]

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.txt")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    help_ = f"rooms ({', '.join(ROOMS)}) or single modules of theirs; all rooms where none is named"
    parser.add_argument("--modules", nargs="+", default=list(ROOMS), metavar="NAME", help=help_)
    parser.add_argument("--sample", type=int, default=50, help="mutants of each of them")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--list", action="store_true", help="say what would be tried")
    asked = parser.parse_args(arguments)
    # The copy and what runs in it go as well when somebody ends this.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    known = set(explained())
    fates: Counter[Fate] = Counter()
    with copy_of_checkout(ROOT) as copy:
        trial = Trial(copy, [room.package for room in ROOMS.values()])
        for name in asked.modules:
            room, modules = modules_of(name)
            for mutant in sample_of(modules, asked.sample, f"{asked.seed} {name}"):
                without, changed = mutant.difference((copy / mutant.path).read_text())
                if asked.list:
                    told = "to be tried"
                elif (mutant.path.stem, without, changed) in known:
                    told = "explained"
                else:
                    began = time.monotonic()
                    fate = trial.of(mutant, room.related(mutant.path, copy))
                    fates[fate] += 1
                    told = f"{fate.value}, {time.monotonic() - began:.0f} s"
                print(
                    f"{told:>15}  {mutant.path}:{mutant.line}  {without}  ->  {changed}", flush=True
                )
    print(", ".join(f"{fates[fate]} {fate.value}" for fate in Fate))
    return 1 if fates[Fate.SURVIVED] or fates[Fate.NOT_TRIED] else 0


def modules_of(name: str) -> tuple[Room, list[Path]]:
    """Return a room and its modules, or one of its modules; raise `SystemExit` for other names."""
    if name in ROOMS:
        return ROOMS[name], ROOMS[name].modules(ROOT)
    for room in ROOMS.values():
        if found := [path for path in room.modules(ROOT) if path.stem == name]:
            return room, found
    raise SystemExit(f"{name} is neither a room nor a module of one")


def sample_of(modules: Iterable[Path], size: int, seed: str) -> list[Mutant]:
    """Return some mutants of modules, in the order of their lines."""
    sources = {path: (ROOT / path).read_text() for path in modules}
    found = [mutant for path, source in sources.items() for mutant in mutants_of(path, source)]
    random.Random(seed).shuffle(found)
    read = (mutant for mutant in found if mutant.is_code(sources[mutant.path]))
    drawn = islice(read, size)
    return sorted(drawn, key=lambda each: (each.path, each.line, each.operator, each.occurrence))


def explained() -> Iterator[tuple[str, str, str]]:
    """Yield the modules and differences of mutants that change nothing."""
    for stanza in re.split(r"\n{2,}", EQUIVALENT.read_text().strip())[1:]:
        found = re.fullmatch(r"(\w+): (.+)\n +-> (.*)\n +because .+", stanza, re.DOTALL)
        assert found is not None, stanza
        yield found[1], found[2], found[3]


if __name__ == "__main__":
    sys.exit(main())
