"""Ways to run a match case that must not show, drawn by lot."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from unittest.mock import patch

from broker.matching.match import Match
from broker.pipeline.shards import Join
from joins.similarity import settable, textsets
from support.kit import Case
from support.runners import DEFAULT_ENGINE, EngineName, run_engine
from support.tiny_limits import random_limits

__all__ = ["CaseWay", "is_longer", "random_case_way"]


@dataclass(frozen=True, slots=True)
class CaseWay:
    """A way to run a case; all limits are as usual where `bounds_seed` is None.

    Words are ordered from `first_look` sets on, and copied up to `part_words` at once.
    """

    engine: EngineName
    batch_size: int | None
    restart_after: int
    shards: int
    bounds_seed: int | None
    first_look: int
    part_words: int

    def run(self, case: Case, paused: dict[str, int]) -> list[Match]:
        """Return the matches that are found; `paused` gets where queries found too much."""
        limits, shard_limits = random_limits(self.bounds_seed)
        join = Join(case.lateness_us, self.shards, limits=shard_limits)
        with self._taken():
            return run_engine(
                case,
                self.engine,
                batch_size=self.batch_size,
                restart_after=self.restart_after,
                processors=lambda: join.processor(None),
                limits=limits,
                paused=paused,
            )

    @contextlib.contextmanager
    def _taken(self) -> Iterator[None]:
        with (
            patch.object(settable, "FIRST_LOOK", self.first_look),
            patch.object(textsets, "FIRST_SETS", self.first_look),
            patch.object(settable, "PART_WORDS", self.part_words),
        ):
            yield


def random_case_way(
    seed: int, case: Case, engines: Sequence[EngineName], *, by_default: int = 0
) -> CaseWay:
    """Return one of the ways; in so many of five cases the engine is the default one."""
    chance = random.Random(seed)
    engine = DEFAULT_ENGINE if chance.randrange(5) < by_default else chance.choice(engines)
    is_default = engine == DEFAULT_ENGINE
    return CaseWay(
        engine=engine,
        batch_size=chance.choice((1, 3, None)),
        restart_after=0 if chance.randrange(4) else len(case.lines) // 2,
        shards=3 if is_default and not chance.randrange(5) else 1,
        # In a longer case what is remembered goes, if it may.
        bounds_seed=seed if is_default and (is_longer(case) or chance.randrange(2)) else None,
        first_look=chance.choice((1, settable.FIRST_LOOK)),
        part_words=chance.choice((1, settable.PART_WORDS)),
    )


def is_longer(case: Case) -> bool:
    """Return whether a case has so many documents that what is remembered may go before the end."""
    return len(case.lines) >= 20
