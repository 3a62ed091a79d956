from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.subscribers import IMPATIENT, broker_in, found, receiving, until

from broker.delivery.apprise import AppriseChannel
from broker.delivery.letter import Letters, Sender
from broker.delivery.worker import DeliveryEventKind as Event
from broker.registry.subscription import DestinationKind

# Apprise imports what Python 3.13 no longer has, where it is still there.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


async def test_a_match_reaches_a_service_of_apprise_and_a_failure_is_tried_again(
    tmp_path: Path,
) -> None:
    channels = {DestinationKind.APPRISE: AppriseChannel(Letters(Sender("broker@xscl.example")))}
    with broker_in(tmp_path) as broker:
        async with receiving() as receiver:
            receiver.answers = [500]
            broker.subscribe(receiver.url.replace("http://", "apprise:json://"))
            broker.subscribe("apprise:nonsense")
            broker.commit(found(1))
            async with broker.delivering(channels=channels, policy=IMPATIENT):
                _, received = await receiver.wait_for(2)
                await until(lambda: any(event.kind is Event.DEAD for event in broker.events))
    sent = json.loads(received.body)
    assert sent["title"] == "Q1: Story 2"
    assert "https://one.example/1" in sent["message"]
