"""The broker's door is closed from the first moment, and its owner has the key."""

from __future__ import annotations

import asyncio
import stat
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from support.sparkless_broker import Unstarted, running
from support.verbs import xscl

from broker.registry.ownertoken import OWNER, keep_owner_token
from broker.registry.tokens import Tokens, TokenScope
from broker.settings.config import parse_settings


def serving(path: Path) -> AbstractAsyncContextManager[str]:
    """Run the broker of a settings file, but for Spark; gives the URL of its API."""
    return running(parse_settings(path.read_text(), path), Unstarted)


@asynccontextmanager
async def relaying(port: int) -> AsyncIterator[str]:
    """Relay connections byte by byte, as `ssh -L`, socat and `kubectl port-forward` do."""

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            writer.write(data)
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", port)
        await asyncio.gather(pump(reader, back), pump(there, writer))

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "xscl.toml"
    path.write_text('data = "data"\n[http]\nport = 0\n')
    return path


async def test_a_new_broker_admits_its_owners_verbs_and_nobody_without_a_token(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(settings) as url, aiohttp.ClientSession() as session:
        async with relaying(int(url.rpartition(":")[2])) as relayed:
            for place in (url, relayed):
                async with session.put(f"{place}/v1/queries/pwned", data="news//item->a") as answer:
                    assert answer.status == 401
        listed = await asyncio.to_thread(xscl, "--config", str(settings), "list")
        assert listed.exit_code == 0, listed.stderr
        assert "pwned" not in listed.stdout
        # Who names another broker does not send it this one's token.
        other = await asyncio.to_thread(xscl, "--config", str(settings), "--broker", url, "list")
        assert other.exit_code == 1
    assert stat.S_IMODE((settings.parent / "data" / "admin-token").stat().st_mode) == 0o600


async def test_with_required_tokens_the_broker_makes_none(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.write_text(settings.read_text() + 'tokens = "required"\n')
    async with serving(settings):
        listed = await asyncio.to_thread(xscl, "--config", str(settings), "list")
        assert listed.exit_code == 1
        assert "admin-token" in listed.stderr
    assert not (settings.parent / "data" / "admin-token").exists()


def test_init_makes_the_token_that_verbs_will_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = xscl("init", str(tmp_path))
    assert stat.S_IMODE((tmp_path / "xscl.toml").stat().st_mode) == 0o600
    path = tmp_path / "xscl-data" / "admin-token"
    assert str(path) in made.stderr
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    shown = xscl("--config", str(tmp_path / "xscl.toml"), "context", "show")
    assert f"token   {path}\n" in shown.stdout
    assert path.read_text().strip() not in made.output + shown.output


@pytest.mark.parametrize("trouble", ["lost", "revoked", "torn", "another scope"])
def test_a_token_that_is_no_good_is_replaced_and_the_old_one_is_worthless(
    tmp_path: Path, trouble: str
) -> None:
    path = keep_owner_token(tmp_path)
    old = path.read_text().strip()
    tokens = Tokens(tmp_path / "tokens.db")
    if trouble == "lost":
        path.unlink()
    elif trouble == "revoked":
        tokens.revoke(OWNER)
    elif trouble == "torn":
        path.write_text(old[:20])
    else:
        path.write_text(tokens.create("crawler", [TokenScope.PUBLISH])[1])
    new = keep_owner_token(tmp_path).read_text().strip()
    assert tokens.find(old) is None
    found = tokens.find(new)
    assert found is not None
    assert (found.name, found.scopes) == (OWNER, frozenset({TokenScope.ADMIN}))
    assert keep_owner_token(tmp_path).read_text().strip() == new
    tokens.close()


def test_tokens_of_an_earlier_installation_stay_good(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "tokens.db")
    _, secret = tokens.create("ops", [TokenScope.ADMIN])
    keep_owner_token(tmp_path)
    assert tokens.find(secret) is not None
    assert {token.name for token in tokens.tokens()} == {"ops", OWNER}
    tokens.close()
