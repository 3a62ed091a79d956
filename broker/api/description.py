"""`/v1/openapi.json`: what this API is, for programs (OpenAPI 3.1)."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

import yaml
from aiohttp import web

from broker.api.backend import in_thread

__all__ = ["ROUTES", "description"]


@cache
def description() -> dict[str, Any]:
    """Return the description; it is the same for every broker of this version."""
    text = resources.files("broker.api").joinpath("openapi.yaml").read_text(encoding="utf-8")
    found: dict[str, Any] = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return found


async def get_description(request: web.Request) -> web.Response:
    """Answer the description of this API."""
    return web.json_response(await in_thread(description))


ROUTES = [web.get("/v1/openapi.json", get_description)]
