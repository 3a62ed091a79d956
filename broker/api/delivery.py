"""Put delivery's part into the broker's HTTP application."""

from __future__ import annotations

from aiohttp import web

from broker.api import consumers, deliveries, links, pull
from broker.api.pickup import PICKUP, Pickup

__all__ = ["ROUTES", "install"]

ROUTES = [*pull.ROUTES, *consumers.ROUTES, *deliveries.ROUTES, *links.ROUTES]


def install(application: web.Application, pickup: Pickup) -> None:
    """Add the routes; `pickup` is closed when the application is cleaned up."""
    application[PICKUP] = pickup
    application.add_routes(ROUTES)

    async def close(application: web.Application) -> None:
        await pickup.close()

    application.on_cleanup.append(close)
