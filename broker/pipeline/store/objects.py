"""Objects: bytes under names, in a directory or an object store.

An object store makes an object whole or not at all.  In a directory one is written under another
name first, and moved.

Whoever can wait for a store that does not answer says how long: the driver does, with all that it
holds; a task does not, as Spark begins it again.
"""

from __future__ import annotations

import logging
import os
import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from broker.settings.storeaddress import parse_address

__all__ = ["WAITS_S", "Objects", "StoreError", "StorePlace", "plainly"]

_log = logging.getLogger(__name__)

WAITS_S = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""How long the driver waits before it asks once more: a minute, beside the six seconds that the
client of an object store tries by itself each time.  Then the broker ends."""

_ATTEMPTS = 3
_AT_ONCE = 16
"""Requests of one call to an object store that are on their way at a time: each takes a moment."""

T = TypeVar("T")


class StoreError(OSError):
    """The store cannot be reached, or refuses: its operator can act on it."""


_STORE_ERROR = re.compile(r"^(?:\w+\.)*StoreError: (.+)$", re.MULTILINE)


def plainly(error: BaseException) -> str:
    r"""Return what an error says; of one of Spark's only what the store said, where it began there.

    >>> plainly(RuntimeError("Job aborted:\nbroker.StoreError: the store is gone\n at Executor"))
    'the store is gone'
    """
    found = _STORE_ERROR.findall(str(error))
    return found[-1] if found else str(error)


class StorePlace(NamedTuple):
    """A folder of a store, which any process can open: an address (`storeaddress`), and a path."""

    address: str
    folder: str = ""

    @classmethod
    def of(cls, directory: Path) -> StorePlace:
        """Return a directory of this machine as a place."""
        return cls(str(directory.resolve()))

    @classmethod
    def at(cls, address: str) -> StorePlace:
        """Return the folder that an address leads to.

        >>> StorePlace.at("s3://bucket/state/?region=eu")
        StorePlace(address='s3://bucket?region=eu', folder='state')
        """
        rest, mark, options = address.partition("?")
        parent, _, name = rest.rstrip("/").rpartition("/")
        return cls(parent + mark + options, name)

    def below(self, name: str) -> StorePlace:
        """Return a folder in this one."""
        return StorePlace(self.address, f"{self.folder}/{name}".lstrip("/"))

    @property
    def parent(self) -> StorePlace:
        """The folder that this one is in."""
        return StorePlace(self.address, self.folder.rpartition("/")[0])

    @property
    def name(self) -> str:
        """The name of the folder in its parent."""
        return self.folder.rpartition("/")[2]


class Objects:
    """The objects of one place.  What fails is tried again after each of `waits_s`."""

    def __init__(self, place: StorePlace, waits_s: Sequence[float] = ()) -> None:
        self.place = place
        self._waits_s = waits_s
        self._filesystem, root = _opened(place.address)
        self._root = f"{root}/{place.folder}".rstrip("/")
        self._is_directory = self._filesystem.type_name == "local"

    def create(self) -> None:
        """Make the folder, where folders are made."""
        if self._is_directory:
            self._tried(lambda: self._filesystem.create_dir(self._root))

    def put(self, name: str, write: Callable[[Any], object]) -> None:
        """Make an object of what is written to a file, which `write` gets; it is there then."""
        self._tried(lambda: self._put(name, write))

    def put_all(self, writers: Iterable[tuple[str, Callable[[Any], object]]]) -> None:
        """Make objects, in any order."""
        self._each(lambda each: self.put(*each), list(writers))

    def _put(self, name: str, write: Callable[[Any], object]) -> None:
        path = written = f"{self._root}/{name}"
        if self._is_directory:
            written = f"{self._root}/.{name}.{os.getpid()}.{uuid.uuid4().hex}"
        with self._filesystem.open_output_stream(written) as file:
            write(file)
        if written != path:
            self._filesystem.move(written, path)

    def get(self, name: str) -> pa.Buffer:
        """Return an object; `FileNotFoundError` if there is none."""
        return self._tried(lambda: self._get(name), (FileNotFoundError,))

    def _get(self, name: str) -> pa.Buffer:
        with self._filesystem.open_input_file(f"{self._root}/{name}") as file:
            return file.read_buffer()

    def remove(self, names: Iterable[str]) -> None:
        """Delete objects; those that are not there are left out."""
        self._each(lambda name: self._tried(lambda: self._remove(name)), list(names))

    def _remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._filesystem.delete_file(f"{self._root}/{name}")

    def names(self) -> list[str]:
        """Return the names of all objects and folders here."""
        return sorted(self._tried(self._names))

    def _names(self) -> list[str]:
        from pyarrow.fs import FileSelector

        found = self._filesystem.get_file_info(FileSelector(self._root, allow_not_found=True))
        return [info.base_name for info in found if not info.base_name.startswith(".")]

    def remove_folders(self, names: Iterable[str]) -> None:
        """Delete folders with all that is in them, as far as that can be done now."""
        for name in names:
            try:
                self._filesystem.delete_dir(f"{self._root}/{name}")
            except FileNotFoundError:
                pass
            except OSError as error:  # another one comes by at the next start
                _log.warning("%s stays in the store: %s", self.place.below(name), error)

    def probe(self) -> None:
        """Write, read and delete an object; raise `StoreError` where that does not work."""
        name, content = f"probe-{uuid.uuid4().hex}", b"of no use"
        self.create()
        self.put(name, lambda file: file.write(content))
        try:
            if self.get(name).to_pybytes() != content:
                raise StoreError(f"the store {self.place.address} gives back something else")
        except FileNotFoundError as error:
            message = f"the store {self.place.address} does not have what was written to it"
            raise StoreError(message) from error
        self.remove([name])

    def _each(self, act: Callable[[T], object], some: Sequence[T]) -> None:
        if len(some) < 2 or self._is_directory:
            for each in some:
                act(each)
            return
        with ThreadPoolExecutor(min(_AT_ONCE, len(some))) as threads:
            for _ in threads.map(act, some):
                pass

    def _tried(self, act: Callable[[], T], answers: tuple[type[OSError], ...] = ()) -> T:
        """Return what comes of an action, which may be repeated; some errors are an answer."""
        for wait_s in (*self._waits_s, None):
            try:
                return act()
            except answers:
                raise
            except OSError as error:
                message = f"the store {self.place.address} cannot be used: {error}"
                if wait_s is None:
                    raise StoreError(message) from error
                _log.warning("%s; again in %s s", message, wait_s)
                time.sleep(wait_s)
        raise AssertionError


@lru_cache(maxsize=4)
def _opened(text: str) -> tuple[Any, str]:
    """Return the file system of an address, and the path of its root.

    It is opened where it is used first: the client of an object store has threads of its own, which
    a process that is forked does not.
    """
    from pyarrow import fs

    address = parse_address(text)
    if address.scheme == "file":
        return fs.LocalFileSystem(), address.path
    if address.scheme == "s3":
        retries = fs.AwsStandardS3RetryStrategy(max_attempts=_ATTEMPTS)
        options: Any = dict(address.options)
        # A small object is one request so, not three.
        s3 = fs.S3FileSystem(**options, allow_delayed_open=True, retry_strategy=retries)
        return s3, address.path
    filesystem, path = fs.FileSystem.from_uri(text)
    return filesystem, path
