"""Random cases of repetitions: statements, streams and orders of arrival, as case texts."""

from __future__ import annotations

from generators.choosers import Chooser
from generators.ordered_cases import Names, Statements, Unit, case_text

__all__ = ["run_case"]


class _Elements:
    """A unit that is repeated, each of its blocks with a number, and what can be asked of it."""

    def __init__(self, chooser: Chooser, names: Names) -> None:
        self.keys: list[str] = []
        self.numbers: list[str] = []
        self.nodes: list[str] = []
        count = 2 if chooser.integer(0, 7) == 0 else 1
        blocks = [self._block(chooser, names) for _ in range(count)]
        self.text = blocks[0] if count == 1 else f"({' | '.join(blocks)})"

    def _block(self, chooser: Chooser, names: Names) -> str:
        text = f"S//{chooser.choice('bbc')}"
        if chooser.integer(0, 1):
            self.keys.append(names.fresh())
            text += f"[k->{self.keys[-1]}]"
        if chooser.integer(0, 1):
            self.numbers.append(names.fresh())
            text += f"[p->{self.numbers[-1]}]"
        self.nodes.append(names.fresh())
        return f"{text}->{self.nodes[-1]}"


class _Runs(Statements):
    """Makes statements with a repetition."""

    def repetition(self, left: list[Unit], elements: _Elements, *, is_next: bool) -> str:
        """Return a repetition, with what is asked of each element."""
        chooser = self.chooser
        gap = f", {self.window()}" if chooser.integer(0, 2) == 0 else ""
        braces = f" {{{self.each(left, elements)}{gap}}}" if chooser.integer(0, 3) else ""
        text = f"{elements.text}+{braces}"
        if is_next and chooser.integer(0, 2) == 0:
            text += f" WHILE {{{self.condition(elements)}}}"
        if chooser.integer(0, 3) == 0:
            text += f" FOLD {{f = {chooser.integer(0, 1)} THEN f + {self.number(elements)}}}"
        return text

    def number(self, elements: _Elements) -> str:
        """Return a number of an element."""
        own = elements.numbers or [f"{elements.nodes[0]}/p"]
        return self.chooser.choice(own)

    def each(self, left: list[Unit], elements: _Elements) -> str:
        """Return what is asked of each element."""
        chooser = self.chooser
        terms = [self.condition(elements) for _ in range(chooser.choice([0, 1, 1, 2]))]
        if left and chooser.integer(0, 1):
            own = elements.keys or [f"{elements.nodes[0]}/k"]
            operator = chooser.choice(["=", "=", "!="])
            terms.append(f"{chooser.choice(self.values(left))} {operator} {chooser.choice(own)}")
        return f" {chooser.choice(['AND', 'AND', 'OR'])} ".join(terms)

    def condition(self, elements: _Elements) -> str:
        """Return a condition of an element and of those before it."""
        chooser = self.chooser
        number = self.number(elements)
        key = chooser.choice(elements.keys or [f"{elements.nodes[0]}/k"])
        node = elements.nodes[0]
        return chooser.choice(
            [
                f"{number} >= prev({number})",
                f"{number} < prev({number}, 3)",
                f"{number} > avg({number})",
                f"{number} >= min({number})",
                f"first({number}) <= {number}",
                f"sum({number}) < 4",
                "count() < 3",
                f"{key} = prev({key})",
                f"exists({node}/p)",
                f"time({node}) > start() + 2 s",
                f"{number} <= 2",
            ]
        )

    def whole(self, elements: _Elements) -> str:
        """Return a condition of a complete run."""
        chooser = self.chooser
        number = self.number(elements)
        key = chooser.choice(elements.keys or [f"{elements.nodes[0]}/k"])
        return chooser.choice(
            [
                f"count({elements.nodes[0]}) >= 2",
                f"avg({number}) >= 1.5",
                f"last({number}) >= first({number})",
                f"sum({number}) > max({number})",
                f"{key} = 'x'",
                f"{number} = 2",
                f"exists({key})",
                "dur() >= 2 s",
                f"time({elements.nodes[0]}) >= start() + 3 s",
            ]
        )

    def statement(self) -> str:
        """Return a whole statement."""
        chooser = self.chooser
        elements = _Elements(chooser, self.names)
        operator = chooser.choice(["NEXT", "NEXT", "NEXT", "FOLLOWED BY"])
        within = f" WITHIN {self.window()}" if chooser.integer(0, 2) == 0 else ""
        units: list[Unit] = []
        if chooser.integer(0, 5) == 0:
            within = f" WITHIN {chooser.choice('35')} s"
            text = self.repetition([], elements, is_next=False)
        else:
            units = [Unit(chooser, self.names)]
            text = units[0].text
            if chooser.integer(0, 5) == 0:
                units.append(Unit(chooser, self.names))
                text = f"({text} {chooser.choice(['NEXT', 'JOIN'])} {{, 5 s}} {units[1].text})"
            first = self.each(units, elements) if chooser.integer(0, 1) else ""
            window = chooser.choice(["2 s", "3 s", "5 s", "$within"])
            run = self.repetition(units, elements, is_next=operator == "NEXT")
            text += f" {operator} {{{first}, {window}}} {run}"
        text += self.behind(elements)
        text += within
        if chooser.integer(0, 5) == 0:
            text += f" SAME ({chooser.choice(['/*/k', '//k', '//k = $key'])})"
        if chooser.integer(0, 2) == 0:
            text += f" WHERE {self.whole(elements)}"
        shown = [v for v in (*elements.nodes, *elements.keys) if len(elements.nodes) == 1]
        if shown and chooser.integer(0, 2) == 0:
            text = f"SELECT {chooser.choice(shown)} FROM {text}"
        if chooser.integer(0, 4):
            text += f" GRACE {chooser.choice([0, 1, 2, 4])} s"
        return text

    def behind(self, elements: _Elements) -> str:
        """Return what stands behind a run, now and then."""
        chooser = self.chooser
        if chooser.integer(0, 1):
            return ""
        unit = Unit(chooser, self.names)
        keyword = chooser.choice(["NEXT", "NEXT", "FOLLOWED BY", "JOIN", "NOT FOLLOWED BY"])
        terms = []
        if chooser.integer(0, 1):
            own = chooser.choice(elements.keys or [f"{elements.nodes[0]}/k"])
            side = chooser.choice([own, f"last({own})", f"first({own})"])
            terms.append(f"{side} = {chooser.choice(unit.nodes)}/k")
        return f" {keyword} {{{' AND '.join(terms)}, {self.window()}}} {unit.text}"


def run_case(chooser: Chooser) -> str:
    """Return the text of a case: a statement with a repetition, perhaps its reader, documents."""
    first = _Runs(chooser).statement()
    if chooser.integer(0, 5):
        return case_text(chooser, [f"query q\n    {first}"])
    if not first.startswith("SELECT"):
        first = f"SELECT * FROM {first}"
    reader = Statements(chooser).statement().replace("T//", "P//")
    return case_text(chooser, [f"query q\n    {first} PUBLISH P", f"query r\n    {reader}"])
