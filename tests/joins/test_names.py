"""Names are found many at a time as they are one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from joins.sequences.planning import names
from joins.sequences.planning.names import StreamNames, hashes_of


def known(count: int) -> StreamNames:
    found = StreamNames()
    assert [found.add(f"stream {i}") for i in range(count)] == [*range(count)]
    return found


@pytest.mark.parametrize("count", [0, 1, 300, 5_000])
@pytest.mark.parametrize("asked", [1, 256, 257, 2_000])
def test_many_names_are_found_as_one_is(count: int, asked: int) -> None:
    streams = known(count)
    wanted = [f"stream {i * 7 % 6_000}" for i in range(asked)]
    expected = [-1 if (number := streams.get(name)) is None else number for name in wanted]
    assert streams.find(pa.array(wanted)).tolist() == expected


def test_names_that_come_later_are_found() -> None:
    streams = known(400)
    wanted = pa.array([f"stream {i}" for i in range(500)])
    assert streams.find(wanted).tolist() == [*range(400), *[-1] * 100]
    assert streams.add("stream 450") == 400
    assert streams.find(wanted)[450] == 400


def test_names_of_equal_hashes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "hashes_of", lambda found: np.zeros(len(found), np.uint64))
    streams = known(2_000)
    wanted = [f"stream {i}" for i in range(3_000)]
    assert streams.find(pa.array(wanted)).tolist() == [*range(2_000), *[-1] * 1_000]


def test_names_are_hashed_by_their_ends_alone() -> None:
    texts = ["", "a", "b", "ab", "stream", "12345678", "x12345678", "1234567890123456", "y" * 40]
    alone = [hashes_of(pa.array([text]))[0] for text in texts]
    assert len({*alone}) == len(texts)
    assert hashes_of(pa.array(["before", *texts, "behind"])[1:-1]).tolist() == alone
