"""The API of a broker whose pipeline does not run: see `support.api_room`, `support.api_house`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp.test_utils import TestClient, TestServer
from support.api_house import House, open_house
from support.api_room import Room

from broker.api.http import make_application


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    room = Room(tmp_path)
    room.ingest.start()
    yield room
    room.close()


@pytest.fixture
async def client(room: Room) -> AsyncIterator[TestClient]:
    application = make_application(room.backend, body_bytes_max=10_000)
    async with TestClient(TestServer(application)) as client:
        yield client


@pytest.fixture
async def house(tmp_path: Path) -> AsyncIterator[House]:
    async with open_house(tmp_path) as house:
        yield house
