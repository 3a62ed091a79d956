"""The address of a store, as settings have it: a directory, or the URI of an object store.

    s3://bucket/prefix?region=eu-central-1
    s3://bucket/prefix?endpoint_override=minio.example.org:9000&scheme=https
    gs://bucket/prefix, abfss://container@account.dfs.core.windows.net/prefix
    file:///mnt/shared, /mnt/shared

It has no credentials: settings, plans of Spark and logs name it.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

__all__ = ["StoreAddress", "parse_address"]

_OPTIONS = {
    "s3": frozenset(("region", "scheme", "endpoint_override")),
    "gs": frozenset(("scheme", "endpoint_override")),
    "abfs": frozenset[str](),
    "abfss": frozenset[str](),
    "file": frozenset[str](),
}
"""What may stand behind the question mark, by scheme."""


@dataclass(frozen=True, slots=True)
class StoreAddress:
    """The parts of an address; `options` are those of its scheme, and `path` is without slashes.

    The path of a directory is as it is given.
    """

    scheme: str
    path: str
    options: tuple[tuple[str, str], ...] = ()


def parse_address(text: str) -> StoreAddress:
    """Return the parts of an address; raise `ValueError`, which does not repeat it, if it is none.

    >>> parse_address("s3://bucket/run?region=eu-central-1")
    StoreAddress(scheme='s3', path='bucket/run', options=(('region', 'eu-central-1'),))
    >>> parse_address("/mnt/shared").scheme
    'file'
    """
    if text.startswith("/"):
        return StoreAddress("file", text)
    parts = urlsplit(text)
    known = _OPTIONS.get(parts.scheme)
    if known is None or not (parts.netloc or parts.scheme == "file") or parts.fragment:
        raise ValueError(
            "a store is a directory, beginning with /, or s3://BUCKET/PREFIX, gs://BUCKET/PREFIX,"
            " abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PREFIX"
        )
    if parts.password is not None or (parts.username is not None and "abfs" not in parts.scheme):
        raise ValueError(
            "a store's address has no credentials: they come from the environment, a file such as"
            " ~/.aws/credentials, or the machine's role"
        )
    options = parse_qsl(parts.query, keep_blank_values=True)
    if unknown := sorted({name for name, _ in options}.difference(known)):
        choices = ", ".join(sorted(known)) or "none"
        raise ValueError(f"{unknown[0]!r} is no option of {parts.scheme}://; there are: {choices}")
    if parts.scheme == "file":
        return StoreAddress("file", parts.path)
    return StoreAddress(parts.scheme, (parts.netloc + parts.path).strip("/"), tuple(options))
