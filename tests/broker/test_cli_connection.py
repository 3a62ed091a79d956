from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.verbs import xscl

from broker.documents.spool import SpoolWriter


class _Refusing(BaseHTTPRequestHandler):
    """Answers everything with one status and body."""

    status = 500
    body = b""

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(self.body)

    do_PUT = do_POST = do_DELETE = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    server = HTTPServer(("127.0.0.1", 0), _Refusing)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_without_a_broker_the_message_says_how_to_start_one(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}"
    result = xscl("--broker", url, "list")
    assert result.exit_code == 3
    assert f"no broker answers at {url}" in result.stderr
    assert "xscl run" in result.stderr
    assert result.stdout == ""


def test_an_address_that_is_none_is_a_wrong_command_line() -> None:
    result = xscl("--broker", "localhost:8420", "list")
    assert result.exit_code == 2
    assert "not an http:// or https:// address" in result.stderr


def test_another_server_is_not_taken_for_a_broker(server: HTTPServer) -> None:
    _Refusing.status, _Refusing.body = 404, b"<html>not here</html>"
    result = xscl("--broker", f"http://127.0.0.1:{server.server_port}", "list")
    assert result.exit_code == 1
    assert "is this the address of an XSCL broker?" in result.stderr


def test_the_details_of_a_problem_are_shown(server: HTTPServer) -> None:
    problem = {"title": "Not Found", "detail": "no query 'q9'", "status": 404}
    _Refusing.status, _Refusing.body = 404, json.dumps(problem).encode()
    result = xscl("--broker", f"http://127.0.0.1:{server.server_port}", "show", "q9")
    assert result.exit_code == 1
    assert result.stderr.strip() == "error: no query 'q9'"


def test_wrong_settings_have_their_own_exit_code(tmp_path: Path) -> None:
    path = tmp_path / "xscl.toml"
    path.write_text("[http]\nprot = 1\n")
    result = xscl("--config", str(path), "list")
    assert result.exit_code == 78
    assert "did you mean 'port'?" in result.stderr


def test_settings_that_are_not_there_are_named(tmp_path: Path) -> None:
    result = xscl("list", XSCL_CONFIG=str(tmp_path / "none.toml"))
    assert result.exit_code == 78
    assert "there is no settings file" in result.stderr
    assert "xscl init" in result.stderr


def test_the_port_of_a_broker_that_took_any_is_read_from_its_data(tmp_path: Path) -> None:
    path = tmp_path / "xscl.toml"
    path.write_text("data = 'd'\n[http]\nport = 0\n")
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "address").write_text("http://127.0.0.1:9\n")
    result = xscl("--config", str(path), "list")
    assert "no broker answers at http://127.0.0.1:9" in result.stderr


def test_a_broker_that_does_not_listen_yet_is_waited_for(
    tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "xscl.toml"
    path.write_text(f"data = 'd'\n[http]\nport = {unused_tcp_port}\n")
    _Refusing.status, _Refusing.body = 200, b'{"queries": []}'
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.closing(SpoolWriter(tmp_path / "d" / "spool")))

        def listen(_: float) -> None:
            server = stack.enter_context(HTTPServer(("127.0.0.1", unused_tcp_port), _Refusing))
            threading.Thread(target=server.handle_request).start()

        # Other threads of the process may sleep meanwhile.
        clock = SimpleNamespace(sleep=listen, monotonic=time.monotonic)
        monkeypatch.setattr("broker.cli.connection.time", clock)
        result = xscl("--config", str(path), "list")
    assert result.exit_code == 0
    assert "does not listen yet; waiting for it" in result.stderr


def test_a_broker_that_listens_elsewhere_than_its_settings_say_is_not_waited_for_forever(
    tmp_path: Path, unused_tcp_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.cli.connection._START_WAIT_S", 0.1)
    path = tmp_path / "xscl.toml"
    path.write_text(f"data = 'd'\n[http]\nport = {unused_tcp_port}\n")
    with contextlib.closing(SpoolWriter(tmp_path / "d" / "spool")):
        result = xscl("--config", str(path), "list")
    assert result.exit_code == 3
    assert "does not listen yet; waiting for it" in result.stderr
    assert "has `http` in xscl.toml changed since it started?" in result.stderr
