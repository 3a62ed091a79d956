"""The store of executors that do not see the broker's data: directories, and S3's protocol."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.cluster_process import QUERIES, document_line
from support.object_store import S3Server, s3_server

import xscl
from broker.documents.disk import Disk
from broker.documents.document import parse_document_line
from broker.documents.ingest import Ingest
from broker.documents.spool import Spool, SpoolWriter
from broker.matching.engine import Engine, RegisteredQuery
from broker.pipeline.evaluation import PlanStore, evaluated_slices, read_witnesses
from broker.pipeline.outbox import Outbox
from broker.pipeline.shards import Join, ShardTask, Tasks, carry_out
from broker.pipeline.slices import slice_segments
from broker.pipeline.steps import Pipeline
from broker.pipeline.store.objects import Objects, StoreError, StorePlace
from broker.pipeline.store.packs import PackWriter
from broker.pipeline.store.runs import RunStore
from broker.settings.storeaddress import parse_address
from joins import Processor
from joins.shards.limits import ShardLimits
from joins.shards.orders import Answer

LATENESS_US = 24 * 3600 * 1_000_000
DOCUMENTS = 120
BATCH = 30


@pytest.fixture(scope="module")
def s3() -> Iterator[S3Server]:
    with s3_server() as server:
        yield server


@pytest.fixture(params=["directory", "s3"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> StorePlace:
    if request.param == "directory":
        return StorePlace.of(tmp_path / "store").below("broker")
    server: S3Server = request.getfixturevalue("s3")
    return StorePlace(server.address).below(tmp_path.name)


def content(objects: Objects, name: str) -> bytes:
    found: bytes = objects.get(name).to_pybytes()
    return found


def test_an_object_is_there_until_it_is_removed(place: StorePlace) -> None:
    objects = Objects(place)
    objects.create()
    objects.put_all((f"n{i}", lambda file, i=i: file.write(b"%d" % i)) for i in range(40))
    assert len(objects.names()) == 40
    assert [content(objects, f"n{i}") for i in range(40)] == [b"%d" % i for i in range(40)]
    objects.remove([f"n{i}" for i in range(1, 40)] + ["nothing"])
    assert objects.names() == ["n0"]
    with pytest.raises(FileNotFoundError):
        objects.get("n1")
    objects.probe()
    assert objects.names() == ["n0"]
    Objects(place.parent).remove_folders([place.name, "nothing"])
    assert objects.names() == []


def test_a_run_takes_the_place_of_the_one_before(place: StorePlace) -> None:
    rows = pa.table({"n": [1, 2]})
    first, second = (RunStore(place.below(name)) for name in ("first", "second"))
    first.put("piece", rows)
    first.put_value("value", {1: "a"})
    assert first.get_value("value") == {1: "a"}
    second.put_all({"one": rows, "two": rows.slice(1)})
    assert second.get("two") == rows.slice(1)
    assert Objects(place).names() == ["second"]
    with pytest.raises(FileNotFoundError):
        first.get("piece")


def test_what_cannot_be_written_is_tried_again_and_then_said(tmp_path: Path) -> None:
    objects, attempts = Objects(StorePlace.of(tmp_path), [0, 0]), []

    def write(file: Any) -> None:
        attempts.append(1)
        if len(attempts) < 3:
            raise OSError("not now")
        file.write(b"x")

    objects.put("name", write)
    assert (content(objects, "name"), len(attempts)) == (b"x", 3)
    with pytest.raises(StoreError, match=f"{tmp_path}.*cannot be used"):
        Objects(StorePlace.of(tmp_path).below("missing"), [0]).put("name", lambda file: None)


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("s3://key:secret@bucket/run", "credentials"),
        ("s3://bucket/run?secret_key=secret", "secret_key"),
        ("gs://bucket/run?region=secret", "region"),
        ("http://secret.example.org/", "s3://BUCKET"),
        ("somewhere", "s3://BUCKET"),
    ],
)
def test_an_address_has_no_credentials(address: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as raised:
        parse_address(address)
    assert "secret" not in str(raised.value).replace("secret_key", "")


class Hidden:
    """A broker whose tasks are carried out while the directory of its data is somewhere else."""

    def __init__(self, directory: Path, place: StorePlace) -> None:
        self.data = directory / "data"
        self.data.mkdir(parents=True)
        self.place = place
        self.outbox = Outbox(self.data / "outbox.db", now_us=lambda: 0)
        self.writer = SpoolWriter(self.data / "spool", Disk(is_durable=False))
        self.packs = PackWriter(place.below("documents").below("run"), self.data / "plans")
        self.pipeline = self.restarted()

    def restarted(self, shards: int = 3) -> Pipeline:
        limits = ShardLimits(pieces=2, looked_every=1)
        join = Join(LATENESS_US, shards, limits=limits)
        tasks = Tasks(self.carry_out, self.place.below("shards"))
        return pipeline_of(self.data, self.outbox, lambda: join.processor(tasks))

    @contextmanager
    def hidden(self) -> Iterator[None]:
        elsewhere = self.data.with_name("elsewhere")
        self.data.rename(elsewhere)
        try:
            yield
        finally:
            elsewhere.rename(self.data)

    def carry_out(self, tasks: Sequence[ShardTask]) -> list[Answer]:
        with self.hidden():
            return [carry_out(pickle.loads(pickle.dumps(task))) for task in tasks]

    def step(self) -> None:
        """Evaluate what has been accepted, and join it."""
        spool, plans = Spool(self.data / "spool"), self.data / "plans"
        parts = self.packs.put(slice_segments(spool, self.pipeline.through, spool.last, 2))
        with self.hidden():
            place = self.packs.place
            sent = (evaluated_slices(part, plans, 2, packs=place) for part in parts)
            found = list(chain.from_iterable(sent))
        self.pipeline.step(read_witnesses(pa.Table.from_batches(found)))

    def contents(self) -> list[str]:
        return sorted(match.line for match in self.outbox.matches.find(limit=1 << 40))

    def close(self) -> None:
        self.outbox.close()
        self.writer.close()


def pipeline_of(data: Path, outbox: Outbox, processor: Any) -> Pipeline:
    queries = [RegisteredQuery(xscl.parse(text, id=name)[0]) for name, text in QUERIES.items()]

    def engine(version: int) -> Engine:
        found: Processor | None = processor()
        return Engine(queries, lateness_us=LATENESS_US, processor=found)

    pipeline = Pipeline(Spool(data / "spool"), outbox, engine, PlanStore(data / "plans"))
    pipeline.recover(1)
    return pipeline


def accept(writer: SpoolWriter, first: int, stop: int) -> None:
    ingest = Ingest(writer, dedup_horizon_us=None)
    for start in range(first, stop, 10):
        lines = [document_line(number) for number in range(start, min(stop, start + 10))]
        ingest.append([parse_document_line(each.encode()) for each in lines], registry_version=1)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Return the match lines of one engine that nothing is spread of."""
    data = tmp_path_factory.mktemp("expected")
    with (
        closing(Outbox(data / "outbox.db", now_us=lambda: 0)) as outbox,
        closing(SpoolWriter(data / "spool", Disk(is_durable=False))) as writer,
    ):
        accept(writer, 0, DOCUMENTS)
        list(pipeline_of(data, outbox, lambda: None).drain())
        return sorted(match.line for match in outbox.matches.find(limit=1 << 40))


def test_tasks_that_see_the_store_alone_find_the_same(
    tmp_path: Path, place: StorePlace, expected: list[str]
) -> None:
    with closing(Hidden(tmp_path, place)) as broker:
        for start in range(0, DOCUMENTS, BATCH):
            accept(broker.writer, start, start + BATCH)
            broker.step()
            if start == BATCH:
                broker.pipeline = broker.restarted(shards=2)
                broker.packs = PackWriter(
                    place.below("documents").below("next"), broker.data / "plans"
                )
        assert broker.contents() == expected != []
        kept = Objects(broker.packs.place).names()
        assert sorted({Path(name).suffix for name in kept}) == [".pack", ".plan", ".version"]
        # Of two tasks, in the last batch alone.
        assert len(kept) == 4
        assert [len(Objects(place.below(each)).names()) for each in ("documents", "shards")] == [
            1,
            1,
        ]


def test_a_store_that_is_gone_loses_nothing(tmp_path: Path, expected: list[str]) -> None:
    with s3_server() as server, closing(Hidden(tmp_path, StorePlace(server.address))) as broker:
        accept(broker.writer, 0, BATCH)
        broker.step()
        accept(broker.writer, BATCH, DOCUMENTS)
        broker.packs = PackWriter(broker.packs.place, broker.data / "plans", waits_s=())
        server.stop()
        before = broker.pipeline.through
        with pytest.raises(StoreError, match=r"s3://bucket.*cannot be used"):
            broker.step()
        server.start()
        assert broker.pipeline.through == before
        broker.pipeline = broker.restarted()
        broker.step()
        assert broker.contents() == expected
