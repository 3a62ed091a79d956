from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.documents.spool import SpoolWriter
from broker.operations.backup import back_up
from broker.pipeline.outbox import Outbox
from broker.registry.tokens import TOKEN_PREFIX, TokenError, Tokens, TokenScope

MINUTE_US = 60_000_000


class Clock:
    def __init__(self) -> None:
        self.now_us = 1_767_225_600_000_000

    def __call__(self) -> int:
        return self.now_us


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def tokens(tmp_path: Path, clock: Clock) -> Iterator[Tokens]:
    tokens = Tokens(tmp_path / "tokens.db", now_us=clock)
    yield tokens
    tokens.close()


def test_a_token_is_found_by_its_secret_and_by_nothing_near_it(tokens: Tokens) -> None:
    token, secret = tokens.create("ops", [TokenScope.ADMIN])
    assert secret.startswith(TOKEN_PREFIX)
    found = tokens.find(secret)
    assert found is not None
    assert (found.name, found.scopes) == (token.name, token.scopes)
    for wrong in (
        "",
        TOKEN_PREFIX,
        secret[:-1],
        secret + "x",
        secret.upper(),
        f"x{secret}",
        "é",
        "\udcff",
    ):
        assert tokens.find(wrong) is None
    token_id = secret.split("_")[1]
    assert tokens.find(f"{TOKEN_PREFIX}{token_id}_{'A' * 43}") is None


def test_the_file_holds_no_secret(tokens: Tokens, tmp_path: Path) -> None:
    _, secret = tokens.create("ops", [TokenScope.ADMIN])
    random_part = secret.split("_", 2)[2].encode()
    for file in tmp_path.iterdir():
        assert secret.encode() not in file.read_bytes()
        assert random_part not in file.read_bytes()


def test_a_token_is_worthless_from_its_end_on(tokens: Tokens, clock: Clock) -> None:
    _, secret = tokens.create("ops", [TokenScope.ADMIN], expires_us=clock.now_us + MINUTE_US)
    clock.now_us += MINUTE_US - 1
    assert tokens.find(secret) is not None
    clock.now_us += 1
    assert tokens.find(secret) is None


def test_a_revoked_token_is_worthless_and_its_name_free(tokens: Tokens) -> None:
    _, old = tokens.create("ops", [TokenScope.ADMIN])
    tokens.revoke("ops")
    assert tokens.find(old) is None
    assert tokens.tokens() == []
    _, new = tokens.create("ops", [TokenScope.ADMIN])
    assert tokens.find(old) is None
    assert tokens.find(new) is not None


def test_last_use_is_kept_to_the_minute(tokens: Tokens, clock: Clock) -> None:
    _, secret = tokens.create("ops", [TokenScope.ADMIN])
    assert tokens.tokens()[0].used_us is None
    first = clock.now_us
    tokens.find(secret)
    clock.now_us += MINUTE_US - 1
    tokens.find(secret)
    assert tokens.tokens()[0].used_us == first
    clock.now_us += 1
    tokens.find(secret)
    assert tokens.tokens()[0].used_us == first + MINUTE_US


def test_a_disk_that_cannot_be_written_keeps_nobody_out(tokens: Tokens) -> None:
    _, secret = tokens.create("ops", [TokenScope.ADMIN])
    tokens._db.execute("PRAGMA query_only = 1")
    assert tokens.find(secret) is not None
    tokens._db.execute("PRAGMA query_only = 0")
    assert tokens.tokens()[0].used_us is None


def test_the_first_token_is_an_admin_so_that_nobody_is_locked_out(
    tokens: Tokens, clock: Clock
) -> None:
    with pytest.raises(TokenError, match="scope 'admin' first"):
        tokens.create("feed", [TokenScope.PUBLISH])
    tokens.create("ops", [TokenScope.ADMIN], expires_us=clock.now_us + MINUTE_US)
    tokens.create("feed", [TokenScope.PUBLISH])
    clock.now_us += MINUTE_US
    with pytest.raises(TokenError, match="scope 'admin' first"):
        tokens.create("other", [TokenScope.PUBLISH])


@pytest.mark.parametrize(
    ("name", "scopes", "subscriptions", "message"),
    [
        ("", ["admin"], [], "is no name"),
        ("a b", ["admin"], [], "is no name"),
        ("a/b", ["admin"], [], "is no name"),
        ("ops", [], [], "has a scope"),
        ("ann", ["admin", "subscribe"], [], "names subscriptions"),
        ("ann", ["admin"], ["sub_1"], "names subscriptions"),
        ("ann", ["admin", "subscribe"], ["sub_1 sub_2"], "no space"),
    ],
)
def test_a_token_that_makes_no_sense_is_refused(
    tokens: Tokens, name: str, scopes: list[str], subscriptions: list[str], message: str
) -> None:
    with pytest.raises(TokenError, match=message):
        tokens.create(name, map(TokenScope, scopes), subscriptions=subscriptions)


def test_two_tokens_have_two_names(tokens: Tokens) -> None:
    tokens.create("ops", [TokenScope.ADMIN])
    with pytest.raises(TokenError, match="already"):
        tokens.create("ops", [TokenScope.ADMIN])
    with pytest.raises(TokenError, match="no token is called"):
        tokens.revoke("someone")


def test_the_tokens_of_a_broker_are_good_for_a_copy_of_its_data(tmp_path: Path) -> None:
    data, copy = tmp_path / "data", tmp_path / "copy"
    SpoolWriter(data / "spool").close()
    Outbox(data / "outbox.db").close()
    original = Tokens(data / "tokens.db")
    _, secret = original.create("ops", [TokenScope.ADMIN])
    original.close()
    back_up(data, copy)
    copied = Tokens(copy / "tokens.db")
    assert copied.find(secret) is not None
    copied.close()


def test_a_scope_is_narrowed_to_names(tokens: Tokens, tmp_path: Path) -> None:
    tokens.create("ops", [TokenScope.ADMIN])
    made, secret = tokens.create("feed", ["publish:news", "publish:blogs", "subscribe:same"])
    found = tokens.find(secret)
    assert found is not None
    assert (found.streams, found.queries) == ({"news", "blogs"}, {"same"})
    assert made.narrowed_scopes == ["publish:blogs", "publish:news", "subscribe:same"]
    assert found.scopes == {TokenScope.PUBLISH, TokenScope.SUBSCRIBE}


@pytest.mark.parametrize(
    ("scopes", "message"),
    [
        (["publish", "publish:news"], "for all streams"),
        (["admin:news"], "no scope"),
        (["publish:"], "no scope"),
        (["publish:a b"], "no scope"),
        (["root:x"], "not a valid Scope"),
    ],
)
def test_a_narrowed_scope_that_makes_no_sense_is_refused(
    tokens: Tokens, scopes: list[str], message: str
) -> None:
    tokens.create("ops", [TokenScope.ADMIN])
    with pytest.raises(TokenError, match=message):
        tokens.create("feed", scopes)
    with pytest.raises(TokenError, match="names no subscriptions"):
        tokens.create("ann", ["subscribe:same"], subscriptions=["sub_1"])


def test_tokens_of_an_earlier_format_are_as_wide_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "tokens.db"
    old = Tokens(path)
    _, secret = old.create("ops", [TokenScope.ADMIN, TokenScope.PUBLISH])
    old._db.executescript(
        "ALTER TABLE token DROP COLUMN streams; ALTER TABLE token DROP COLUMN queries;"
        "PRAGMA user_version = 1"
    )
    old.close()
    new = Tokens(path)
    found = new.find(secret)
    assert found is not None
    assert found.narrowed_scopes == ["admin", "publish"]
    new.close()
