from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from broker.pipeline.querystart import started

TOO_SLOW = "[STREAM_FAILED] Python worker failed to connect back."


@dataclass
class Started:
    """A query that initialises for some looks, then runs, or ends with an error."""

    error: str = ""
    looks: int = 2
    seen: list[str] = field(default_factory=list)

    @property
    def isActive(self) -> bool:  # noqa: N802
        return self.looks > 0 or not self.error

    @property
    def status(self) -> dict[str, Any]:
        self.looks -= 1
        return {"message": "Initializing sources" if self.looks >= 0 else "Waiting for data"}

    def exception(self) -> Exception | None:
        return RuntimeError(self.error) if self.error else None


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.pipeline.querystart._LOOK_EVERY_S", 0.0)


def test_a_query_whose_process_was_too_slow_is_started_again() -> None:
    queries = [Started(TOO_SLOW), Started(TOO_SLOW, looks=0), Started(), Started()]
    starts = iter(queries)
    assert started(lambda: next(starts)) is queries[2]
    assert queries[2].looks < 0, "it has initialised its sources"


def test_a_query_that_failed_for_another_reason_is_left_to_say_so() -> None:
    queries = [Started("[STREAM_FAILED] no such directory"), Started()]
    starts = iter(queries)
    assert started(lambda: next(starts)) is queries[0]


def test_a_machine_that_is_too_slow_for_good_is_told() -> None:
    made: list[Started] = []

    def start() -> Started:
        made.append(Started(TOO_SLOW, looks=0))
        return made[-1]

    assert started(start) is made[-1]
    assert str(made[-1].exception()) == TOO_SLOW
