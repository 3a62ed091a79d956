"""Sockets between Spark's JVM and the Python processes of this machine: files, not ports.

Over TCP each task waited for 40 ms.  The JVM sends what a worker is to do in two pieces; the second
one goes when the first one is acknowledged (Nagle's algorithm), and the worker's kernel puts that
off for as long, since it has nothing to send.

Nobody proves who he is at such a socket, so their directory is open to this user alone.
"""

from __future__ import annotations

from tempfile import TemporaryDirectory

__all__ = ["socket_directory", "socket_settings"]

_PATH_MAX = 100
"""Bytes of a socket's path: Linux takes 107, macOS 103."""

_NAME_MAX = len("/.00000000-0000-0000-0000-000000000000.sock")


def socket_directory() -> TemporaryDirectory[str] | None:
    """Return a directory for sockets; `None` where their paths would be too long."""
    directory = TemporaryDirectory(prefix="xscl-", ignore_cleanup_errors=True)
    if len(directory.name.encode()) + _NAME_MAX <= _PATH_MAX:
        return directory
    directory.cleanup()
    return None


def socket_settings(directory: str) -> dict[str, str]:
    """Return the properties of Spark that have its sockets in a directory."""
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": directory,
    }
