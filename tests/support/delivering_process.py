"""A process that delivers from a data directory until it is killed.

Run as `python -m support.delivering_process DIRECTORY SMTP_PORT`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from broker.delivery.letter import Letters, Sender
from broker.delivery.mail import MailChannel
from broker.delivery.webhook import WebhookChannel
from broker.delivery.worker import DeliveryWorker
from broker.pipeline.thisprocess import set_up_process
from broker.registry.subscription import DestinationKind
from support.subscribers import FAST, LOOPBACK, broker_in


async def main(directory: Path, smtp_port: int) -> None:
    sender = Sender("broker@xscl.example")
    with broker_in(directory) as broker:
        channels = {
            DestinationKind.WEBHOOK: WebhookChannel(allowed=LOOPBACK, allow_http=True, timeout_s=1),
            DestinationKind.EMAIL: MailChannel(
                Letters(sender), host="127.0.0.1", port=smtp_port, sender=sender.address
            ),
        }
        worker = DeliveryWorker(
            broker.outbox, broker.registry, channels, policy=FAST, poll_s=0.02, lease_s=2
        )
        await worker.run()


if __name__ == "__main__":
    set_up_process()
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
