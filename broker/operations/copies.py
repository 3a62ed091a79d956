"""What a copy of a broker's data holds, file by file, and whether it is still that.

A copy has two marks.  `incomplete` is there while it is written: a broker does not start on it.
`copy.json` lists its files with their SHA-256, and is there until the copy takes the original's
place: a broker on it delivers nothing (`broker.settings.directory`).
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

from broker.documents.disk import sync
from broker.settings.directory import COPY_FILE, INCOMPLETE_FILE

__all__ = [
    "CopyError",
    "Manifest",
    "check_copy",
    "complete",
    "link_or_copy",
    "mark",
    "sha256_of",
]

_FORMAT = 1


class CopyError(RuntimeError):
    """The data cannot be copied, or a copy is not what was written.  The operator can act on it."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a copy holds: documents up to number `docid`, processed up to segment `through`.

    `files` are the SHA-256 of its files, by their paths below the copy.
    """

    made: str
    documents: int
    segments: int
    docid: int
    through: int
    matches: int
    files: dict[str, str]


def complete(directory: Path, manifest: Manifest) -> None:
    """Make a copy whole: its files are on the disk, then its list, then the mark goes."""
    for name in manifest.files:
        sync(directory / name)
    text = json.dumps({"format": _FORMAT, **asdict(manifest)}, indent=1)
    path = directory / COPY_FILE
    path.write_text(text + "\n", encoding="utf-8")
    sync(path)
    _unmark(directory)


def mark(directory: Path) -> None:
    """Say that a copy is being written."""
    path = directory / INCOMPLETE_FILE
    path.touch()
    sync(path)
    sync(directory)


def _unmark(directory: Path) -> None:
    """Say that a copy is whole; on return that is durable."""
    for parent in {path.parent for path in directory.rglob("*")}:
        sync(parent)
    (directory / INCOMPLETE_FILE).unlink()
    sync(directory)


def _read_manifest(directory: Path) -> Manifest:
    """Return the list of a copy's files; raise `CopyError` where it is no copy, or no whole one."""
    if (directory / INCOMPLETE_FILE).exists():
        raise CopyError(f"{directory} is not complete: the copy was broken off")
    try:
        found = json.loads((directory / COPY_FILE).read_text(encoding="utf-8"))
        version = found.pop("format")
        if version != _FORMAT:
            raise CopyError(f"{directory} has format {version}; this version reads {_FORMAT}")
        return Manifest(**found)
    except FileNotFoundError:
        raise CopyError(f"{directory} is not a copy that `xscl backup` has made") from None
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise CopyError(f"{directory / COPY_FILE} cannot be read: {error}") from error


def check_copy(directory: Path) -> Manifest:
    """Return what a copy holds, after reading all of it; raise `CopyError` where it has changed."""
    manifest = _read_manifest(directory)
    for name, wanted in manifest.files.items():
        path = directory / name
        if not path.is_file():
            raise CopyError(f"{path} is missing")
        if sha256_of(path) != wanted:
            raise CopyError(f"{path} is not what was written: it is damaged, or was changed since")
    return manifest


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def link_or_copy(path: Path, copy: Path) -> None:
    """Link a file that never changes to another place; copy it where no link is possible."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(path, copy)
    except FileNotFoundError:
        raise
    except OSError:
        shutil.copyfile(path, copy)
