"""What is sent where nothing has matched yet looks like a match."""

from __future__ import annotations

import json
from pathlib import Path

from support.subscribers import broker_in

from broker.delivery.sample import sample_attempt


def test_an_invented_match_has_a_value_of_each_of_its_documents(tmp_path: Path) -> None:
    with broker_in(tmp_path) as broker:
        subscription = broker.subscribe("pull")
        [sample] = sample_attempt(subscription, broker.outbox, 3_600_000_000).matches
    line = json.loads(sample.line)
    first, second = line["documents"]
    assert (first["time"], second["time"]) == (line["start"], line["end"])
    [witness] = line["witnesses"]
    assert {name: each["block"] for name, each in witness.items()} == {
        "first/author": 0,
        "second/author": 1,
    }
    assert line["start"] == "1970-01-01T00:00:00Z"
    assert all(each["value"] in line["output"] for each in witness.values())
