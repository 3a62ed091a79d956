"""What is listed is what is counted, and what a graph has for paths: of generated statements."""

from __future__ import annotations

import random
from collections import Counter

from generators.choosers import RandomChooser
from generators.counted_cases import counted_source
from support.counted_runs import asked, paths, stream_of_kinds
from support.examples import examples
from support.kit import Case
from support.runners import run_engine

from broker.matching.match import Match
from broker.pipeline.shards import Join
from xscl.counting import not_drawn


def _found(case: Case, seed: int) -> list[Match] | None:
    """Return the matches of a case, run in some way; None where there are too many to list."""
    chance = random.Random(seed)
    join = Join(case.lateness_us, chance.choice([1, 1, 2]))
    paused: dict[str, int] = {}
    found = run_engine(
        case,
        batch_size=chance.choice([1, 3, None]),
        restart_after=chance.choice([0, 0, len(case.lines) // 2]),
        processors=lambda: join.processor(None),
        paused=paused,
    )
    return None if paused else found


def test_listed_are_counted_are_the_paths_of_graphs() -> None:
    """Every document comes within the grace, so what ends at a time is decided together."""
    grace = "GRACE 100 s"
    ways = Counter[str]()
    for seed in range(examples(5)):
        chooser = RandomChooser(seed)
        source, documents = counted_source(chooser), stream_of_kinds(seed)
        # LIMIT has each match decided, and lets all of them pass.
        limited = asked(f"{source} LIMIT 100000 PER 1 h {grace}", documents, 100)
        listed = _found(limited, seed)
        if not listed:
            continue
        told = f"seed {seed}: {source}"
        rows = asked(f"SELECT <n>{{count()}}</n> FROM {source} WINDOW 0 s {grace}", documents, 100)
        counted = _found(rows, seed + 1)
        assert counted is not None, told
        ends = {row.end_us: row.values["count()"] for row in counted}
        assert ends == Counter(match.end_us for match in listed), told
        ways["counted"] += 1
        if "+" in source and not_drawn(rows.queries[0]) is None:
            graphs = _found(
                asked(f"SELECT COMPRESSED FROM {source} {grace}", documents, 100), seed + 2
            )
            assert graphs is not None, told
            drawn = Counter(path for match in graphs for path in paths(match))
            found = Counter(tuple(each.docid for each in match.documents) for match in listed)
            assert drawn == found, told
            ways["drawn"] += 1
    assert ways["counted"]
    assert ways["drawn"]
