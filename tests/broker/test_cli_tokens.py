from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from click.testing import Result
from support.served_room import ServedRoom
from support.verbs import xscl

from broker.registry.queries import Registry
from broker.registry.subscription import Destination
from broker.registry.tokens import Tokens, TokenScope
from xscl.client import Client, RefusedError

SAME = "news//item->a FOLLOWED BY {a/title = b/title, 2 days} news//item->b"


@pytest.fixture
def tokens(tmp_path: Path) -> Iterator[Tokens]:
    tokens = Tokens(tmp_path / "data" / "tokens.db")
    yield tokens
    tokens.close()


@pytest.fixture
def served(tmp_path: Path, tokens: Tokens) -> Iterator[ServedRoom]:
    served = ServedRoom(tmp_path / "data", tokens)
    yield served
    served.close()


@pytest.fixture
def settings(tmp_path: Path, unused_tcp_port: int) -> Path:
    """Settings of a broker that does not run."""
    path = tmp_path / "xscl.toml"
    path.write_text(f'data = "data"\n[http]\nport = {unused_tcp_port}\n')
    return path


def test_tokens_are_made_and_revoked_where_no_broker_runs(settings: Path) -> None:
    made = xscl("--config", str(settings), "tokens", "create", "ops", "--scope", "admin")
    assert made.exit_code == 0, made.stderr
    secret = made.stdout.strip()
    assert secret.startswith("xscl_")
    assert secret not in made.stderr
    assert str(settings.parent / "data") in made.stderr
    kept = Tokens(settings.parent / "data" / "tokens.db")
    assert kept.find(secret) is not None
    listed = xscl("--config", str(settings), "tokens", "list", "--format", "json")
    (row,) = json.loads(listed.stdout)
    assert (row["name"], row["scopes"], row["expires"]) == ("ops", ["admin"], None)
    assert "xscl_" not in listed.stdout
    assert xscl("--config", str(settings), "tokens", "revoke", "ops").exit_code == 0
    assert kept.find(secret) is None
    kept.close()


def test_what_cannot_be_made_is_said(settings: Path) -> None:
    def create(*arguments: str) -> Result:
        return xscl("--config", str(settings), "tokens", "create", *arguments)

    refused = create("feed", "--scope", "publish")
    assert refused.exit_code == 1
    assert "make a token with the scope 'admin' first" in refused.stderr
    assert create("ops", "--scope", "admin", "--expires", "90 days").exit_code == 0
    for arguments, message in (
        (("ops", "--scope", "admin"), "called 'ops' already"),
        (("ann", "--scope", "subscribe"), "names subscriptions"),
        (("ann", "--scope", "subscribe", "--subscription", "sub_x"), "no subscription 'sub_x'"),
    ):
        refused = create(*arguments)
        assert refused.exit_code == 1
        assert message in refused.stderr
        assert refused.stdout == ""
    for duration in ("soon", "inf", "-1 day", "99999999 weeks"):
        assert create("late", "--scope", "admin", f"--expires={duration}").exit_code == 2, duration
    missing = xscl("--config", str(settings), "tokens", "revoke", "nobody")
    assert missing.exit_code == 1
    assert "no token is called 'nobody'" in missing.stderr


def test_a_subscriber_s_token_names_subscriptions_of_the_data(settings: Path) -> None:
    registry = Registry(settings.parent / "data" / "registry.db")
    registry.register("same", SAME, version="1", point=0)
    mine = registry.subscribe("same", Destination.parse("pull"), point=0).id
    registry.close()
    assert (
        xscl("--config", str(settings), "tokens", "create", "o", "--scope", "admin").exit_code == 0
    )
    arguments = ("create", "ann", "--scope", "subscribe", "--subscription", mine)
    assert xscl("--config", str(settings), "tokens", *arguments).exit_code == 0
    listed = xscl("--config", str(settings), "tokens", "list")
    assert mine in listed.stdout


def test_a_broker_that_is_named_is_asked_and_no_other_place(unused_tcp_port: int) -> None:
    result = xscl("--broker", f"http://127.0.0.1:{unused_tcp_port}", "tokens", "list")
    assert result.exit_code == 3


def test_verbs_need_a_token(served: ServedRoom, tokens: Tokens, tmp_path: Path) -> None:
    _, secret = tokens.create("ops", [TokenScope.ADMIN])
    closed = xscl("--broker", served.url, "list")
    assert closed.exit_code == 1
    assert "this needs a token" in closed.stderr
    assert "--token, XSCL_TOKEN" in closed.stderr
    assert xscl("--broker", served.url, "--token", secret, "list").exit_code == 0
    assert xscl("--broker", served.url, "list", XSCL_TOKEN=secret).exit_code == 0
    wrong = xscl("--broker", served.url, "--token", "xscl_wrong", "list")
    assert wrong.exit_code == 1
    assert "not, or no longer, one of this broker's" in wrong.stderr
    assert "xscl_wrong" not in wrong.stderr
    listed = xscl("--broker", served.url, "--token", secret, "tokens", "list", "--format", "csv")
    assert listed.stdout.splitlines()[1].startswith("ops,admin,,,20")
    revoked = xscl("--broker", served.url, "--token", secret, "tokens", "revoke", "ops")
    assert revoked.exit_code == 0
    assert xscl("--broker", served.url, "--token", secret, "list").exit_code == 1


def test_who_lost_the_last_token_makes_one_on_the_data_of_the_running_broker(
    served: ServedRoom, tokens: Tokens, tmp_path: Path
) -> None:
    tokens.create("lost", [TokenScope.ADMIN])
    path = tmp_path / "xscl.toml"
    path.write_text(f'data = "data"\n[http]\nport = {served.url.rpartition(":")[2]}\n')
    asked = xscl("--config", str(path), "tokens", "create", "ops", "--scope", "admin")
    assert asked.exit_code == 1
    made = xscl("--config", str(path), "tokens", "create", "ops", "--scope", "admin", "--local")
    assert made.exit_code == 0
    assert xscl("--config", str(path), "--token", made.stdout.strip(), "list").exit_code == 0


def test_the_token_file_of_the_settings_is_for_the_broker_of_the_settings(
    served: ServedRoom, tokens: Tokens, tmp_path: Path
) -> None:
    _, secret = tokens.create("ops", [TokenScope.ADMIN])
    (tmp_path / "admin-token").write_text(secret + "\n")
    path = tmp_path / "xscl.toml"
    port = served.url.rpartition(":")[2]
    path.write_text(f'data = "data"\n[http]\nport = {port}\ntoken_file = "admin-token"\n')
    assert xscl("--config", str(path), "list").exit_code == 0
    # Whoever names another broker does not send it this one's token.
    assert xscl("--config", str(path), "--broker", served.url, "list").exit_code == 1
    (tmp_path / "admin-token").unlink()
    missing = xscl("--config", str(path), "list")
    assert missing.exit_code == 78
    assert "http.token_file" in missing.stderr


@pytest.mark.parametrize("secret", ["xscl_two\nlines", "xscl_ä", "xscl_a b"])
def test_a_token_that_can_be_none_is_not_shown(secret: str, tmp_path: Path) -> None:
    result = xscl("--token", secret, "list")
    assert result.exit_code == 2
    assert "--token gives is not a token" in result.stderr
    assert secret not in result.stderr
    (tmp_path / "token").write_text(secret)
    (tmp_path / "xscl.toml").write_text('[http]\ntoken_file = "token"\n')
    result = xscl("--config", str(tmp_path / "xscl.toml"), "list")
    assert result.exit_code == 2
    assert secret not in result.stderr


def test_a_redirection_does_not_carry_the_token_along() -> None:
    seen: list[tuple[str, str | None]] = []

    class Redirecting(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append((self.path, self.headers.get("Authorization")))
            self.send_response(302 if self.path == "/v1/queries" else 404)
            self.send_header("Location", f"http://localhost:{server.server_port}/elsewhere")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    server = HTTPServer(("127.0.0.1", 0), Redirecting)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        xscl("--broker", f"http://127.0.0.1:{server.server_port}", "--token", "xscl_1", "list")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert seen == [("/v1/queries", "Bearer xscl_1"), ("/elsewhere", None)]


def test_the_python_client_gives_its_token(served: ServedRoom, tokens: Tokens) -> None:
    _, secret = tokens.create("ops", [TokenScope.ADMIN])
    with Client(served.url, token=secret) as client:
        client.register("same", SAME)
        mine = client.subscribe("same").id
        other = client.subscribe("same").id
    _, own = tokens.create("ann", [TokenScope.SUBSCRIBE], subscriptions=[mine])
    with Client(served.url, token=own) as client:
        assert [each.id for each in client.subscriptions()] == [mine]
        assert list(client.matches(mine, after=0, follow=False)) == []
        for refused in (
            lambda: client.queries(),
            lambda: client.publish("news", "<item/>"),
            lambda: client.unsubscribe(mine),
            lambda: list(client.matches(other, after=0, follow=False)),
        ):
            with pytest.raises(RefusedError) as caught:
                refused()
            assert caught.value.status in (403, 404)
            assert own not in str(caught.value)
    with Client(served.url) as client:
        with pytest.raises(RefusedError, match="needs a token") as unknown:
            client.queries()
        assert unknown.value.status == 401
        assert "xscl tokens create" in (unknown.value.hint or "")
