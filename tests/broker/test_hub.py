"""Readers of one subscription share pages, of which few are kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.subscribers import broker_in, found

from broker.delivery import hub
from broker.delivery.hub import Hub


async def test_pages_with_matches_are_kept_of_the_places_that_were_read_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "_PAGES_MAX", 2)
    with broker_in(tmp_path) as broker:
        subscription = broker.subscribe("pull")
        broker.commit(*map(found, range(1, 5)))
        reads = Hub(broker.outbox)
        for after in range(4):
            matches = await reads.next(subscription, after=after)
            assert [match.seq for match in matches] == [*range(after + 1, 5)]
        assert [after for _, after, *_ in reads._pages] == [2, 3]
        assert not await reads.next(subscription, after=4)
        assert [after for _, after, *_ in reads._pages] == [3]
        await reads.close()
