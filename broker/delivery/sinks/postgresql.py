"""Matches in a table of PostgreSQL, or of what speaks its protocol."""

from __future__ import annotations

import os
import ssl
from typing import Any

from broker.delivery.attempt import Attempt, OutcomeKind
from broker.delivery.sinks.dialling import Dialling
from broker.delivery.sinks.rows import create, insert, quoted, rows
from broker.delivery.sinks.sink import SinkError
from broker.registry.sinkaddress import SinkAddress

__all__ = ["PostgreSQLSink", "open_postgresql"]

_SAFE = "verify-full"

_AUTHORITIES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/cert.pem",
)
"""Where Debian, Fedora, and Alpine and macOS have them."""

_REMEDIES = {
    "42501": "grant its user INSERT on the table, and CREATE where there is none",
    "42703": "the table needs the columns that the documentation names",
    "42P10": "the table needs the primary key `delivery`",
    "3F000": "make the schema",
    "23502": "columns of your own need defaults",
}
"""What helps, by SQLSTATE."""

_NO_TABLE = "42P01"

_LATER = ("08", "53", "57", "40")
"""Classes of SQLSTATE that say that a server is busy or going down."""


async def open_postgresql(address: SinkAddress, dialling: Dialling) -> PostgreSQLSink:
    """Connect; raise `SinkError` where the server or the guard refuses."""
    # Imported here because the package is an extra.
    import psycopg

    ((host, port),) = address.hosts
    dialled = await dialling.address(address, host, port)
    mode = address.options.get("sslmode") or ("prefer" if dialling.is_listed(dialled) else _SAFE)
    asked: dict[str, Any] = {
        "host": host,
        "hostaddr": dialled,
        "port": port,
        "user": address.user,
        "password": address.password,
        "dbname": address.path,
        "sslmode": mode,
        # A weaker mode asks for no certificate.
        "sslrootcert": _authorities() if mode == _SAFE else None,
        # The passwords of who started the broker are not for servers that subscribers name.
        "passfile": "/dev/null",
        "application_name": "xscl",
    }
    try:
        db = await psycopg.AsyncConnection.connect(**asked, autocommit=True)
    except psycopg.OperationalError as error:
        raise SinkError(_reason(error), OutcomeKind.THROTTLED) from error
    return PostgreSQLSink(db, address.table)


def _authorities() -> str:
    """Return the file of authorities that the machine trusts: the client's own may have none."""
    known = ssl.get_default_verify_paths().cafile
    return known or next(filter(os.path.exists, _AUTHORITIES), "system")


class PostgreSQLSink:
    """A table in a database; it is made when it is first written to."""

    def __init__(self, db: Any, table: str) -> None:
        self._db = db
        self._table = table
        self._is_there = False

    async def write(self, attempt: Attempt) -> None:
        """Write all matches in one transaction; a sample's is taken back."""
        from psycopg import Error

        try:
            await self._insert(list(rows(attempt)), is_sample=attempt.is_sample)
        except Error as error:
            raise _refused(error, self._db.closed) from error

    @property
    def is_open(self) -> bool:
        """Whether the connection still stands, as far as is known."""
        return not self._db.closed

    async def close(self) -> None:
        """Give the connection back."""
        await self._db.close()

    async def _insert(self, values: list[tuple[object, ...]], *, is_sample: bool) -> None:
        async with self._db.transaction(force_rollback=is_sample), self._db.cursor() as cursor:
            if not self._is_there:
                # Who may only insert may ask this, and may not say CREATE IF NOT EXISTS.
                await cursor.execute("SELECT to_regclass(%s)", (quoted(self._table),))
                if await cursor.fetchone() == (None,):
                    await cursor.execute(create(self._table, "jsonb"))
            # One round trip: the client sends them behind one another.
            await cursor.executemany(insert(self._table), values)
        self._is_there = not is_sample


def _refused(error: Any, is_closed: bool) -> SinkError:
    state = error.sqlstate or ""
    remedy = f"; {_REMEDIES[state]}" if state in _REMEDIES else ""
    later = is_closed or state.startswith(_LATER)
    kind = OutcomeKind.THROTTLED if later else OutcomeKind.FAILED
    is_gone = state == _NO_TABLE
    return SinkError(_reason(error) + remedy, kind, keeps=not (is_closed or is_gone))


def _reason(error: Exception) -> str:
    """Return what the server said, on one line."""
    said = " ".join(str(error).split()) or type(error).__name__
    return f"the database says: {said}"
