"""Random cases of statements with LOSS: chains with lossy units, and absences that are lossy."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import xscl
from generators.choosers import Chooser
from generators.ordered_cases import Statements, Unit, assignments, case_with_reader

__all__ = ["given_case", "loss_case"]

DELAYS = (
    "uniform(0 s, 6 s)",
    "uniform(1 s, 4 s)",
    "uniform($shortest, 9 s)",
    "cdf(2 s: 0.5, 5 s: 0.8)",
    "cdf(0 s: 0.2, 3 s: 0.9)",
)
CONFIDENCES = ("", "", " CONFIDENCE 0.05", " CONFIDENCE 0.01", " CONFIDENCE 0.4", " CONFIDENCE $c")
UNCERTAIN = ("uniform(0 s, 6 s)", "cdf(2 s: 0.5, 5 s: 0.8)", "exp(3 s)")
BETWEEN = (
    "P//c[k->x] JOIN {x = y, 8 s} S//d[k->y]",
    "S//a[k->x] FOLLOWED BY {x = y, 8 s} P//c[k->y]",
    "S//a[k->x] FOLLOWED BY {x = y, 8 s} P//c[k->y] LOSS 0.5 DELAY uniform(0 s, 6 s)"
    " FOLLOWED BY {y = z, 8 s} S//c[k->z]",
)
"""Statements that read P, whose matches have a `c` with a `k`."""
READERS = (
    *BETWEEN,
    "P//c[k->x]",
    "P//a[k->x] JOIN {x = y, 9 s} P//c[k->y]",
    "(P//c[k->x] JOIN {x = y, 5 s} S//d[k->y]) FOLLOWED BY {y = z, 5 s} S//a[k->z]",
    "(P//c[k->x] | S//d[k->x]) NEXT {x = y, 9 s} P//c[k->y] UNLESS {x = u} S//b[k->u]",
    "P//c[k->x] NOT FOLLOWED BY {x = y, 3 s} S//d[k->y]",
    "S//a[k->x] NOT FOLLOWED BY {x = y, 6 s} P//c[k->y]",
    "S//a[k->x] NEXT {x = y, 4 s} P//c[k->y]+ {x = y, 5 s}",
    "S//a[k->x] FOLLOWED BY {x = y, 9 s} P//c[k->y]+ {y = y, 4 s} MATCH ANY",
    "P//c[k->x] WINDOW 5 s BY x HAVING count() >= 1",
    "P//c[k->x] FOLLOWED BY {x = y, 5 s} S//d[k->y] LIMIT 2 PER 4 s BY x",
)
DATA = (*["$p"] * 6, "$q", "$q", "'1'", "1", "concat($t, '')", "$n + 0")
TERMS = (*["{}"] * 6, "lower-case({})", "{} + 0")


class _Lossy(Statements):
    """Makes chains in which something may be lost."""

    def chain(self) -> tuple[str, list[Unit]]:
        """Return a from of FOLLOWED BY, lossy here and there, and its units."""
        chooser = self.chooser
        first = Unit(chooser, self.names)
        text, units = first.text, [first]
        if chooser.integer(0, 5) == 0:
            second = Unit(chooser, self.names)
            predicate = self.predicate(units, second)
            text = f"({text} JOIN {{{predicate}, {self.window()}}} {second.text})"
            units.append(second)
        count = chooser.choice([1, 2, 2, 3])
        is_lost_before = False
        for number in range(count):
            may_be_lost = number < count - 1
            is_lost = may_be_lost and chooser.integer(0, 3) > 0
            unit = Unit(chooser, self.names, may_be_several=not is_lost)
            window = "" if self.is_bounded and chooser.integer(0, 2) == 0 else f", {self.window()}"
            text += f" FOLLOWED BY {{{self.keyed(units, unit)}{window}}} {unit.text}"
            if is_lost:
                # The oracle has no sum of an exponential delay and another.
                is_alone = not is_lost_before and number == count - 2
                text += self.loss(may_be_exponential=is_alone)
            is_lost_before = is_lost
            units.append(unit)
            if chooser.integer(0, 4) == 0:
                text += self.absent("UNLESS", units, needs_window=False)
        if chooser.integer(0, 3) == 0:
            kind = chooser.choice(["NOT FOLLOWED BY", "NOT JOIN"])
            text += self.absent(kind, units, needs_window=not self.is_bounded)
        return text, units

    def keyed(self, units: list[Unit], unit: Unit) -> str:
        """Return a predicate, more often than not with an equality with the unit before."""
        predicate = self.predicate(units, unit)
        if self.chooser.integer(0, 2) == 0:
            return predicate
        lefts = [name for each in units[-2:] for name in each.keys]
        if not lefts or not unit.keys:
            return predicate
        equality = f"{self.chooser.choice(lefts)} = {self.chooser.choice(unit.keys)}"
        return f"{equality} AND ({predicate})" if predicate else equality

    def loss(self, *, may_be_exponential: bool = True) -> str:
        """Return how a unit is lost."""
        chooser = self.chooser
        exponential = may_be_exponential and chooser.integer(0, 5) == 0
        delay = "exp(3 s)" if exponential else chooser.choice(DELAYS)
        return f" LOSS {chooser.choice(['0.1', '0.25', '0.5', '0'])} DELAY {delay}"

    def absent(self, kind: str, units: list[Unit], *, needs_window: bool) -> str:
        """Return an absence, lossy now and then."""
        chooser = self.chooser
        unit = Unit(chooser, self.names, may_be_several=False)
        has_window = needs_window or chooser.integer(0, 3) == 0
        window = f", {self.window()}" if has_window else ""
        text = f" {kind} {{{self.predicate(units, unit)}{window}}} {unit.text}"
        return text + (self.loss() if chooser.integer(0, 1) else "")

    def lossy(self) -> str:
        """Return a statement that is lossy, mostly."""
        chooser = self.chooser
        within = chooser.integer(0, 2) == 0
        self.is_bounded = within
        text, units = self.chain()
        if within:
            text += f" WITHIN {chooser.choice(['5 s', '8 s', '12 s', '$within'])}"
        if chooser.integer(0, 5) == 0:
            text += " SAME (//k)"
        if chooser.integer(0, 6) == 0:
            text += f" WHERE {self.where(units)}"
        if "LOSS" in text:
            text += chooser.choice(CONFIDENCES)
        if chooser.integer(0, 4):
            text += f" GRACE {chooser.choice([0, 0, 1, 3])} s"
        return text


def learned_case(chooser: Chooser) -> str:
    """Return the text of a case in which delays are learned from matches that come again."""
    window = chooser.choice(["4 s", "9 s"])
    delays = ["learned", chooser.choice(["learned", "uniform(0 s, 6 s)"])][
        : chooser.choice([1, 1, 2])
    ]
    text = chooser.choice(["S//a[k->k0]", "S//a[k->k0]", "(S//a[k->k0] | S//d[k->k0])"])
    for number, delay in enumerate(delays, 1):
        loss = f"LOSS {chooser.choice(['0.1', '0.5'])} DELAY {delay}"
        text += f" FOLLOWED BY {{k{number - 1} = k{number}, {window}}}"
        text += f" S//{'be'[number - 1]}[k->k{number}] {loss}"
    last = len(delays) + 1
    text += f" FOLLOWED BY {{k{last - 1} = k{last}, {window}}} S//c->n[k->k{last}]"
    if chooser.integer(0, 3) == 0:
        text += f" UNLESS {{k0 = u}} S//d[k->u]{chooser.choice(['', ' LOSS 0.5 DELAY exp(3 s)'])}"
    if chooser.integer(0, 3) == 0:
        text += " WITHIN 9 s"
    if chooser.integer(0, 5) == 0:
        text += " WHERE k0 = $key"
    elif chooser.integer(0, 5) == 0:
        text += " WHERE dur() >= 2 s"
    most = " CONFIDENCE 0.05" if "LOSS 0.1" in text else " CONFIDENCE 0.2"
    text += chooser.choice(["", " CONFIDENCE 0.05", most])
    text += f" GRACE {chooser.choice([0, 0, 1, 3])} s"
    is_published = chooser.integer(0, 3) == 0
    text = f"SELECT * FROM {text} PUBLISH P" if is_published else text
    lines = [f"learning {chooser.choice(['1 2', '1 5', '2 3'])}"]
    lines.append(f"lateness {chooser.choice([2, 5, 100, 100])} s")
    query = f"query q\n    {text}"
    lines += [query, *assignments(chooser, query, 2)]
    if is_published:
        lines.append("query r\n    P//c[k->p] NEXT {p = s, 5 s} S//a[k->s] GRACE 3 s")
    return "\n".join([*lines, *_in_turns(chooser, "abecabcd")]) + "\n----\n"


def given_case(chooser: Chooser) -> str:
    """Return the text of a case in which keys equal one another, and what assignments give."""
    last = chooser.choice([2, 2, 3])
    text, keys = "S//a[k->k0]", ["k0"]
    for number in range(1, last + 1):
        text += f" FOLLOWED BY {{{_equal(chooser, keys, f'k{number}', keys)}, 8 s}}"
        keys.append(f"k{number}")
        text += f" S//{'abcd'[number]}[k->k{number}]"
        if number < last:
            text += " LOSS 0.5 DELAY uniform(0 s, 6 s)"
        if chooser.integer(0, 3) == 0:
            text += f" UNLESS {{{_equal(chooser, keys, f'n{number}', [])}}} S//e[k->n{number}]"
    lines = [f"query q\n    {text} GRACE 3 s"]
    for _ in range(3 if "$" in text else 0):
        values = {
            "p": chooser.choice(["1", "1", "2", 1, 2]),
            "q": chooser.choice(["1", "2", 1]),
            "t": chooser.choice(["1", "1.0"]),
            "n": chooser.choice([1, 2]),
        }
        used = {name: value for name, value in values.items() if f"${name}" in text}
        lines.append(f"parameters q {json.dumps(used)}")
    return "\n".join([*lines, *_in_turns(chooser, "abcdeacd", ["1", "1.0", "2"])]) + "\n----\n"


def _equal(chooser: Chooser, keys: Sequence[str], key: str, others: Sequence[str]) -> str:
    """Return a predicate of equalities with keys and data, of a key or of others."""
    found = [f"{keys[-1]} = {key}"] if chooser.integer(0, 2) else []
    for _ in range(chooser.choice([0, 1, 1, 2]) or not found):
        term = chooser.choice(TERMS).format(chooser.choice([key, key, *others]))
        # What a number is compared with must be given as one.
        data = ("1", "$n", "$n + 0") if "+" in term else DATA
        found.append(f"{term} = {chooser.choice(data if chooser.integer(0, 2) else keys)}")
    return chooser.choice([*[" AND "] * 5, " OR "]).join(found)


def published_case(chooser: Chooser) -> str:
    """Return the text of a case in which what is not certain is published, and read."""
    loss = f"LOSS {chooser.choice(['0.1', '0.5', '0.5'])} DELAY {chooser.choice(UNCERTAIN)}"
    text = f"S//a[k->x] FOLLOWED BY {{x = y, 6 s}} S//b[k->y] {loss}"
    text += " FOLLOWED BY {y = z, 6 s} S//c->n[k->z]"
    if chooser.integer(0, 2) == 0:
        text += f" UNLESS {{x = u}} S//d[k->u] LOSS 0.5 DELAY {chooser.choice(UNCERTAIN)}"
    queries = [f"query q\n    SELECT * FROM {text} GRACE {chooser.choice('0013')} s PUBLISH P"]
    last = "P"
    if chooser.integer(0, 2) == 0:
        between = _asked(chooser, chooser.choice(BETWEEN), "P")
        queries.append(f"query o\n    SELECT * FROM {between} PUBLISH R")
        last = chooser.choice("PR")
    queries.append(f"query r\n    {_asked(chooser, chooser.choice(READERS), last)}")
    lines = [f"lateness {chooser.choice([2, 5, 100])} s"]
    for query in queries:
        lines += [query, *assignments(chooser, query, 2)]
    return "\n".join([*lines, *_in_turns(chooser, "adbcdacc")]) + "\n----\n"


def _asked(chooser: Chooser, text: str, stream: str) -> str:
    """Return a statement that reads a published stream, mostly with CONFIDENCE."""
    asked = chooser.choice(["", *["0", "0.02", "0.1", "0.3", "0.5", "$c"] * 2])
    confidence = f" CONFIDENCE {asked}" if asked else ""
    grace = f" GRACE {chooser.choice('0013')} s"
    return f"{text.replace('P//', f'{stream}//')}{confidence}{grace}"


def _in_turns(chooser: Chooser, kinds: str, keys: Sequence[str] = "xxxy") -> Iterator[str]:
    """Yield documents whose kinds come in turns, mostly, and a tick."""
    count = chooser.integer(12, 26)
    times = [10 + number // 2 + chooser.integer(0, 2) for number in range(count)]
    for number, second in enumerate(times, 1):
        kind = kinds[(number + chooser.choice([0, 0, 0, 1, 5])) % 8]
        xml = f"<{kind}><k>{chooser.choice(keys)}</k></{kind}>"
        yield f"document {number} S 00:00:{second:02} arrival=01:00  {xml}"
    if chooser.integer(0, 4):
        yield f"tick {count + 1} 00:10:00"


def loss_case(chooser: Chooser) -> str:
    """Return the text of a case: a statement, documents and ticks."""
    if chooser.integer(0, 4) == 0:
        return learned_case(chooser)
    if chooser.integer(0, 2) == 0:
        return published_case(chooser)
    if chooser.integer(0, 3) == 0:
        return given_case(chooser)
    first = _Lossy(chooser).lossy()
    while any(each.is_error for each in xscl.check(first)[1]):
        first = _Lossy(chooser).lossy()  # it cannot reach its confidence, say
    return case_with_reader(chooser, first)
