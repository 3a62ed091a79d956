"""Spark's settings: those with which no task would ever run, or see what it has to read."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from broker.operations.checkup.finding import CheckupFinding
from broker.settings.config import Settings
from broker.settings.storeaddress import parse_address

__all__ = ["look_at_spark"]

_MASTER = re.compile(
    r"local(\[(\*|[1-9]\d*)(,\s*[1-9]\d*)?\])?"
    r"|local-cluster\[\s*\d+\s*,\s*\d+\s*,\s*\d+\s*\]"
    r"|spark://[^,/:]+:\d+(,[^,/:]+:\d+)*"
    r"|yarn|k8s://.+"
)
_LOCAL_SYSTEMS = frozenset(
    ("btrfs", "ext2", "ext3", "ext4", "f2fs", "overlay", "ramfs", "tmpfs", "vfat", "xfs", "zfs")
)
"""File systems of one machine; of one that is not here it is not known."""

_RESULT_MB_MIN = 512
"""Witnesses of a batch and matches of shards come to less (`witness_bytes`, `finished_bytes`)."""

_BYTES = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def look_at_spark(settings: Settings) -> Iterator[CheckupFinding]:
    """Yield what cannot work, or what Spark runs on where all of it can."""
    master = settings.spark.master
    found = [*_faults(settings, _defaults())]
    if found:
        yield from (CheckupFinding("spark", *each) for each in found)
        return
    shards = f", {settings.shards} shards" if settings.shards > 1 else ""
    yield CheckupFinding("spark", f"master {master}{shards}")


def _faults(settings: Settings, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what cannot work, each with its remedy."""
    master = settings.spark.master
    if not _MASTER.fullmatch(master):
        remedy = 'set spark.master to "local[2]", "spark://HOST:PORT", "yarn" or "k8s://..."'
        yield f"Spark knows no master {master!r}", remedy
        return
    yield from _resources(master, given)
    if settings.shards > 1 and given.get("spark.python.worker.reuse") == "false":
        yield (
            "spark.python.worker.reuse is false: each task would read all of its shard again",
            "take it out of spark-defaults.conf, or set shards = 1",
        )
    if not master.startswith("local"):
        yield from _of_a_cluster(settings, given)


def _resources(master: str, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    cores = given.get("spark.executor.cores", "")
    if local := re.fullmatch(r"local\[(\d+).*\]", master):
        cores = local[1]
    elif cluster := re.fullmatch(r"local-cluster\[\s*\d+\s*,\s*(\d+).*\]", master):
        cores = cluster[1]
    asked = given.get("spark.task.cpus", "1")
    if cores.isdigit() and asked.isdigit() and int(asked) > int(cores):
        state = f"a task asks for {asked} cores (spark.task.cpus), an executor has {cores}"
        yield state, "take spark.task.cpus out of spark-defaults.conf"
    most = given.get("spark.driver.maxResultSize", "")
    if (nbytes := _nbytes(most)) is not None and 0 < nbytes < _RESULT_MB_MIN << 20:
        yield (
            f"spark.driver.maxResultSize is {most}: a batch may have more, and would end the"
            " broker",
            f"set it to {_RESULT_MB_MIN}m at least, or leave it out",
        )


def _of_a_cluster(settings: Settings, given: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    store = parse_address(settings.spark.store) if settings.spark.store else None
    if store is None or store.scheme == "file":
        directory = settings.data if store is None else Path(store.path)
        system = _file_system(directory)
        if system in _LOCAL_SYSTEMS and not _is_here(settings.spark.master):
            yield (
                f"{directory} is on {system}, which other machines do not see; executors read"
                " documents, plans and shards there",
                "set `spark.store` to an object store, or to a directory that all machines have at"
                " this path (NFS or the like)",
            )
    for name in ("spark.driver.host", "spark.driver.bindAddress"):
        address = given.get(name, "")
        if _is_loopback(address) and not _is_here(settings.spark.master):
            state = f"{name} is {address}, where executors on other machines do not find the driver"
            yield state, "take it out of spark-defaults.conf"
    if given.get("spark.submit.deployMode") == "cluster":
        state = "spark.submit.deployMode is cluster, and the driver is the broker's own process"
        yield state, "take it out of spark-defaults.conf"
    if given.get("spark.dynamicAllocation.enabled") == "true" and not _keeps_shuffles(given):
        yield (
            "spark.dynamicAllocation.enabled is true, without shuffle tracking or a shuffle"
            " service: Spark does not start so",
            "take it out of spark-defaults.conf: an executor that is let go takes its shards'"
            " memory along",
        )


def _keeps_shuffles(given: Mapping[str, str]) -> bool:
    return (
        given.get("spark.dynamicAllocation.shuffleTracking.enabled", "true") == "true"
        or given.get("spark.shuffle.service.enabled") == "true"
    )


def _defaults() -> dict[str, str]:
    """Return the properties of `spark-defaults.conf`, as Spark reads it."""
    directory = os.environ.get("SPARK_CONF_DIR")
    try:
        lines = Path(directory or os.devnull, "spark-defaults.conf").read_text().splitlines()
    except OSError:
        return {}
    found = {}
    for line in lines:
        if parts := re.fullmatch(r"\s*([^\s=:#!]+)\s*[=:\s]\s*(.*?)\s*", line):
            found[parts[1]] = parts[2]
    return found


def _nbytes(text: str) -> int | None:
    parts = re.fullmatch(r"(\d+)\s*([bkmgt]?)b?", text.strip().lower())
    return int(parts[1]) * _BYTES[parts[2]] if parts else None


def _is_here(master: str) -> bool:
    """Return whether a master is on this machine, and its workers perhaps with it."""
    hosts = re.findall(r"(?:spark://|,)([^,:]+):", master)
    own = {socket.gethostname(), socket.getfqdn()}
    return bool(hosts) and all(_is_loopback(host) or host in own for host in hosts)


def _is_loopback(host: str) -> bool:
    return host == "localhost" or host.startswith("127.") or host == "::1"


def _file_system(directory: Path) -> str:
    """Return the type of the file system that a directory is on, or will be; `""` if unknown."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return ""
    types = {}
    for line in mounts:
        own, _, other = line.partition(" - ")
        place = re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), own.split()[4])
        types[Path(place)] = other.split()[0]
    path = directory.resolve()
    return next((types[each] for each in (path, *path.parents) if each in types), "")
