"""A broker as a process of its own, as an operator starts it, for tests that need a real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

START_WAIT_S = 180.0


class Broker:
    """`xscl run` on a directory.  It may be killed and started again."""

    def __init__(self, directory: Path, settings: str = "") -> None:
        self.directory = directory
        self.log = directory / "broker.log"
        directory.mkdir(parents=True, exist_ok=True)
        self.configure(settings)
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    def configure(self, settings: str) -> None:
        """Write the settings that hold from the next start on."""
        (self.directory / "xscl.toml").write_text(
            'data = "data"\nallow_networks = ["127.0.0.0/8"]\n'
            f"{settings}\n[http]\nport = 0\n[webhooks]\nallow_http = true\n"
        )

    def start(self) -> None:
        """Start it and wait until it takes and evaluates documents."""
        address = self.directory / "data" / "address"
        address.unlink(missing_ok=True)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(),
                cwd=self.directory,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                env={**os.environ, "XSCL_CONFIG": "xscl.toml"},
            )
        self.wait_for(lambda: address.exists() and address.read_text().endswith("\n"))
        self.url = address.read_text().strip()
        self.wait_for(self._is_ready)

    def command(self) -> list[str]:
        """Return what starts it."""
        return [sys.executable, "-m", "broker.cli", "run", "--until-eof"]

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def stop(self) -> int:
        """Ask it to end, and return its exit code."""
        if self._process is None:
            return 0
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
        return self._process.wait(90)

    def wait_for(self, condition: Any, wait_s: float = START_WAIT_S) -> None:
        """Wait until `condition()` holds; fail with the broker's log if it does not in time."""
        assert self._process is not None
        deadline = time.monotonic() + wait_s
        while not condition():
            assert self._process.poll() is None, self.log.read_text()[-3000:]
            assert time.monotonic() < deadline, self.log.read_text()[-3000:]
            time.sleep(0.05)

    @property
    def headers(self) -> dict[str, str]:
        """What admits a request: the token of the data directory's owner."""
        token = (self.directory / "data" / "admin-token").read_text().strip()
        return {"Authorization": f"Bearer {token}"}

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Make one request of the API; bytes are sent as they are, else as JSON."""
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        kind = "text/plain" if isinstance(body, bytes) else "application/json"
        request = urllib.request.Request(
            f"{self.url}{path}",
            data=data,
            method=method,
            headers={"Content-Type": kind, **self.headers},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def text(self, path: str) -> str:
        """Get what is not JSON."""
        request = urllib.request.Request(f"{self.url}{path}", headers=self.headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return str(answer.read(), "utf-8")

    def publish(self, stream: str, lines: list[dict[str, str]]) -> Any:
        """Give document lines to a stream."""
        body = "\n".join(json.dumps({"stream": stream, **line}) for line in lines).encode()
        request = urllib.request.Request(
            f"{self.url}/v1/streams/{stream}/documents",
            data=body,
            headers={"Content-Type": "application/x-ndjson", **self.headers},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read())

    def _is_ready(self) -> bool:
        try:
            return bool(self.call("GET", "/readyz"))
        except urllib.error.URLError:
            return False
