"""Addresses that are written to no more, whoever subscribes them."""

from __future__ import annotations

from broker.registry.file import RegistryFile

__all__ = ["SuppressionList"]


class SuppressionList:
    """The suppressed e-mail addresses of one broker; their letters' case does not count."""

    def __init__(self, file: RegistryFile) -> None:
        self._file = file

    def add(self, address: str, *, reason: str) -> None:
        """Write to an address no more."""
        with self._file.write() as db:
            db.execute(
                "INSERT INTO suppressed VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (address.lower(), reason, self._file.now_us()),
            )

    def remove(self, address: str) -> bool:
        """Take an address off the list; return whether it was there."""
        with self._file.write() as db:
            gone = db.execute("DELETE FROM suppressed WHERE address = ?", (address.lower(),))
            return gone.rowcount > 0

    def has(self, address: str) -> bool:
        """Return whether an address is on the list."""
        return bool(self._file.rows("SELECT 1 FROM suppressed WHERE address = ?", address.lower()))

    def entries(self) -> list[tuple[str, str, int]]:
        """Return the list by address: address, reason, and since when."""
        return self._file.rows("SELECT address, reason, at_us FROM suppressed ORDER BY address")
