"""Has loops compiled by a process of its own, while what they stand in for goes on.

To compile them takes some ten seconds of a processor, once for a version of the program on a
machine: the code is kept in files (`compiling`).  Whoever finds none there begins that process, and
uses the loops when it has ended.  Where no file can be written the loops are compiled where they
are first called, and that is waited for.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Callable

from templates.compiling import can_compile

__all__ = ["Loops"]

_log = logging.getLogger(__name__)


class Loops:
    """The compiled loops of this process that do something, and the process that compiles them.

    That is the main program of `module`; `are_missing` tells whether there is anything to compile,
    and `otherwise` is what happens until it is.
    """

    def __init__(
        self, module: str, do: str, otherwise: str, are_missing: Callable[[], bool]
    ) -> None:
        self._module, self._do, self._otherwise = module, do, otherwise
        self._are_missing = are_missing
        self._are_ready = self._have_failed = False
        self._process: subprocess.Popen[bytes] | None = None

    def are_ready(self) -> bool:
        """Return whether loops can be used without a wait; begin to compile them if not."""
        if not self._are_ready and not self._have_failed and can_compile():
            if self._process is not None:
                self._follow(self._process)
            elif self._are_missing():
                self._begin()
            else:
                self._are_ready = True
        return self._are_ready

    def _begin(self) -> None:
        _log.info(
            "a process of its own compiles the loops that %s; until they are there, %s",
            self._do,
            self._otherwise,
        )
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-m", self._module],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        except OSError as error:
            self._fail(error)

    def _follow(self, process: subprocess.Popen[bytes]) -> None:
        status = process.poll()
        self._are_ready = status == 0
        if status:
            self._fail(f"status {status} of `python -m {self._module}`")

    def _fail(self, why: object) -> None:
        self._have_failed = True
        _log.warning(
            "the loops that %s could not be compiled, so that %s: %s",
            self._do,
            self._otherwise,
            why,
        )
