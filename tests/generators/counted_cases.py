"""Random cases of runs that are counted or drawn as graphs, as case texts."""

from __future__ import annotations

import re

from generators.choosers import Chooser
from generators.ordered_cases import Names, Statements, Unit, case_with_reader

__all__ = ["counted_any_case", "counted_case", "counted_source"]


def _with_parameters(chooser: Chooser, text: str) -> str:
    """Return a statement in which some constants are parameters, of one in three."""
    if chooser.integer(0, 2):
        return text
    if chooser.integer(0, 2):
        text = re.sub(r"SAME \((\S+)\)", r"SAME (\1 = $key)", text)
    if chooser.integer(0, 3) == 0:
        text = re.sub(r"WITHIN \d+ s", "WITHIN $within", text)
    if chooser.integer(0, 3) == 0:
        text = text.replace("[k->", "[k = $key][k->", 1)
    if chooser.integer(0, 1):
        text = re.sub(r"HAVING count\(\) >= \d", "HAVING count() >= $least", text)
    return text


class _Counted(Statements):
    """Makes statements whose runs are the paths of graphs."""

    def element(self, names: Names) -> tuple[str, str, str, str]:
        """Return a block that is repeated, its node, its key and its number."""
        chooser = self.chooser
        node, key, number = names.fresh(), names.fresh(), names.fresh()
        text = f"{chooser.choice(['S', 'S', 'S', '*'])}//{chooser.choice(['b', 'b', 'b', '*'])}"
        if chooser.integer(0, 2):
            text += f"[k->{key}]"
        else:
            key = f"{node}/k"
        if chooser.integer(0, 2):
            text += f"[p->{number}]"
        else:
            number = f"{node}/p"
        return f"{text}->{node}", node, key, number

    def statement(self) -> str:
        """Return a whole statement."""
        text, left, key = self.counted_source()
        text = self.outcome(text, left, key)
        if self.chooser.integer(0, 4):
            text += f" GRACE {self.chooser.choice([0, 1, 2, 4])} s"
        return _with_parameters(self.chooser, text)

    def counted_source(self) -> tuple[str, list[Unit], str]:
        """Return a repetition, what stands before it, and a key of its elements."""
        chooser = self.chooser
        text, _, key, number = self.element(self.names)
        left: list[Unit] = []
        terms = []
        for _ in range(chooser.choice([0, 1, 1, 2])):
            asked = [
                f"{number} >= prev({number})",
                f"{number} != prev({number}, 2)",
                f"{key} = prev({key})",
                f"{number} <= 2",
                f"prev({number}) > 1",
            ]
            terms.append(chooser.choice(asked))
        before = ""
        if chooser.integer(0, 1):
            left = [Unit(chooser, self.names, may_be_several=False)]
            before = left[0].text
            if chooser.integer(0, 5) == 0:
                left.append(Unit(chooser, self.names, may_be_several=False))
                kind = chooser.choice(["FOLLOWED BY", "JOIN"])
                before += f" {kind} {{, {chooser.choice('35')} s}} {left[1].text}"
            asked = f"{chooser.choice(self.values(left))} {chooser.choice(['=', '!='])} {key}"
            first = asked if chooser.integer(0, 2) == 0 else ""
            window = chooser.choice(["2 s", "5 s", "8 s", "$within"])
            before += f" FOLLOWED BY {{{first}, {window}}} "
            if chooser.integer(0, 3) == 0:
                asked = f"{chooser.choice(self.values(left))} {chooser.choice(['=', '!='])} {key}"
                terms.append(asked)
        gap = f", {self.window()}" if chooser.integer(0, 3) == 0 else ""
        each = f" {chooser.choice(['AND', 'AND', 'OR'])} ".join(terms)
        braces = f" {{{each}{gap}}}" if each or gap else ""
        text = f"{before}{text}+{braces}"
        if not before or chooser.integer(0, 3) == 0:
            text += f" WITHIN {chooser.choice('358')} s"
        if chooser.integer(0, 3) == 0:
            text += f" SAME ({chooser.choice(['/*/k', '//k'])})"
        if " JOIN " not in text:
            text += chooser.choice(["", " MATCH ANY"])
        return text, left, key

    def outcome(self, text: str, left: list[Unit], key: str) -> str:
        """Return a statement that counts what a source gives, or draws it."""
        chooser = self.chooser
        if chooser.integer(0, 1):
            return f"SELECT COMPRESSED FROM {text}"
        keys = []
        if chooser.integer(0, 1):
            keys.append(key)
        # BY takes values, and no functions.
        values = [value for value in self.values(left) if "(" not in value] if left else []
        if values and chooser.integer(0, 2) == 0:
            keys.append(chooser.choice(values))
        keys = list(dict.fromkeys(keys))
        text = f"SELECT <r>{{count()}}</r> FROM {text}" if chooser.integer(0, 1) else text
        text += f" WINDOW {chooser.choice(['0 s', '0 s', '3 s', '5 s', '$long'])}"
        text += f" BY {', '.join(keys)}" if keys else ""
        if chooser.integer(0, 2) == 0:
            text += f" HAVING count() >= {chooser.choice('23')}"
        if chooser.integer(0, 4) == 0:
            text += " LIMIT 1 PER 3 s"
        return text


def counted_case(chooser: Chooser) -> str:
    """Return the text of a case: a statement that counts runs, perhaps its reader, documents."""
    return case_with_reader(chooser, _Counted(chooser).statement())


class _Step:
    """A unit of a chain: its text, and what the next one can be compared with."""

    def __init__(self, chooser: Chooser, names: Names) -> None:
        node, key, number = names.fresh(), names.fresh(), names.fresh()
        text = f"{chooser.choice(['S', 'S', 'S', '*'])}//{chooser.choice('abb****')}"
        if chooser.integer(0, 1):
            text += f"[k->{key}]"
        else:
            key = f"{node}/k"
        if chooser.integer(0, 2) == 0:
            text += f"[p->{number}]"
        else:
            number = f"{node}/p"
        self.text = f"{text}->{node}"
        self.key, self.number = key, number
        self.is_repeated = False

    @property
    def values(self) -> list[str]:
        """What a unit behind it can be compared with."""
        values = [self.key, self.key, self.number]
        return [f"last({each})" for each in values] if self.is_repeated else values


class _CountedChains(Statements):
    """Makes statements that count the matches of a chain under MATCH ANY, or draw them."""

    def statement(self) -> str:
        """Return a whole statement."""
        text = self.outcome(*self.counted_source())
        if self.chooser.integer(0, 4):
            text += f" GRACE {self.chooser.choice([0, 1, 2, 4])} s"
        return _with_parameters(self.chooser, text)

    def counted_source(self) -> tuple[str, list[_Step]]:
        """Return a chain, and its steps."""
        chooser = self.chooser
        steps: list[_Step] = []
        text = ""
        is_within = chooser.integer(0, 2) > 0
        is_alike = chooser.integer(0, 1)
        for _ in range(chooser.choice([2, 2, 3, 3, 4])):
            own = _Step(chooser, self.names)
            if steps:
                text += self.operator(steps[-1], own, is_within=is_within, is_alike=is_alike)
            text += own.text
            if chooser.integer(0, 2) == 0:
                own.is_repeated = True
                text += self.repetition(own)
            steps.append(own)
        if is_within:
            text += f" WITHIN {chooser.choice([5, 9, 15, 15])} s"
        if chooser.integer(0, 2) == 0:
            text += f" SAME ({chooser.choice(['/*/k', '//k'])})"
        text += " MATCH ANY"
        plain = [at for at, step in enumerate(steps[1:]) if not step.is_repeated]
        if plain and chooser.integer(0, 3) == 0:
            text += f" WHERE {self.where_of(steps, chooser.choice(plain))}"
        return text, steps

    def where_of(self, steps: list[_Step], at: int) -> str:
        """Return a condition of a step, and of the unit behind it."""
        chooser = self.chooser
        one, other = steps[at], steps[at + 1]
        asked = [f"{chooser.choice(one.values)} {chooser.choice(['=', '!=', '<='])} {other.number}"]
        asked.append(f"{chooser.choice(one.values)} {chooser.choice(['=', '!='])} 'x'")
        asked.append(f"{other.number} >= 2")
        return " AND ".join(asked[: chooser.choice([1, 1, 2, 3])])

    def operator(self, left: _Step, right: _Step, *, is_within: bool, is_alike: int) -> str:
        """Return FOLLOWED BY with what is asked of neighbours: of many chains keys alone."""
        chooser = self.chooser
        terms = []
        if is_alike:
            terms += [f"{left.values[0]} = {right.key}"] if chooser.integer(0, 1) else []
        else:
            for _ in range(chooser.choice([0, 0, 1, 1, 2])):
                operator = chooser.choice(["=", "!=", "!=", "<=", "<="])
                sides = chooser.choice(left.values), chooser.choice([right.key, right.number])
                terms.append(f" {operator} ".join(sides))
            if chooser.integer(0, 4) == 0:
                terms.append(f"{right.number} >= 2")
        window = f", {chooser.choice([3, 8, 12, 12])} s"
        if is_within and chooser.integer(0, 2):
            window = ""
        asked = chooser.choice([" AND ", " AND ", " AND ", " OR "]).join(terms)
        return f" FOLLOWED BY {{{asked}{window}}} " if asked or window else " FOLLOWED BY "

    def repetition(self, own: _Step) -> str:
        """Return the sign of a repetition, with what is asked of its elements."""
        chooser = self.chooser
        asked = [
            f"{own.number} >= prev({own.number})",
            f"{own.key} = prev({own.key})",
            f"{own.number} <= 2",
            f"prev({own.number}) > 1",
        ]
        terms = [chooser.choice(asked) for _ in range(chooser.choice([0, 0, 1, 2]))]
        each = f" {chooser.choice(['AND', 'AND', 'OR'])} ".join(terms)
        gap = f", {chooser.choice('258')} s" if chooser.integer(0, 3) == 0 else ""
        return f"+ {{{each}{gap}}}" if each or gap else "+"

    def outcome(self, text: str, steps: list[_Step]) -> str:
        """Return a statement that counts what a chain gives, or draws it."""
        chooser = self.chooser
        if any(step.is_repeated for step in steps) and chooser.integer(0, 2) == 0:
            return f"SELECT COMPRESSED FROM {text}"
        text = f"SELECT <r>{{count()}}</r> FROM {text}" if chooser.integer(0, 1) else text
        text += f" WINDOW {chooser.choice(['0 s', '0 s', '3 s', '5 s'])}"
        if chooser.integer(0, 3) == 0:
            text += f" BY {chooser.choice(steps).key}"
        if chooser.integer(0, 2) == 0:
            text += f" HAVING count() >= {chooser.choice('23')}"
        if chooser.integer(0, 4) == 0:
            text += " LIMIT 1 PER 3 s"
        return text


def counted_any_case(chooser: Chooser) -> str:
    """Return the text of a case: a statement that counts the matches of a chain, and documents."""
    return case_with_reader(chooser, _CountedChains(chooser).statement())


def counted_source(chooser: Chooser) -> str:
    """Return what a statement reads whose matches can be counted: a repetition, or a chain."""
    maker = chooser.choice([_Counted, _CountedChains])(chooser)
    text = maker.counted_source()[0]
    return text.replace("$within", f"{chooser.choice('258')} s").replace("$key", "'x'")
