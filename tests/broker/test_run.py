"""`xscl run` as an operator sees it: it stops when told to, and says what it does."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.running_broker import Broker

from broker.documents.document import DocumentLine
from broker.documents.ingest import Ingest
from broker.documents.spool import SpoolWriter

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
SETTINGS = '[log]\nformat = "json"\nlevel = "debug"\n'
SAME = b"S//i->a JOIN {a/t = b/t, 1 day} S//i->b"


pytestmark = pytest.mark.timeout(600)


ONCE_THERE_ARE_SOME = {
    "xscl_late_documents_total",
    "xscl_settled_documents_total",
    "xscl_query_matches_total",
    "xscl_query_budget_spent_ratio",
}
"""Metrics that have a series for each stream or query."""


def metrics(text: str) -> set[str]:
    """Return the names in a text for Prometheus, those of histograms without their suffixes."""
    types = dict(re.findall(r"^# TYPE (\w+) (\w+)$", text, re.MULTILINE))
    samples = re.findall(r"^(\w+)(?:\{[^}]*\})? [-+.\w]+$", text, re.MULTILINE)
    stems = {re.sub(r"_(bucket|sum|count)$", "", name) for name in samples}
    plain = {name for name in samples if types.get(name) in ("counter", "gauge")}
    assert plain | {name for name in stems if types.get(name) == "histogram"} == types.keys()
    return set(types)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    directory = tmp_path_factory.mktemp("broker")
    broker = Broker(directory, SETTINGS)
    # What is not XML is refused over HTTP; the poller's way to the spool is this one.
    spool = SpoolWriter(directory / "data" / "spool")
    line = DocumentLine("S", b"<i><t>x</i>", key="broken")
    Ingest(spool).append([line], arrival_us=1, registry_version=0)
    spool.close()
    broker.start()
    yield broker
    broker.stop()


def dead_letters(broker: Broker) -> list[Any]:
    found: list[Any] = broker.call("GET", "/v1/dead-letters")["dead_letters"]
    return found


def logged(broker: Broker) -> list[Any]:
    return [json.loads(line) for line in broker.log.read_text().splitlines()]


@pytest.mark.spark
@pytest.mark.slow
def test_a_dead_letter_is_accepted_once_more_however_often_it_is_retried(broker: Broker) -> None:
    broker.wait_for(lambda: dead_letters(broker))
    [letter] = dead_letters(broker)
    assert (letter["docid"], letter["key"], letter["xml"]) == (1, "broken", "<i><t>x</i>")
    first = broker.call("POST", "/v1/dead-letters/1/retry")
    again = broker.call("POST", "/v1/dead-letters/1/retry")
    assert (first["outcome"], again["outcome"]) == ("accepted", "duplicate")
    assert first["docid"] == again["docid"] == 2
    broker.wait_for(lambda: len(dead_letters(broker)) == 2)
    assert broker.call("GET", "/v1/documents/2")["key"] == "broken@1"


@pytest.mark.spark
@pytest.mark.slow
def test_the_metrics_of_a_running_broker_are_those_that_are_documented(broker: Broker) -> None:
    row = r"^\| `(xscl_\w+)(?:{[^}]*})?` \|"
    documented = re.findall(row, OPERATIONS.read_text(), re.MULTILINE)
    found = metrics(broker.text("/metrics"))
    assert found <= set(documented)
    assert set(documented) - found <= ONCE_THERE_ARE_SOME
    assert len(documented) == len(set(documented))


@pytest.mark.spark
@pytest.mark.slow
def test_each_stage_of_a_documents_way_is_timed_and_logged(broker: Broker) -> None:
    broker.call("PUT", "/v1/queries/same", SAME)
    broker.publish("S", [{"xml": "<i><t>x</t></i>"}, {"xml": "<i><t>x</t></i>"}])
    broker.wait_for(lambda: broker.call("GET", "/v1/matches?after=0")["matches"])
    counts = dict(re.findall(r"^xscl_(\w+)_count (\d+)$", broker.text("/metrics"), re.MULTILINE))
    assert int(counts["ingest_to_outbox_seconds"]) >= 2
    assert int(counts["ingest_commit_seconds"]) >= 1
    for stage in ("spool_wait", "evaluation", "join", "commit"):
        assert int(counts[f"{stage}_seconds"]) >= 1, stage
    lines = logged(broker)
    assert {"stage": "registry", "query": "same"}.items() <= next(
        line for line in lines if "query" in line
    ).items()
    commits = [line for line in lines if line.get("stage") == "commit"]
    assert sum(line["matches"] for line in commits) == 2
    assert [line["docid"] for line in lines if line.get("stage") == "evaluation"][:1] == [1]


@pytest.mark.spark
@pytest.mark.slow
def test_nothing_that_a_broker_writes_can_be_read_by_others(broker: Broker) -> None:
    data = broker.directory / "data"
    found = [data, *data.rglob("*")]
    assert {"checkpoint", "spark-log", "admin-token"} <= {path.name for path in found}
    # A file that is merged meanwhile is no more.
    assert [path for path in found if path.exists() and path.stat().st_mode & 0o077] == []


@pytest.mark.spark
@pytest.mark.slow
def test_sigterm_finishes_what_was_accepted_and_exits_0(broker: Broker) -> None:
    accepted = broker.publish("S", [{"xml": "<i><t>y</t></i>"} for _ in range(50)])
    assert broker.stop() == 0
    assert [line["message"] for line in logged(broker)][-1] == "stopped"
    spool = SpoolWriter(broker.directory / "data" / "spool")
    assert spool.next_docid == accepted["documents"][-1]["docid"] + 1
    spool.close()


@pytest.mark.slow
def test_a_broker_that_is_still_starting_stops_at_once(tmp_path: Path) -> None:
    (tmp_path / "xscl.toml").write_text('data = "data"\n[http]\nport = 0\n')
    process = subprocess.Popen(
        [sys.executable, "-m", "broker.cli", "--config", str(tmp_path / "xscl.toml"), "run"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if "listening" in line:
            break
    process.send_signal(signal.SIGTERM)
    rest = process.stderr.read()
    assert process.wait() == 0
    assert rest.splitlines() == ["stopping; the batch in hand is finished", "stopped"]
    assert not (tmp_path / "data" / "checkpoint").exists(), "Spark was not waited for"


WAITING = """
import asyncio, sys
from broker.cli.run import _stop_on_signals

async def wait() -> None:
    _stop_on_signals(asyncio.Event(), lambda text: print(text, flush=True))
    print("waiting", flush=True)
    await asyncio.sleep(60)

asyncio.run(wait())
"""


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_second_signal_waits_for_nothing(number: signal.Signals, code: int) -> None:
    process = subprocess.Popen([sys.executable, "-c", WAITING], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "waiting\n"
    process.send_signal(number)
    assert process.stdout.readline().startswith("stopping")
    process.send_signal(number)
    assert process.wait() == code
    process.stdout.close()
