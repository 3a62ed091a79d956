"""Random histories in which statements are paused, and subscriptions come and go."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from generators.choosers import RandomChooser

__all__ = ["ComingAndGoing", "Happenings"]

LAST = "document 99 S 00:10:00  <z/>"
"""What settles all that has come."""


class Happenings:
    """The lines of a history, and the subscriptions that are there."""

    def __init__(self, chooser: RandomChooser) -> None:
        self.choose = chooser
        self._lines: list[str] = []
        self._subscriptions: list[str] = []

    def _unsubscribe(self) -> None:
        if self._subscriptions:
            name = self.choose.choice(self._subscriptions)
            self._subscriptions.remove(name)
            self._lines.append(f"unsubscribe {name}")

    def _restart(self) -> None:
        self._lines.append("restart")

    def _drain(self) -> None:
        self._lines.append("drain")


class ComingAndGoing(Happenings, ABC):
    """A history of up to three statements, whose texts, values and documents a subclass chooses."""

    def __init__(self, chooser: RandomChooser) -> None:
        super().__init__(chooser)
        self._is_paused: dict[int, bool] = {}
        self._assigned: dict[int, str] = {}
        self._second = 10

    @abstractmethod
    def statement(self) -> str:
        """Return a statement, with parameters or without."""

    @abstractmethod
    def values(self, statement: str) -> Mapping[str, Any]:
        """Return values of the parameters of a statement."""

    @abstractmethod
    def document(self) -> str:
        """Return a document."""

    def text(self) -> str:
        """Return the history."""
        for number in range(self.choose.integer(1, 3)):
            self._register(number)
        changes = [self._pause_or_resume] * 2 + [self._subscribe] * 3 + [self._unsubscribe] * 2
        rare = [self._restart, self._drain]
        for number in range(1, self.choose.integer(11, 26)):
            for _ in range(self.choose.choice((0, 0, 1, 1, 2))):
                self.choose.choice((*changes, *rare))()
            self._second += self.choose.choice((0, 1, 1, 1, 2, -1))
            come = f"document {number} S 00:00:{self._second:02}  {self.document()}"
            self._lines.append(come)
        return "\n".join(["# Generated.", "lateness 5 s", *self._lines, LAST, ""])

    def _register(self, number: int) -> None:
        statement = self.statement()
        self._lines.append(f"register q{number}\n    {statement}")
        self._is_paused[number] = False
        if "$" in statement:
            self._assigned[number] = statement
            self._subscribe()

    def _pause_or_resume(self) -> None:
        number = self.choose.choice([*self._is_paused])
        self._lines.append(f"{'resume' if self._is_paused[number] else 'pause'} q{number}")
        self._is_paused[number] ^= True

    def _subscribe(self) -> None:
        if self._assigned:
            self._subscriptions.append(f"s{len(self._lines)}")
            number = self.choose.choice([*self._assigned])
            values = json.dumps(self.values(self._assigned[number]))
            self._lines.append(f"subscribe {self._subscriptions[-1]} q{number} {values}")
