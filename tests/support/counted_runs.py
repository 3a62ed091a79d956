"""Statements that count runs, and documents with which sums and steps might differ."""

from __future__ import annotations

import random

from support.kit import Case, parse_case

__all__ = ["SOURCES", "asked", "stream"]

SOURCES = [
    "S//a+ WITHIN 8 s",
    "S//a[v->v]+ {v > 1} WITHIN 8 s",
    "S//a[v->v]+ {prev(v) > 1} WITHIN 8 s",
    "S//a[v->v]+ {prev(v, 3) > 1} WITHIN 8 s",
    "S//a+ {, 3 s}",
    "S//a+ {, 3 s} WITHIN 8 s",
    "S//a[v->v]+ {v > prev(v)} WITHIN 8 s",
    "S//a[v->v]+ {prev(v) >= v} WITHIN 9 s SAME (//k)",
    "S//a[v->v]+ {v < prev(v), 5 s}",
    "S//a[v->v]+ {v <= prev(v) AND v < 9, 4 s} WITHIN 9 s",
    "S//a[v->v]+ {v >= prev(v)}",
    "S//a[v->v]+ {v > prev(v, 2), 9 s}",
    "S//a[v->v][w->w]+ {v > prev(w) - 1 AND prev(v) < 4} WITHIN 9 s",
    "S//a->a+ {a/v >= prev(a/w), 6 s}",
    "S//a->a+ {a/v > prev(a/v)} WITHIN 8 s",
    "S//a[v->v]+ {v > 1 OR v = 0} WITHIN 8 s",
    "S//a[v->v]+ {v != prev(v)} WITHIN 8 s",
    "S//a[k->k]+ {k = prev(k), 6 s}",
]
"""Runs that sums can tell, and in the end some that they cannot."""


def stream(seed: int, count: int = 16) -> str:
    """Return documents of the same few numbers: ties, late ones, several or no values, twins."""
    chance = random.Random(seed)
    second, own = 10, []
    for number in range(1, count + 1):
        second += chance.choice([0, 1, 1, 2, 3])
        late = chance.choice([0, 0, 0, 0, 0, 0, 2, 5, 9]) if number > 2 else 0
        values = ["".join(f"<v>{v}</v>" for v in _values(chance)) for _ in range(2)]
        more = f"<w>{chance.randrange(4)}</w><k>{chance.choice('xxy')}</k>"
        xml = f"<a>{values[0]}{more}</a>"
        if chance.randrange(9) == 0:
            xml = f"<d>{xml}<a>{values[1]}{more}</a></d>"
        own.append(f"document {number} S 00:00:{max(second - late, 10)}  {xml}")
    return "\n".join([*own, f"tick {count + 1} 10:00:00", "----", ""])


def _values(chance: random.Random) -> list[int | str]:
    return [
        chance.choice([0, 1, 2, 3, 4, 5, "2.0", "one"] if not chance.randrange(8) else [0, 1, 2, 3])
        for _ in range(chance.choice([1] * 12 + [0, 2]))
    ]


def asked(statement: str, documents: str, lateness: int = 6) -> Case:
    """Return a case of one statement."""
    return parse_case(f"query q\n    {statement}\n\nlateness {lateness} s\n{documents}")
