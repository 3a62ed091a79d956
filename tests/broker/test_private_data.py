"""Who is not the owner of a broker's data can read none of it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from support.sparkless_broker import Unstarted, running

from broker.cli import main
from broker.registry.queries import Registry
from broker.settings.config import HttpSettings, Settings
from broker.settings.directory import keep_private


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """The umask of most machines, under which what is made can be read by all."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def readable_by_others(directory: Path) -> list[str]:
    paths = [directory, *directory.rglob("*")]
    return [str(path) for path in paths if path.lstat().st_mode & 0o077]


def serve_once(data: Path) -> None:
    """Run a broker, but for Spark, until it listens."""

    async def run() -> None:
        async with running(Settings(data=data, http=HttpSettings(port=0)), Unstarted):
            pass

    asyncio.run(run())


def test_what_a_broker_writes_is_its_owners_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_once(tmp_path / "data")
    assert {"registry.db", "deliveries.db"} <= {path.name for path in (tmp_path / "data").iterdir()}
    assert readable_by_others(tmp_path / "data") == []


def test_what_an_earlier_version_wrote_for_all_to_read_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    Registry(data / "registry.db").close()
    (data / "state").mkdir()
    (data / "state" / "old").touch()
    assert len(readable_by_others(data)) == 4
    serve_once(data)
    assert readable_by_others(data) == []


@pytest.mark.parametrize(
    "verb",
    [
        ["tokens", "create", "ops", "--scope", "admin", "--local"],
        ["feeds", "import", "feeds.opml", "--stream", "news"],
    ],
    ids=lambda verb: verb[0],
)
def test_verbs_that_work_on_the_data_make_it_private(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: list[str], unused_tcp_port: int
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("xscl.toml").write_text(f'data = "data"\n[http]\nport = {unused_tcp_port}\n')
    Path("feeds.opml").write_text('<opml version="2.0"><body/></opml>')
    result = CliRunner().invoke(main, verb)
    assert result.exit_code == 0, result.output
    assert readable_by_others(tmp_path / "data") == []


def test_what_links_lead_to_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").touch(0o644)
    data = tmp_path / "data"
    data.mkdir()
    (data / "link").symlink_to(tmp_path / "elsewhere")
    keep_private(data)
    assert (tmp_path / "elsewhere").stat().st_mode & 0o777 == 0o644
