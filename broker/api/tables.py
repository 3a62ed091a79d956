"""`/v1/tables`: tables and their rows, as of the last commit.

They are written by documents of the streams `TABLE.name`, and by queries.  A token reads the
tables that its scopes name, `subscribe:NAME`; an admin reads all.
"""

from __future__ import annotations

import math
from http import HTTPStatus
from typing import Any

from aiohttp import web

from broker.api.access import caller_of
from broker.api.backend import BACKEND, Backend, in_thread
from broker.api.problem import Problem
from broker.api.querystring import bounded
from broker.registry.registered import tables_of
from broker.registry.tokens import TokenScope
from broker.tables.store import Cell, RowChange
from xscl.functions import spell

__all__ = ["ROUTES", "described_tables"]

_LIMIT_MAX = 1_000


async def list_tables(request: web.Request) -> web.Response:
    """Answer the tables that are registered, with how many rows each has and who uses it."""
    caller = caller_of(request)
    found = await in_thread(described_tables, request.app[BACKEND])
    if caller is not None and TokenScope.ADMIN not in caller.scopes:
        found = [each for each in found if each["name"] in caller.queries]
    return web.json_response({"tables": found})


async def list_rows(request: web.Request) -> web.Response:
    """Answer rows of a table by key; `?after=` a key goes on, `?key=` asks for one row alone."""
    backend, name = request.app[BACKEND], request.match_info["name"]
    limit = bounded(request, "limit", 100, _LIMIT_MAX)
    after, key = request.query.get("after", ""), request.query.get("key")
    known = [each["name"] for each in await in_thread(described_tables, backend)]
    if name not in known:
        raise Problem(HTTPStatus.NOT_FOUND, f"no table {name!r}")
    if key is not None:
        one = await in_thread(backend.outbox.row_of, name, key)
        found = [] if one is None else [one]
    else:
        found = await in_thread(lambda: backend.outbox.rows_of(name, after=after, limit=limit))
    rest = found[-1].key if key is None and len(found) == limit else None
    return web.json_response({"rows": list(map(_rendered, found)), "next": rest})


def described_tables(backend: Backend) -> list[dict[str, Any]]:
    """Return the tables that are registered, by name, as they are answered."""
    counts = backend.outbox.row_counts()
    return [
        {
            "name": table.name,
            "key": table.columns[0].name,
            "columns": {
                column.name: column.default.value
                for column in table.columns
                if column.default is not None
            },
            "rows": counts.get(table.name, 0),
            "users": users,
        }
        for table, users in tables_of(backend.registry)
    ]


def _rendered(row: RowChange) -> dict[str, Any]:
    cells = {column: _rendered_cell(cell) for column, cell in (row.cells or {}).items()}
    return {"key": row.key, "cells": cells, "docid": row.docid}


def _rendered_cell(cell: Cell) -> Cell:
    """Return a cell as JSON can say it: infinity as the string that the language has for it."""
    return cell if isinstance(cell, str) or math.isfinite(cell) else spell(cell)


ROUTES = [
    web.get("/v1/tables", list_tables),
    web.get("/v1/tables/{name}/rows", list_rows),
]
