"""Statements that count runs, and documents with which sums and steps might differ."""

from __future__ import annotations

import random
from collections.abc import Mapping

from lxml import etree

from broker.matching.match import Match
from support.kit import Case, parse_case

__all__ = ["SOURCES", "all_asked", "asked", "paths", "stream", "stream_of_kinds"]

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
        minutes, seconds = divmod(max(second - late, 10), 60)
        own.append(f"document {number} S 00:{minutes:02}:{seconds:02}  {xml}")
    return "\n".join([*own, f"tick {count + 1} 10:00:00", "----", ""])


def stream_of_kinds(seed: int, count: int = 14) -> str:
    """Return documents of the same few kinds, keys and values, some out of order."""
    chance = random.Random(seed)
    seconds = sorted(chance.randrange(10, 40) for _ in range(count))
    for _ in range(2):
        i, j = chance.randrange(count), chance.randrange(count)
        seconds[i], seconds[j] = seconds[j], seconds[i]
    own = []
    for number, second in enumerate(seconds, 1):
        kind, key, value = chance.choice("aaabbc"), chance.choice("xxy"), chance.randrange(4)
        xml = f"<{kind}><k>{key}</k><v>{value}</v></{kind}>"
        own.append(f"document {number} S 00:00:{second} arrival=01:00  {xml}")
    return "\n".join([*own, f"tick {count + 1} 10:00:00", "----", ""])


def _values(chance: random.Random) -> list[int | str]:
    return [
        chance.choice([0, 1, 2, 3, 4, 5, "2.0", "one"] if not chance.randrange(8) else [0, 1, 2, 3])
        for _ in range(chance.choice([1] * 12 + [0, 2]))
    ]


def asked(statement: str, documents: str, lateness: int = 6) -> Case:
    """Return a case of one statement, `q`."""
    return all_asked({"q": statement}, documents, lateness)


def all_asked(statements: Mapping[str, str], documents: str, lateness: int = 6) -> Case:
    """Return a case of statements by name."""
    queries = "\n".join(f"query {name}\n    {text}" for name, text in statements.items())
    return parse_case(f"{queries}\n\nlateness {lateness} s\n{documents}")


def paths(match: Match) -> list[tuple[int, ...]]:
    """Return the documents of each path of a graph."""
    graph = etree.fromstring(match.output)
    docid = {each.get("n"): int(each.get("docid", "")) for each in graph.iter("document")}
    behind: dict[str, list[str]] = {str(n): [] for n in docid}
    for step in graph.iter("step"):
        behind[step.get("from", "")].append(step.get("to", ""))
    found = []
    waiting = [[each.get("n", "")] for each in graph.iter("document") if each.get("first")]
    while waiting:
        path = waiting.pop()
        if not behind[path[-1]]:
            found.append(tuple(docid[n] for n in path))
        waiting += [[*path, each] for each in behind[path[-1]]]
    assert graph.get("count") == str(len(found))
    return found
