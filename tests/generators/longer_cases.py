"""Longer cases: documents come again and again, later, while what came before is forgotten.

What remembers works in pieces, and looks for what is of no use only once there is much of it.  In a
case of ten documents it hardly begins to.  So the last documents of a case come again, now and then
and at its end, and time goes on; in some cases each stands among elements whose values are nowhere
else.
"""

from __future__ import annotations

import re

from oracle.tree import is_well_formed

from generators.choosers import Chooser

__all__ = ["longer"]

DAY_S = 86_400

LATENESSES = {1: ("0 s", "0 s", "2 s", "5 s"), 300: ("0 s", "10 m", "10 m", "1 h")}
"""What documents may be late, by the seconds between two times: nothing is kept for long."""

_LINE = re.compile(
    r"(?P<word>document|tick) \S+(?P<stream> \S+)? (?P<time>[\d:]+|-)"
    r"(?: arrival=(?P<arrival>\S+))?(?: key=(?P<key>\S+))?(?P<xml> .*)?$"
)


def longer(text: str, chooser: Chooser) -> str:
    """Return a case or a history with so many documents more, and with little lateness."""
    return _Longer(text, chooser).text()


class _Longer:
    def __init__(self, text: str, chooser: Chooser) -> None:
        self._choose = chooser
        self._lines = text.split("\n")
        self._step_s = 1 if re.search(r"^document .* \d+:\d+:\d+ ", text, re.MULTILINE) else 300
        self._is_crowded = chooser.integer(0, 2) == 0
        self._wanted = chooser.choice([20, 30] if self._is_crowded else [30, 40, 60])
        self._written: list[str] = []
        self._came: list[re.Match[str]] = []
        self._number = 0
        self._later_s = 0
        self._others = 0

    def text(self) -> str:
        """Return it as text."""
        found = [_LINE.match(line) for line in self._lines]
        last = max((at for at, one in enumerate(found) if one and one["xml"]), default=-1)
        for at, (line, one) in enumerate(zip(self._lines, found, strict=True)):
            if one is None:
                late = f"lateness {self._choose.choice(LATENESSES[self._step_s])}"
                self._written.append(late if line.startswith("lateness ") else line)
                continue
            self._happens(one)
            self._came.append(one)
            if at == last:
                while self._number < self._wanted:
                    self._again()
            elif self._choose.integer(0, 5) == 0 and self._number < self._wanted:
                self._again()
        return "\n".join(self._written)

    def _again(self) -> None:
        """Have the last documents come again, later."""
        times = [_seconds(one["time"]) for one in self._came if one["time"] != "-"]
        span = max(times, default=0) - min(times, default=0) + self._step_s
        later = span * self._choose.choice([1, 2, 2, 4]) // 2
        self._later_s += later - later % self._step_s
        for one in self._came[-self._choose.choice([3, 6, 20]) :]:
            self._happens(one)

    def _happens(self, one: re.Match[str]) -> None:
        """Write what happens, as much later as it is by now."""
        self._number += 1
        words = [f"{one['word']} {self._number}{one['stream'] or ''} {self._at(one['time'])}"]
        if one["arrival"]:
            words.append(f"arrival={self._at(one['arrival'])}")
        if one["key"]:
            words.append(f"key={one['key']}")
        xml = one["xml"] or ""
        if xml and self._is_crowded and self._choose.integer(0, 1):
            xml = f"  {self._crowded(xml.strip())}"
        self._written.append(" ".join(words) + xml)

    def _crowded(self, xml: str) -> str:
        """Return a document within one that has others, whose values are nowhere else."""
        if not is_well_formed(xml.encode()):
            return xml
        known = [one["xml"].strip() for one in self._came if one["xml"]]
        others = [self._choose.choice(known) for _ in range(self._choose.integer(1, 3)) if known]
        own = [re.sub(r">[^<>]+</", self._new_value, each) for each in others]
        return f"<r>{xml}{''.join(each for each in own if is_well_formed(each.encode()))}</r>"

    def _new_value(self, _: re.Match[str]) -> str:
        self._others += 1
        return f">{1 + self._others / 1000}</"

    def _at(self, time: str) -> str:
        """Return a time as it is by now."""
        if time == "-":
            return time
        days, rest = divmod(_seconds(time) + self._later_s, DAY_S)
        clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}"
        return f"2026-01-{1 + days:02}T{clock}" if days else clock


def _seconds(time: str) -> int:
    """Return the seconds of a time of day."""
    hours, minutes, seconds, *_ = map(int, f"{time}:0".split(":"))
    return 3600 * hours + 60 * minutes + seconds
