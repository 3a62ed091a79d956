"""Random cases of ordered queries: statements, streams and orders of arrival, as case texts."""

from __future__ import annotations

import json

from generators.choosers import Chooser

__all__ = [
    "Names",
    "Statements",
    "Unit",
    "absence_case",
    "case_text",
    "case_with_reader",
    "ordered_case",
    "seconds",
]

TYPES = ("a", "b", "c")


class Names:
    """Fresh names of variables."""

    def __init__(self) -> None:
        self.count = 0

    def fresh(self) -> str:
        """Return a name that is not used yet."""
        self.count += 1
        return f"v{self.count}"


HELD = (
    *("p > $least", "p >= $least", "p < $least", "p > $least", "p < $least"),
    *("p > count(k) * $least - 1", "p != count(k) * $least", "p mod 2 < $least - 1"),
    *("k = $key and p > $least or k = 'y'", "not(k = $key and p > $least)"),
    *("not(k = $key) or p < $least", "p and not(k = $key or p * $least > 3) or p = 2"),
    *("k = 'x' and p > 1 or k = 'y'", "not(k = 'x' and p)"),
)
"""Conditions of a number, and a key, with parameters."""


class Unit:
    """A block or alternatives, and the variables that each binds: its node, its key, a number."""

    def __init__(self, chooser: Chooser, names: Names, *, may_be_several: bool = True) -> None:
        self.nodes: list[str] = []
        self.keys: list[str] = []
        self.numbers: list[str] = []
        count = 2 if may_be_several and chooser.integer(0, 7) == 0 else 1
        blocks = [self._block(chooser, names) for _ in range(count)]
        self.text = blocks[0] if count == 1 else f"({' | '.join(blocks)})"

    def _block(self, chooser: Chooser, names: Names) -> str:
        stream = chooser.choice(["S", "S", "S", "S", "*", "T"])
        text = f"{stream}//{chooser.choice(TYPES)}"
        if chooser.integer(0, 2) == 0:
            key = names.fresh()
            self.keys.append(key)
            text += f"[k->{key}]"
        elif chooser.integer(0, 4) == 0:
            constant = chooser.choice(["'x'", "'y'", "$key"])
            text += f"[k = {constant}]"
        if chooser.integer(0, 4) == 0:
            number = names.fresh()
            self.numbers.append(number)
            text += f"[p->{number}]"
        elif chooser.integer(0, 7) == 0:
            text += f"[{chooser.choice(HELD)}]"
        node = names.fresh()
        self.nodes.append(node)
        return f"{text}->{node}"


class Statements:
    """Makes statements in which something is decided."""

    def __init__(self, chooser: Chooser) -> None:
        self.chooser = chooser
        self.names = Names()

    def predicate(self, left: list[Unit], right: Unit) -> str:
        """Return a predicate over what stands before and a unit, or nothing."""
        chooser = self.chooser
        terms = [self.comparison(left, right) for _ in range(chooser.choice([0, 0, 1, 1, 2]))]
        known = [each for each in terms if each]
        if not known:
            return ""
        return f" {chooser.choice(['AND', 'OR'])} ".join(known)

    def comparison(self, left: list[Unit], right: Unit) -> str:
        """Return a comparison of one thing on either side."""
        chooser = self.chooser
        lefts = self.values(left)
        rights = self.values([right])
        operator = chooser.choice(["=", "=", "=", "!=", "<="])
        return f"{chooser.choice(lefts)} {operator} {chooser.choice(rights)}"

    def values(self, units: list[Unit]) -> list[str]:
        """Return what units can be compared by."""
        keys = [key for unit in units for key in (*unit.keys, *unit.numbers)]
        nodes = [node for unit in units for node in unit.nodes]
        paths = [f"{node}/{self.chooser.choice('kp')}" for node in nodes]
        if self.chooser.integer(0, 15) == 0:
            paths += [f"revision({node})" for node in nodes]
        return keys * 3 + paths

    def window(self) -> str:
        """Return a window."""
        return self.chooser.choice(["2 s", "3 s", "5 s", "8 s", "12 s", "$within"])

    def unless(self, units: list[Unit], *, needs_window: bool) -> str:
        """Return an UNLESS, now and then."""
        if self.chooser.integer(0, 2):
            return ""
        unit = Unit(self.chooser, self.names)
        window = f", {self.window()}" if needs_window or self.chooser.integer(0, 2) == 0 else ""
        return f" UNLESS {{{self.predicate(units, unit)}{window}}} {unit.text}"

    def source(self, depth: int, *, is_bounded: bool = False) -> tuple[str, list[Unit]]:
        """Return a from without its clauses, and its units."""
        chooser = self.chooser
        within = chooser.integer(0, 3) == 0
        is_bounded = is_bounded or within
        text, units = self.operand(depth, is_bounded)
        if chooser.integer(0, 4) == 0:
            text += self.unless(units, needs_window=True)
        for _ in range(chooser.integer(0 if depth == 0 else 1, 2)):
            text, units = self.further(text, units, depth, is_bounded)
        if within:
            text += f" WITHIN {self.window()}"
        if chooser.integer(0, 7) == 0:
            text += f" SAME ({chooser.choice(['/*/k', '//k'])})"
        if chooser.integer(0, 6) == 0:
            text += f" WHERE {self.where(units)}"
        return text, units

    def operand(self, depth: int, is_bounded: bool) -> tuple[str, list[Unit]]:
        if depth > 0 and self.chooser.integer(0, 2) == 0:
            text, units = self.source(depth - 1, is_bounded=is_bounded)
            return f"({text})", units
        unit = Unit(self.chooser, self.names)
        return unit.text, [unit]

    def further(
        self, text: str, units: list[Unit], depth: int, is_bounded: bool
    ) -> tuple[str, list[Unit]]:
        chooser = self.chooser
        kind = chooser.choice(
            ["NEXT", "NEXT", "FOLLOWED BY", "JOIN", "NOT FOLLOWED BY", "NOT JOIN", "UNLESS"]
        )
        is_bare = is_bounded and chooser.integer(0, 1) == 0
        window = "" if is_bare else f", {self.window()}"
        if kind.startswith("NOT"):
            unit = Unit(chooser, self.names)
            return f"{text} {kind} {{{self.predicate(units, unit)}{window}}} {unit.text}", units
        if kind == "UNLESS":
            kind, has_unless = "FOLLOWED BY", True
        else:
            has_unless = kind == "NEXT" and chooser.integer(0, 2) == 0
        right, own = self.operand(depth, is_bounded)
        braces = f"{{{self.predicate(units, chooser.choice(own))}{window}}}"
        text = f"{text} {kind} {braces} {right}"
        if has_unless:
            text += self.unless([*units, *own], needs_window=False)
        return text, [*units, *own]

    def where(self, units: list[Unit]) -> str:
        """Return a condition of a whole tuple."""
        left, right = (self.chooser.choice(self.values(units)) for _ in range(2))
        return self.chooser.choice([f"{left} = {right}", f"{left} != {right}", "dur() >= 2 s"])

    def statement(self) -> str:
        """Return a whole statement."""
        chooser = self.chooser
        text, units = self.source(chooser.choice([0, 1, 1, 2]))
        variables = [v for unit in units if len(unit.nodes) == 1 for v in (*unit.nodes, *unit.keys)]
        if variables and chooser.integer(0, 3) == 0:
            text = f"SELECT {chooser.choice(variables)} FROM {text}"
        if chooser.integer(0, 4):
            text += f" GRACE {chooser.choice([0, 1, 2, 4])} s"
        return text


def ordered_case(chooser: Chooser) -> str:
    """Return the text of a case: one or two statements, documents and ticks."""
    return case_with_reader(chooser, Statements(chooser).statement(), one_in=5)


def absence_case(chooser: Chooser) -> str:
    """Return the text of a case in which nothing is asked but when something must be absent."""
    first, second, absent = chooser.choice(["abc", "bca", "cab", "aab"])
    window = chooser.choice(["1 s", "1 s", "2 s", "$within"])
    text = (
        f"*//{first} {chooser.choice(['FOLLOWED BY', 'NEXT'])} {{, 12 s}} *//{second}"
        f" UNLESS {{, {window}}} *//{absent} GRACE {chooser.choice([4, 20])} s"
    )
    return case_with_reader(chooser, text)


def case_with_reader(chooser: Chooser, first: str, *, one_in: int = 6, assigned: int = 2) -> str:
    """Return the text of a case of a statement; in one of so many another one reads its matches."""
    queries = [f"query q\n    {first}"]
    if chooser.integer(0, one_in - 1) == 0:
        if not first.startswith("SELECT"):
            first = f"SELECT * FROM {first}"
        reader = Statements(chooser).statement().replace("T//", "P//")
        queries = [f"query q\n    {first} PUBLISH P", f"query r\n    {reader}"]
    return case_text(chooser, queries, assigned)


def seconds(chooser: Chooser, count: int) -> list[int]:
    """Return when documents are, close together; some are late."""
    span = chooser.choice([6, 12, 20])
    times = sorted(chooser.integer(10, 10 + span) for _ in range(count))
    for _ in range(chooser.choice([0, 0, 2, 5, 10])):
        i, j = (chooser.integer(0, count - 1) for _ in range(2))
        times[i], times[j] = times[j], times[i]
    return times


def case_text(chooser: Chooser, queries: list[str], assigned: int = 2) -> str:
    """Return the text of a case of queries, each assigned a few times, with documents and ticks."""
    lines = [f"lateness {chooser.choice([0, 2, 5, 100, 100])} s"]
    for query in queries:
        lines += [query, *assignments(chooser, query, assigned)]
    count = chooser.integer(6, 16)
    if chooser.integer(0, 7) == 0:
        lines.append(f"register q after {chooser.integer(1, count // 2)}")
    lines.append("")
    for number, second in enumerate(seconds(chooser, count), 1):
        if chooser.integer(0, 11) == 0:
            lines.append(f"tick {number} 00:00:{second}")
        else:
            line = document(chooser, number, second)
            is_of_key = any("revision(" in query for query in queries)
            key = f" key={chooser.choice('fgh')}" if is_of_key else ""
            lines.append(line.replace("  <", f"{key}  <", 1))
    if chooser.integer(0, 4):
        lines.append(f"tick {count + 1} 00:10:00")
    return "\n".join(lines) + "\n----\n"


def assignments(chooser: Chooser, query: str, most: int) -> list[str]:
    """Return the values of a query's parameters, once or more often."""
    rows = []
    for _ in range(chooser.integer(1, most) if "$" in query else 0):
        values: dict[str, str | int] = {
            "key": chooser.choice("xy"),
            "within": f"{chooser.choice('258')} s",
        }
        if "$long" in query or "$most" in query:
            values["long"] = f"{chooser.choice('149')} s"
            values["most"] = chooser.integer(1, 2)
        if "$text" in query:
            values["text"] = str(chooser.integer(1, 3))
        if "$least" in query:
            values["least"] = chooser.integer(0, 3)
        used = {name: value for name, value in values.items() if f"${name}" in query}
        if "$shortest" in query:
            used["shortest"] = f"{chooser.choice('12')} s"
        if "$c" in query:
            used["c"] = chooser.choice([0.02, 0.1, 0.5, 0.9])
        rows.append(f"parameters {query.split()[1]} {json.dumps(used)}")
    return rows


def document(chooser: Chooser, number: int, second: int) -> str:
    stream = chooser.choice(["S", "S", "S", "S", "T"])
    kind = chooser.choice(TYPES)
    keys = "".join(
        f"<k>{chooser.choice('xxxy')}</k>" for _ in range(chooser.choice([0, 1, 1, 1, 1, 1, 2]))
    )
    numbers = "".join(f"<p>{chooser.integer(1, 3)}</p>" for _ in range(chooser.choice([0, 1, 1])))
    # It arrives after all event times, so that its own is not moved.
    xml = f"<{kind}>{keys}{numbers}</{kind}>"
    return f"document {number} {stream} 00:00:{second:02} arrival=01:00  {xml}"
