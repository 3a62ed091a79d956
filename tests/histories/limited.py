"""Random histories of LIMIT and DISJOINT, of statements that are paused and subscribed often."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generators.choosers import RandomChooser

from histories.coming import ComingAndGoing

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


def limited_history(seed: int) -> str:
    """Return the history of a seed as text."""
    return _Limited(RandomChooser(seed)).text()


class _Limited(ComingAndGoing):
    def statement(self) -> str:
        return self.choose.choice(STATEMENTS).format(
            asks=self.choose.choice(("[v > $least]", "")),
            n=self.choose.choice((1, 1, 2)),
            t=self.choose.choice((2, 3, 6, 9)),
        )

    def values(self, statement: str) -> Mapping[str, Any]:
        return {"least": self.choose.choice((0, 0, 0, 1))}

    def document(self) -> str:
        name, v, k = self.choose.choice("aab"), self.choose.choice("12"), self.choose.choice("xy")
        return f"<{name}><v>{v}</v><k>{k}</k></{name}>"
