"""The behaviour scorer: a server that plays the web's tricks, and a mark for each."""

from __future__ import annotations

import pytest
from tricks import TRICKS, Play, Trick

from feeds import Secrets

SCORES: dict[str, list[str]] = {}


@pytest.mark.parametrize("function", TRICKS, ids=lambda function: function.__name__)
async def test_the_poller_behaves(function: Trick, server, store, inbox, clock, poller_of) -> None:
    SCORES[function.__name__] = ["it did not finish"]
    SCORES[function.__name__] = await function(Play(server, store, inbox, clock, poller_of))
    assert not SCORES[function.__name__]


def test_the_score_is_full(record_property) -> None:
    right = sum(1 for found in SCORES.values() if not found)
    score = f"feed reader behaviour: {right} of {len(SCORES)} tricks without a fault"
    record_property("figure", score)
    assert right == len(SCORES)


def test_secrets_do_not_show() -> None:
    assert "pw" not in repr(Secrets("ann", "pw", (("X-Key", "pw"),)))
