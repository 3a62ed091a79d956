"""Random histories of LIMIT and DISJOINT, of statements that are paused and subscribed often."""

from __future__ import annotations

import json

from generators.choosers import RandomChooser

__all__ = ["limited_history"]

STATEMENTS = (
    "S//a{asks} LIMIT {n} PER {t} s GRACE 0 s",
    "S//a{asks} LIMIT {n} PER {t} s",
    "S//a{asks} NEXT {{, 5 s}} S//b LIMIT {n} PER {t} s GRACE 0 s",
    "S//a{asks} NOT FOLLOWED BY {{, 2 s}} S//b LIMIT {n} PER {t} s GRACE 1 s",
    "S//a{asks}->x FOLLOWED BY {{x/k = y/k, 4 s}} S//b->y LIMIT {n} PER {t} s BY x/k",
    "SELECT <n>{{count()}}</n> FROM S//a{asks}->x WINDOW 3 s BY x/k HAVING count() >= 1"
    " LIMIT {n} PER {t} s BY x/k GRACE 0 s",
    "SELECT DISJOINT * FROM S//a{asks}->x+ WITHIN {t} s GRACE 0 s",
    "SELECT DISJOINT * FROM S//a{asks} FOLLOWED BY {{, 4 s}} S//b GRACE 1 s",
)

LAST = "document 99 S 00:10:00  <z/>"
"""What settles all that has come."""


def limited_history(seed: int) -> str:
    """Return the history of a seed as text."""
    return _History(RandomChooser(seed)).text()


class _History:
    def __init__(self, chooser: RandomChooser) -> None:
        self._choose = chooser
        self._lines: list[str] = []
        self._is_paused: dict[int, bool] = {}
        self._assigned: list[int] = []
        self._subscriptions: list[str] = []
        self._second = 10

    def text(self) -> str:
        for number in range(self._choose.integer(1, 3)):
            self._register(number)
        changes = [self._pause_or_resume] * 2 + [self._subscribe] * 3 + [self._unsubscribe] * 2
        rare = [self._restart, self._drain]
        for number in range(1, self._choose.integer(11, 26)):
            for _ in range(self._choose.choice((0, 0, 1, 1, 2))):
                self._choose.choice((*changes, *rare))()
            self._document(number)
        return "\n".join(["# Generated.", "lateness 5 s", *self._lines, LAST, ""])

    def _register(self, number: int) -> None:
        is_assigned = self._choose.choice((True, False))
        statement = self._choose.choice(STATEMENTS).format(
            asks="[v > $least]" if is_assigned else "",
            n=self._choose.choice((1, 1, 2)),
            t=self._choose.choice((2, 3, 6, 9)),
        )
        self._lines.append(f"register q{number}\n    {statement}")
        self._is_paused[number] = False
        if is_assigned:
            self._assigned.append(number)
            self._subscribe()

    def _document(self, number: int) -> None:
        self._second += self._choose.choice((0, 1, 1, 1, 2, -1))
        name = self._choose.choice("aab")
        v, k = self._choose.choice("12"), self._choose.choice("xy")
        xml = f"<{name}><v>{v}</v><k>{k}</k></{name}>"
        self._lines.append(f"document {number} S 00:00:{self._second:02}  {xml}")

    def _pause_or_resume(self) -> None:
        number = self._choose.choice([*self._is_paused])
        self._lines.append(f"{'resume' if self._is_paused[number] else 'pause'} q{number}")
        self._is_paused[number] ^= True

    def _subscribe(self) -> None:
        if self._assigned:
            self._subscriptions.append(f"s{len(self._lines)}")
            values = json.dumps({"least": self._choose.choice((0, 0, 0, 1))})
            number = self._choose.choice(self._assigned)
            self._lines.append(f"subscribe {self._subscriptions[-1]} q{number} {values}")

    def _unsubscribe(self) -> None:
        if self._subscriptions:
            name = self._choose.choice(self._subscriptions)
            self._subscriptions.remove(name)
            self._lines.append(f"unsubscribe {name}")

    def _restart(self) -> None:
        self._lines.append("restart")

    def _drain(self) -> None:
        self._lines.append("drain")
