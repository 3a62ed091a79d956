"""TLS to a server that is dialled by its address and must have the certificate of its name."""

from __future__ import annotations

import ssl
from typing import Any

__all__ = ["NamedContext"]


class NamedContext(ssl.SSLContext):
    """Trusts what the machine trusts; `is_used` says whether anything has gone over it.

    Clients that dial for us know the address only, and would ask for a certificate of that.
    """

    _name: str
    is_used: bool

    def __new__(cls, name: str) -> NamedContext:
        """Return a context for the server of that name."""
        made: NamedContext = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        made._name = name
        made.is_used = False
        made.load_default_certs()
        return made

    def wrap_bio(self, *arguments: Any, **named: Any) -> ssl.SSLObject:
        """Begin TLS on memory, as asyncio does."""
        self.is_used = True
        return super().wrap_bio(*arguments, **{**named, "server_hostname": self._name})

    def wrap_socket(self, *arguments: Any, **named: Any) -> ssl.SSLSocket:
        """Begin TLS on a socket."""
        self.is_used = True
        return super().wrap_socket(*arguments, **{**named, "server_hostname": self._name})
