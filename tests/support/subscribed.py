"""Every subscription that a registry has ever had."""

from __future__ import annotations

from broker.registry.queries import Registry
from broker.registry.subscription import Subscription

__all__ = ["every_subscription"]


def every_subscription(registry: Registry) -> list[Subscription]:
    """Return subscriptions, also removed ones, in the order of their last change."""
    rows = registry._file.rows("SELECT id FROM subscription ORDER BY revision, id")
    return [registry.subscriptions.get(id_) for (id_,) in rows]
