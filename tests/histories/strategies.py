"""Random histories: the queries and documents of `generators.strategies`, interleaved.

Each of four ids has one query at a time.  A query reads the streams that ids below its own publish
or have published.  Every history is one that a broker accepts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Protocol

from generators.choosers import Chooser, DrawnChooser, RandomChooser
from generators.strategies import FOCI, Generator
from hypothesis import strategies as st

__all__ = ["History", "Makes", "history_texts", "random_history"]

IDS = 4


@st.composite
def history_texts(draw: Any) -> str:
    """Return a strategy of histories as text."""
    return History(DrawnChooser(draw)).text()


def random_history(seed: int) -> str:
    """Return the history of a seed as text."""
    return History(RandomChooser(seed)).text()


class Makes(Protocol):
    """Makes the statements and the documents of a history: see `generators.strategies`."""

    def lateness(self) -> str:
        """Return an allowed lateness."""

    def document(self, number: int) -> str:
        """Return the line of a document."""

    def statement(self, number: int, published: Sequence[str]) -> str:
        """Return a query; it may read these published streams, and publish that of its number."""

    def values(self, row: int) -> str:
        """Return values of the parameters of the statement that was written last: 0 or 1."""


class History:
    """A random history, of what `makes` makes: so many things happen, by lot."""

    def __init__(
        self,
        chooser: Chooser,
        makes: Makes | None = None,
        lengths: Sequence[int] = (12, 16, 20, 6, 9, 24),
    ) -> None:
        self._choose, self._lengths = chooser, lengths
        foci = (*["publish"] * len(FOCI), *["parameter"] * (len(FOCI) // 2), *FOCI)
        self._generate = makes or Generator(chooser, wild=15, foci=foci)
        self._lines: list[str] = []
        self._newest = 0
        self._statements: dict[int, str] = {}
        self._paused: set[int] = set()
        self._publishers: set[int] = set()
        self._read: set[int] = set()
        self._values: dict[int, list[str]] = {}
        self._subscriptions: dict[str, int] = {}
        self._subscribed = 0

    def text(self) -> str:
        """Return it as text."""
        for _ in range(self._choose.integer(1, 3)):
            self._register()
        for _ in range(self._choose.choice(self._lengths)):
            self._happen()
        return "\n".join(
            ["# Generated.", f"lateness {self._generate.lateness()}", *self._lines, ""]
        )

    def _happen(self) -> None:
        documents = [self._document] * 9
        changes = [self._register, self._register, *[self._subscribe] * 2, self._pause_or_resume]
        if self._values:
            changes += [self._subscribe, self._unsubscribe]
        rare = [self._remove, self._unsubscribe, lambda: self._write("drain")]
        self._choose.choice((*documents, *changes, *rare, lambda: self._write("restart")))()

    def _write(self, line: str) -> None:
        self._lines.append(line)

    def _document(self) -> None:
        self._newest += 1
        self._write(self._generate.document(self._newest))

    def _register(self) -> None:
        number = self._choose.integer(0, IDS - 1)
        if number in self._statements and self._choose.integer(0, 5) == 5:
            # The same again: it looks further back, unless it is paused.
            statement = self._statements[number]
        else:
            statement = self._state(number)
            self._paused.discard(number)
        since = self._since() if self._may_look_back(number, statement) else ""
        self._statements[number] = statement
        self._read.update(n for n in range(number) if re.search(rf"\bP{n}\b", statement))
        self._write(f"register q{number}{since}\n    {statement}")
        if number in self._values and number not in self._paused:
            self._subscribe_to(number)

    def _state(self, number: int) -> str:
        others = [text for n, text in self._statements.items() if n != number]
        self._values.pop(number, None)
        if others and self._choose.integer(0, 7) == 7:
            text = re.sub(r" PUBLISH \w+$", "", self._choose.choice(others))
            if "$" not in text and not self._reads(number, text):
                return text
        below = [f"P{n}" for n in range(number) if n in self._publishers]
        statement = self._generate.statement(number, below)
        if "PUBLISH" in statement:
            self._publishers.add(number)
        if "$" in statement:
            self._values[number] = [self._generate.values(row) for row in (0, 1)]
        return statement

    def _reads(self, number: int, text: str) -> bool:
        """Return whether a query would read its own stream, or one of an id above."""
        return any(re.search(rf"\bP{n}\b", text) for n in range(number, IDS))

    def _since(self, percent: int = 25) -> str:
        if self._choose.integer(0, 99) < 100 - percent:
            return ""
        return f" since {self._choose.integer(0, self._newest)}"

    def _may_look_back(self, number: int, statement: str) -> bool:
        """Return whether nobody has ever read what would be published late, and nothing limits it.

        What LIMIT and DISJOINT give depends on what they gave.
        """
        if " LIMIT " in statement or " DISJOINT " in statement:
            return False
        return "PUBLISH" not in statement or number not in self._read

    def _subscribe(self) -> None:
        numbers = [n for n in self._values if n not in self._paused]
        if numbers:
            self._subscribe_to(self._choose.choice(numbers))

    def _subscribe_to(self, number: int) -> None:
        self._subscribed += 1
        name = f"s{self._subscribed}"
        self._subscriptions[name] = number
        since = self._since(60) if self._may_look_back(number, self._statements[number]) else ""
        values = self._choose.choice(self._values[number])
        self._write(f"subscribe {name} q{number}{since} {values}")

    def _unsubscribe(self) -> None:
        if self._subscriptions:
            name = self._choose.choice(list(self._subscriptions))
            del self._subscriptions[name]
            self._write(f"unsubscribe {name}")

    def _pause_or_resume(self) -> None:
        if self._statements:
            number = self._choose.choice(list(self._statements))
            self._write(f"{'resume' if number in self._paused else 'pause'} q{number}")
            self._paused ^= {number}

    def _remove(self) -> None:
        if self._statements:
            number = self._choose.choice(list(self._statements))
            self._write(f"remove q{number}")
            del self._statements[number]
            self._values.pop(number, None)
            self._paused.discard(number)
            self._subscriptions = {s: n for s, n in self._subscriptions.items() if n != number}
