"""Random cases of repetitions: statements, streams and orders of arrival, as case texts."""

from __future__ import annotations

from generators.choosers import Chooser
from generators.ordered_cases import Names, Statements, Unit, case_with_reader

__all__ = ["open_chain_case", "run_case", "run_end_case"]


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
            name = self.names.fresh()
            begin = chooser.integer(0, 1)
            text += f" FOLD {{{name} = {begin} THEN {name} + {self.number(elements)}}}"
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
                f"revision({node}) >= prev(revision({node}))",
                f"revision({node}) = 0",
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
                f"revision({elements.nodes[0]}) = 1",
                f"last(revision({elements.nodes[0]})) > first(revision({elements.nodes[0]}))",
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
            if chooser.integer(0, 3) == 0:
                text += self.unless_between(units, elements)
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

    def unless_between(self, units: list[Unit], elements: _Elements) -> str:
        """Return a unit that must be absent before the first element."""
        unit = Unit(self.chooser, self.names)
        asked = ""
        if self.chooser.integer(0, 1):
            left = [*self.values(units), f"{elements.nodes[0]}/k", *elements.keys[:1]]
            asked = f"{self.chooser.choice(left)} = {unit.nodes[0]}/k"
        window = f", {self.window()}" if self.chooser.integer(0, 1) else ""
        return f" UNLESS {{{asked}{window}}} {unit.text}"

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


class _Chains(_Runs):
    """Makes statements with a chain under MATCH."""

    def statement(self) -> str:
        """Return a whole statement."""
        chooser = self.chooser
        strategy = chooser.choice(["NEXT", "NEXT", "PARTITION", "STRICT"])
        has_key = strategy == "PARTITION" or chooser.integer(0, 3) == 0
        is_within = chooser.integer(0, 2) > 0
        text, units, runs = self.chain(is_within)
        if is_within:
            text += f" WITHIN {self.window()}"
        if has_key:
            text += f" SAME ({chooser.choice(['/*/k', '//k', '//k = $key'])})"
        text += f" MATCH {strategy}"
        if chooser.integer(0, 3) == 0:
            text += f" WHERE {self.of_whole(units, runs)}"
        if chooser.integer(0, 5) == 0:
            unit = Unit(chooser, self.names)
            keyword = chooser.choice(["NEXT", "FOLLOWED BY", "JOIN", "NOT FOLLOWED BY"])
            text = f"({text}) {keyword} {{, {self.window()}}} {unit.text}"
        if chooser.integer(0, 4):
            text += f" GRACE {chooser.choice([0, 1, 2, 4])} s"
        return text

    def chain(self, is_within: bool) -> tuple[str, list[Unit], list[_Elements]]:
        """Return a chain, its units, and its repetitions."""
        chooser = self.chooser
        units: list[Unit] = []
        runs: list[_Elements] = []
        text = ""
        for number in range(chooser.choice([1, 2, 2, 2, 3, 3])):
            own = Unit(chooser, self.names) if chooser.integer(0, 1) else None
            elements = _Elements(chooser, self.names)
            first = self.between(units, runs, own or elements)
            if number > 0:
                window = "" if is_within and chooser.integer(0, 1) else f", {self.window()}"
                text += f" FOLLOWED BY {{{first}{window}}} " if first or window else " FOLLOWED BY "
            if own is None:
                text += self.repetition(units, elements, is_next=False)
                runs.append(elements)
            else:
                text += own.text
                units.append(own)
            if chooser.integer(0, 3) == 0:
                complete = runs if own is not None or number == 0 else runs[:-1]
                text += self.absent(units, complete, "UNLESS", needs_window=number == 0)
        if chooser.integer(0, 7) == 0:
            text += self.absent(units, runs, "NOT FOLLOWED BY", needs_window=True)
        return text, units, runs

    def between(self, units: list[Unit], runs: list[_Elements], right: Unit | _Elements) -> str:
        """Return what is asked of what a run has taken and a unit."""
        chooser = self.chooser
        terms = []
        for _ in range(chooser.choice([0, 1, 1, 2])):
            left = self.taken(units, runs)
            own = [*right.keys, *right.numbers] * 3 + [f"{node}/k" for node in right.nodes]
            if left:
                operator = chooser.choice(["=", "=", "!=", "<="])
                terms.append(f"{chooser.choice(left)} {operator} {chooser.choice(own)}")
        return f" {chooser.choice(['AND', 'AND', 'OR'])} ".join(terms)

    def taken(self, units: list[Unit], runs: list[_Elements]) -> list[str]:
        """Return what can be compared of what a run has taken."""
        found = self.values(units) if units else []
        for run in runs:
            keys = run.keys or [f"{run.nodes[0]}/k"]
            numbers = run.numbers or [f"{run.nodes[0]}/p"]
            found += [f"last({keys[0]})", keys[0], f"first({numbers[0]})", f"max({numbers[0]})"]
        return found

    def absent(
        self, units: list[Unit], runs: list[_Elements], keyword: str, *, needs_window: bool
    ) -> str:
        """Return a unit that must be absent."""
        chooser = self.chooser
        unit = Unit(chooser, self.names)
        asked = self.between(units, runs, unit)
        window = f", {self.window()}" if needs_window or chooser.integer(0, 1) else ""
        return (
            f" {keyword} {{{asked}{window}}} {unit.text}"
            if asked or window
            else (f" {keyword} {unit.text}")
        )

    def of_whole(self, units: list[Unit], runs: list[_Elements]) -> str:
        """Return a condition of a whole match."""
        if runs and self.chooser.integer(0, 1):
            return self.whole(self.chooser.choice(runs))
        return self.where(units) if units else "dur() >= 2 s"


class _OpenChains(_Chains):
    """Makes statements with a chain under MATCH ANY that is listed once it is complete."""

    def statement(self) -> str:
        """Return a whole statement."""
        chooser = self.chooser
        units: list[Unit] = []
        runs: list[_Elements] = []
        text = ""
        is_within = chooser.integer(0, 2) > 0
        for number in range(chooser.choice([3, 3, 4])):
            own: Unit | _Elements = Unit(chooser, self.names, may_be_several=False)
            if chooser.integer(0, 2) == 0:
                own = _Elements(chooser, self.names)
            if number > 0:
                window = (
                    "" if is_within and chooser.integer(0, 1) else f", {chooser.choice('358')} s"
                )
                first = "" if chooser.integer(0, 2) else self.between(units, runs, own)
                text += f" FOLLOWED BY {{{first}{window}}} " if first or window else " FOLLOWED BY "
            if isinstance(own, Unit):
                text += own.text
                units.append(own)
            else:
                text += self.repetition(units, own, is_next=False)
                runs.append(own)
        if is_within:
            text += f" WITHIN {chooser.choice([5, 9, 15])} s"
        if chooser.integer(0, 3) == 0:
            text += f" SAME ({chooser.choice(['/*/k', '//k'])})"
        text += " MATCH ANY"
        if chooser.integer(0, 3) == 0:
            text += f" WHERE {self.of_whole(units, runs)}"
        # What differs between subscriptions is joined.
        return text.replace("$key", "'x'").replace("$least", "2").replace("$within", "3 s")


def run_case(chooser: Chooser) -> str:
    """Return the text of a case: a statement with a repetition or a chain, and documents.

    Perhaps another statement reads what it publishes.
    """
    maker = chooser.choice([_Runs, _Runs, _Chains, _Chains, _OpenChains])(chooser)
    return case_with_reader(chooser, maker.statement())


def run_end_case(chooser: Chooser) -> str:
    """Return the text of a case in which nothing is asked of a run but one end of it."""
    of_run, compared = chooser.choice(["first", "last"]), chooser.choice("<>=")
    operator, window = chooser.choice(["NEXT", "FOLLOWED BY"]), chooser.choice(["5 s", "12 s"])
    element = chooser.choice(["/*", "/*", "//b", "//c"])  # a run is long where all may be in it
    text = (
        f"*//{chooser.choice('ab')} {operator} {{, {window}}} *{element}->v1+"
        f" FOLLOWED BY {{{of_run}(v1/p) {compared} v2/p, 20 s}} *//{chooser.choice('abc')}->v2"
        f" GRACE {chooser.choice([4, 20])} s"
    )
    return case_with_reader(chooser, text)


def open_chain_case(chooser: Chooser) -> str:
    """Return the text of a case of a chain under MATCH ANY, and documents."""
    return case_with_reader(chooser, _OpenChains(chooser).statement())
