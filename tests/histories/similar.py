"""Random histories of joins by similarity: thresholds come and go, and look back."""

from __future__ import annotations

import json
from xml.sax.saxutils import escape

from generators.choosers import RandomChooser
from generators.similar_cases import similar_text

from histories.coming import Happenings

__all__ = ["similar_history"]

MEASURES = {
    "similar(a/t, b/t)": (0.25, 1 / 3, 0.5, 0.6, 0.8, 1, 0),
    "containment(words(b/t), words(a/t))": (0.3, 0.5, 1),
    "overlap(words(a/t), words(b/t))": (1, 2, 3),
    "jaccard(shingles(a/t, 2), shingles(b/t, 2))": (0.2, 0.5, 1),
}


def similar_history(seed: int) -> str:
    """Return the history of a seed as text."""
    return _History(RandomChooser(seed)).text()


class _History(Happenings):
    def __init__(self, chooser: RandomChooser) -> None:
        super().__init__(chooser)
        self._thresholds: dict[int, tuple[float, ...]] = {}
        self._documents = self._subscribed = 0

    def text(self) -> str:
        lateness = self.choose.choice(["1 d", "1 h", "10 m"])
        self._register()
        usual = [self._document] * 8 + [self._subscribe] * 3
        rare = [self._register, self._unsubscribe, self._remove, self._restart, self._drain]
        for _ in range(self.choose.choice((12, 16, 24))):
            self.choose.choice((*usual, *rare))()
        return "\n".join(["# Generated.", f"lateness {lateness}", *self._lines, ""])

    def _document(self) -> None:
        self._documents += 1
        minute = max(0, 6 * self._documents - self.choose.integer(0, 20))
        text = escape(similar_text(self.choose))
        stream = self.choose.choice("SST")
        self._lines.append(
            f"document {self._documents} {stream} {12 + minute // 60}:{minute % 60:02}"
            f" <i><t>{text}</t></i>"
        )

    def _register(self) -> None:
        number = self.choose.integer(0, 2)
        measure = self.choose.choice(list(MEASURES))
        self._thresholds[number] = MEASURES[measure]
        operator = self.choose.choice(["FOLLOWED BY", "JOIN"])
        window = self.choose.choice(["1 h", "20 m", "INF"])
        asked = self.choose.choice([">=", ">"])
        self._lines.append(
            f"register q{number}{self._since()}\n"
            f"    *//i->a {operator} {{{measure} {asked} $least, {window}}} S//i->b"
        )
        self._subscribe_to(number)

    def _subscribe(self) -> None:
        if self._thresholds:
            self._subscribe_to(self.choose.choice(list(self._thresholds)))

    def _subscribe_to(self, number: int) -> None:
        self._subscribed += 1
        self._subscriptions.append(f"s{self._subscribed}")
        values = json.dumps({"least": self.choose.choice(self._thresholds[number])})
        self._lines.append(f"subscribe s{self._subscribed} q{number}{self._since()} {values}")

    def _since(self) -> str:
        return self.choose.choice(["", "", f" since {self.choose.integer(0, self._documents)}"])

    def _remove(self) -> None:
        if self._thresholds:
            number = self.choose.choice(list(self._thresholds))
            del self._thresholds[number]
            self._lines.append(f"remove q{number}")
            of_others = {f"q{n}" for n in self._thresholds}
            own = {
                line.split()[1]
                for line in self._lines
                if line.startswith("subscribe") and line.split()[2] in of_others
            }
            self._subscriptions = [name for name in self._subscriptions if name in own]
