"""The confidence of what was not seen is the share of matches that are true."""

from __future__ import annotations

import random

import pytest
from support.kit import Case, document
from support.runners import run_engine

import xscl
from broker.documents.document import tick

PAIRS = 2_000
STATEMENT = """S//exit[k->x] FOLLOWED BY {x = y, 30 min} S//enter[k->y]
    UNLESS {x = z} S//wash[k->z] LOSS 0.1 DELAY uniform(0 min, 40 min) GRACE 0 s"""


def spread(count: int, chance: random.Random) -> list[float]:
    """Return numbers from 0 to 1, even but in no order: chance leaves little to chance."""
    found = [(i + 0.5) / count for i in range(count)]
    chance.shuffle(found)
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_matches_are_true_as_often_as_they_say(seed: int) -> None:
    chance = random.Random(seed)
    gaps, delays, losses = (spread(PAIRS, chance) for _ in range(3))
    events: list[tuple[float, str, int]] = []
    is_true: list[bool] = []
    for key, (gap, delay, loss) in enumerate(zip(gaps, delays, losses, strict=True)):
        start = key / 2
        events += [(start, "exit", key), (start + 30 * gap, "enter", key)]
        if loss >= 0.1:
            events.append((start + 40 * delay, "wash", key))
        is_true.append(40 * delay >= 30 * gap)
    lines = [
        document("S", at, f"<{kind}><k>{key}</k></{kind}>") for at, kind, key in sorted(events)
    ]
    case = Case(queries=list(xscl.parse(STATEMENT, id="q")), lines=[*lines, tick()])
    case.lines[-1] = tick(max(line.time_us or 0 for line in lines) + 3_600_000_000)
    matches = run_engine(case)
    keys = [int(next(iter(match.witnesses[0].values())).value or "") for match in matches]
    confidences = [match.confidence for match in matches if match.confidence is not None]
    assert len(keys) == len(confidences) > PAIRS / 2
    mean = sum(confidences) / len(confidences)
    share = sum(is_true[key] for key in keys) / len(keys)
    assert share == pytest.approx(mean, abs=0.01)
