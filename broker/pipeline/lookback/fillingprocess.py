"""The process that fills the spool of a replay while Spark starts and runs.

A recorded line costs more until it is in the spool than the join of its document does, and one
interpreter does one thing at a time.  So lines are read, numbered and written by another one:

    python -m broker.pipeline.lookback.fillingprocess FILE

reads a `Recording` from a file, and writes to standard output what became of each group of lines, a
`Filled`, and at the end None, or the error that was the end.  All is pickled: whoever reads it has
begun the other.

Invariant: it ends when nobody reads what it writes any more, however that came about.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from broker.pipeline.lookback.filling import Filled, Recording, fill
from broker.pipeline.thisprocess import set_up_process

__all__ = ["FillingProcess"]

_MODULE = "broker.pipeline.lookback.fillingprocess"

_FIRST_BATCH_DOCUMENTS = 500
"""Spark's first batch takes seconds however small it is, so it is small."""


class FillingProcess:
    """Fills a spool in a process of its own; `take` hears of each group, in another thread."""

    def __init__(self, recording: Recording, take: Callable[[Filled], None]) -> None:
        self._recording = recording
        self._take = take
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._listen, name="filling", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        # Not by its standard input: that may be what is to be read.
        path = self._recording.spool.with_name("recording")
        path.write_bytes(pickle.dumps(self._recording))
        # A Ctrl-C on the terminal goes to a group; it is the driver that ends this process.
        self._process = subprocess.Popen(
            (sys.executable, "-P", "-m", _MODULE, path),
            stdout=subprocess.PIPE,
            process_group=0,
        )
        self._thread.start()

    @property
    def pid(self) -> int:
        """The number of the process."""
        return self._process.pid

    @property
    def is_reading(self) -> bool:
        """Whether more may come."""
        return self._thread.is_alive()

    def finish(self) -> None:
        """Wait until all is read; raise what ended the reading before."""
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the process, wherever it is."""
        self._process.kill()
        self._thread.join()

    def _listen(self) -> None:
        try:
            for filled in self._told():
                self._take(filled)
        except BaseException as failure:
            self._failure = failure

    def _told(self) -> Iterator[Filled]:
        stdout = self._process.stdout
        assert stdout is not None
        told: Filled | Exception | None
        with self._process:
            try:
                while isinstance(told := pickle.load(stdout), Filled):
                    yield told
            except (EOFError, pickle.UnpicklingError) as error:
                code = self._process.wait()
                raise ChildProcessError(
                    f"the process that reads the documents has ended (exit code {code})"
                ) from error
        if told is not None:
            raise told


def _main() -> None:
    set_up_process()
    recording: Recording = pickle.loads(Path(sys.argv[1]).read_bytes())
    failure: Exception | None = None
    try:
        try:
            for filled in fill(recording, _FIRST_BATCH_DOCUMENTS):
                _tell(filled)
        except BrokenPipeError:
            raise
        except Exception as error:
            failure = _that_travels(error)
        _tell(failure)
    except BrokenPipeError:
        # Nobody listens: what is still to be written at the exit goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _tell(told: Filled | Exception | None) -> None:
    sys.stdout.buffer.write(pickle.dumps(told))
    sys.stdout.buffer.flush()


def _that_travels(error: Exception) -> Exception:
    """Return an error, or one that says the same where it cannot be pickled, with its traceback."""
    try:
        found: Exception = pickle.loads(pickle.dumps(error))
    except Exception:
        found = RuntimeError(f"{type(error).__name__}: {error}")
    found.add_note("".join(traceback.format_exception(error)))
    return found


if __name__ == "__main__":
    _main()
