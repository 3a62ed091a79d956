"""The store of executors: whether an object can be written there, read and deleted."""

from __future__ import annotations

from collections.abc import Iterator

from broker.operations.checkup.finding import CheckupFinding
from broker.settings.config import Settings

__all__ = ["look_at_store"]


def look_at_store(settings: Settings) -> Iterator[CheckupFinding]:
    """Yield how the store answered to this machine, if the settings name one."""
    from broker.pipeline.store.objects import Objects, StoreError, StorePlace

    address = settings.spark.store
    if not address:
        return
    try:
        Objects(StorePlace(address)).probe()
    except StoreError as error:
        yield CheckupFinding(
            "store",
            str(error),
            "check spark.store, that this machine's credentials may read, write and delete there,"
            " and that executors have them too",
        )
    else:
        yield CheckupFinding("store", f"{address} can be written and read")
