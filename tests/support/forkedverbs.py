"""`xscl` as a command of a shell, without the start of an interpreter for each call.

One process imports the verbs and forks for each call.  The child runs where the shell is, with its
environment and its files; what is called in the shell hands these over, and waits for the code.

python tests/support/forkedverbs.py DESCRIPTOR
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["forked_verbs"]

IMPORTED = ("broker.matching.engine", "broker.testing.trial", "broker.cli.connection")
"""What many verbs import."""

COMMAND = """#!{python} -SE
import os, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
words = [os.getcwd(), *sys.argv[1:], "", *[f"{{k}}={{v}}" for k, v in os.environ.items()]]
text = "\\0".join(words).encode("utf-8", "surrogateescape")
socket.send_fds(server, [len(text).to_bytes(4, "big")], [0, 1, 2])
server.sendall(text)
code = server.recv(1)
sys.exit(code[0] if code else "the child has ended without a code")
"""


@contextlib.contextmanager
def forked_verbs(directory: Path) -> Iterator[Path]:
    """Yield a directory with `xscl` in it, which can be called until the context ends."""
    address = directory / "verbs.sock"
    command = directory / "xscl"
    command.write_text(COMMAND.format(python=sys.executable, address=str(address)))
    command.chmod(0o755)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(address))
        listening.listen()
        given = listening.fileno()
        server = subprocess.Popen([sys.executable, __file__, str(given)], pass_fds=[given])
    try:
        yield directory
    finally:
        server.kill()
        server.wait()


def serve(listening: socket.socket) -> None:
    """Fork for each call, for ever."""
    for name in IMPORTED:
        importlib.import_module(name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        caller, _ = listening.accept()
        if not os.fork():
            run(caller)
        caller.close()


def run(caller: socket.socket) -> None:
    """Run a verb as the caller would, and tell it the code."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    size, files, _, _ = socket.recv_fds(caller, 4, 3)
    text = b""
    while len(text) < int.from_bytes(size, "big"):
        text += caller.recv(1 << 16)
    words = text.decode("utf-8", "surrogateescape").split("\0")
    end = words.index("", 1)
    for target, file in enumerate(files):
        os.dup2(file, target)
    os.chdir(words[0])
    os.environ.clear()
    os.environ.update(word.split("=", 1) for word in words[end + 1 :])
    code = 1
    try:
        from broker.cli import main

        main(words[1:end], prog_name="xscl")
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        caller.sendall(bytes([code]))
        os._exit(code)


if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parents[2])]
    serve(socket.socket(fileno=int(sys.argv[1])))
