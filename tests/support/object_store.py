"""A server of S3's protocol on loopback, in this process."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

__all__ = ["SECRET", "S3Server", "s3_server"]

SECRET = "not-to-be-seen-anywhere"


class S3Server:
    """A server with one bucket; what it has stays while it is stopped."""

    def __init__(self) -> None:
        self._start(0)
        import pyarrow.fs as fs

        address = f"127.0.0.1:{self.port}"
        fs.S3FileSystem(
            scheme="http", endpoint_override=address, region="x", allow_bucket_creation=True
        ).create_dir("bucket")
        self.address = f"s3://bucket/some/prefix?scheme=http&region=x&endpoint_override={address}"

    def _start(self, port: int) -> None:
        from moto.server import ThreadedMotoServer

        logging.getLogger("werkzeug").setLevel(logging.WARNING)

        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
        self._server.start()
        _, self.port = self._server.get_host_and_port()

    def stop(self) -> None:
        self._server.stop()

    def start(self) -> None:
        self._start(self.port)


@contextmanager
def s3_server() -> Iterator[S3Server]:
    """Run a server; processes that begin meanwhile have credentials for it."""
    pytest.importorskip("moto", reason="needs a server of S3's protocol: pip install '.[dev]'")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ACCESS_KEY_ID", "testing")
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        server = S3Server()
        try:
            yield server
        finally:
            server.stop()
