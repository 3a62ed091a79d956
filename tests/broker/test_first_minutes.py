"""What a newcomer types first works as it stands, also when it is pasted at once."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.ports import free_ports
from support.verbs import xscl

from broker.settings.directory import Claim

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


@pytest.fixture
def settings(tmp_path: Path, unused_tcp_port: int) -> Path:
    (tmp_path / "d").mkdir()
    path = tmp_path / "xscl.toml"
    path.write_text(f"data = 'd'\n[http]\nport = {unused_tcp_port}\n")
    return path


class _Answering(BaseHTTPRequestHandler):
    """Answers as a broker: starting, then ready."""

    answers: list[tuple[int, bytes]]

    def do_GET(self) -> None:
        status, body = self.answers.pop(0)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


@pytest.fixture
def serve(unused_tcp_port: int) -> Iterator[Callable[..., None]]:
    """Have something listen at the port of the settings, and answer so."""
    servers = []

    def begin(*answers: tuple[int, bytes]) -> None:
        if not servers:
            handler = type("Handler", (_Answering,), {"answers": list(answers)})
            servers.append(HTTPServer(("127.0.0.1", unused_tcp_port), handler))
            threading.Thread(target=servers[0].serve_forever, args=(0.02,)).start()

    yield begin
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_verb_waits_for_a_broker_that_has_only_its_data_directory(
    settings: Path, serve: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it has imported what it needs, seconds before it takes the spool."""
    monkeypatch.setattr(
        "broker.cli.connection.time.sleep", lambda _: serve((200, b'{"queries": []}'))
    )
    with contextlib.ExitStack() as stack:
        stack.callback(Claim(settings.parent / "d").release)
        result = xscl("--config", str(settings), "list")
    assert result.exit_code == 0, result.output
    assert "does not listen yet; waiting for it" in result.stderr


def test_a_broker_takes_its_directory_before_it_imports_what_takes_long(tmp_path: Path) -> None:
    (tmp_path / "xscl.toml").write_text('data = "data"\n')
    script = """
import sys
from pathlib import Path
from broker.cli import main, run
from broker.settings.directory import is_in_use

def look(*_, **__):
    slow = {"aiohttp", "pyspark", "duckdb", "lxml.etree"}
    print(is_in_use(Path("data")), slow & set(sys.modules))
    sys.exit()

run._run = look
main(["run"])
"""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "True set()\n", done.stderr


def clock_that(sleeps: Callable[[float], object]) -> SimpleNamespace:
    """Return a module `time` for the module under test alone: other threads may sleep meanwhile."""
    return SimpleNamespace(sleep=sleeps, monotonic=time.monotonic)


def test_wait_ends_when_the_broker_is_ready(
    settings: Path, serve: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    ready = (200, b'{"status": "ready"}')
    starting = (503, b'{"detail": "the broker is starting"}')
    monkeypatch.setattr(
        "broker.cli.wait.time", clock_that(lambda _: serve(starting, starting, ready))
    )
    result = xscl("--config", str(settings), "wait")
    assert result.exit_code == 0, result.output
    said = re.sub(r"http://\S+", "URL", result.stderr).splitlines()
    assert said == [
        "waiting: no broker answers at URL yet",
        "waiting: the broker is starting",
        "the broker at URL is ready",
    ]


def test_wait_does_not_wait_for_a_broker_that_has_ended(
    settings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = Claim(settings.parent / "d")
    monkeypatch.setattr("broker.cli.wait.time", clock_that(lambda _: claim.release()))
    result = xscl("--config", str(settings), "wait")
    assert result.exit_code == 1
    assert "the broker has ended" in result.stderr


def test_wait_gives_up_in_time_and_knows_a_broker(
    settings: Path, serve: Callable[..., None]
) -> None:
    result = xscl("--config", str(settings), "wait", "--timeout", "0")
    assert result.exit_code == 3
    assert "no broker answers" in result.stderr
    serve((200, b"<html>hello</html>"))
    result = xscl("--config", str(settings), "wait", "--timeout", "0")
    assert result.exit_code == 3
    assert "is no XSCL broker" in result.stderr


def own_broker() -> str:
    """The block of the README that is typed by hand."""
    text = (ROOT / "README.md").read_text()
    (block,) = re.findall(r"((?:^    .*\n)+)", text[text.index("The same by hand") :], re.M)[:1]
    return re.sub("^    ", "", block, flags=re.M)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_readmes_block_pasted_at_once_ends_in_a_match(tmp_path: Path) -> None:
    """It needs no Java of the machine, and imports nothing from where it stands."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for name in ("broker", "feeds", "joins", "xscl", "pyspark"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('imported from where it stands')")
    bare = tmp_path / "bin"
    bare.mkdir()
    for tool in ("bash", "chmod", "ls", "readlink", "sed"):  # Hadoop calls some of these
        (bare / tool).symlink_to(shutil.which(tool) or tool)
    feeds, hook, api = map(str, free_ports(3))
    block = own_broker().replace("8400", feeds).replace("8401", hook)
    # Only the ports are others: several tests run at a time.
    assert block.startswith("xscl init --loopback")
    first, _, rest = block.partition("\n")
    script = f"{first}\nsed -i 's/^# port = 8420/port = {api}/' xscl.toml\n{rest}"
    process = subprocess.Popen(
        # What fails, and a broker that ends, ends all of it, and so the output.
        ["bash", "-e", "-c", f"trap 'kill 0' EXIT\n{script}\nwait %3"],
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("XSCL_")},
            "PATH": f"{BIN}:{bare}",
            "JAVA_HOME": "",
            "JAVA_TOOL_OPTIONS": "",  # the archive of classes is of another Java
        },
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    seen = []
    try:
        for line in process.stdout:
            seen.append(line)
            if line.startswith("webhook: same-story: "):
                break
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert seen[-1].startswith("webhook: same-story: "), "".join(seen)


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.timeout(600)
def test_quickstart_leaves_a_broker_a_query_two_feeds_and_a_printed_match(tmp_path: Path) -> None:
    place = tmp_path / "mine"
    done = subprocess.run(
        [BIN / "xscl", "quickstart", place], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    numbers = [int(number) for number in re.findall(r"kill (\d+) (\d+)", done.stdout)[0]]
    try:
        assert "= same-story  2 h 55 min apart" in done.stdout
        assert "joined   first/title = second/title" in done.stdout
        config = ["--config", str(place / "xscl.toml")]
        listed = xscl(*config, "list", "--format", "csv")
        assert listed.stdout.splitlines()[1].startswith("same-story,active,")
        feeds = xscl(*config, "feeds", "list", "--format", "csv").stdout
        assert [Path(row.split(",")[0]).name for row in feeds.splitlines()[1:]] == [
            "courier.xml",
            "wire.xml",
        ]
        again = xscl("quickstart", str(place))
        assert again.exit_code == 1
        assert "is not empty" in again.stderr
    finally:
        for number in numbers:
            os.kill(number, signal.SIGTERM)


def test_a_quickstart_that_fails_leaves_nothing_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def start(*arguments: object, **named: object) -> subprocess.Popen[bytes]:
        started.append(popen(*arguments, **named))  # type: ignore[call-overload]
        return started[-1]

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("broker.cli.quickstart.subprocess.Popen", start)
    monkeypatch.setattr("broker.cli.quickstart.until_ready", fail)
    assert xscl("quickstart", str(tmp_path / "mine")).exit_code != 0
    assert [process.wait(30) for process in started] != []
