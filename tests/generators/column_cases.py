"""Random cases of chains that are stepped in columns: they compare numbers, and equal texts.

A repetition may fold a number, and a text.  One behind NEXT is stepped as a chain of two steps.

Several statements differ in constants or in what they compare, over documents that tie, come late,
and are published.  Steps have one number to three, documents lack some, or have several of one.  In
half of the cases those with more numbers come only after others.
"""

from __future__ import annotations

from collections.abc import Callable

from generators.choosers import Chooser
from generators.ordered_cases import Statements, seconds

__all__ = ["column_case", "column_run_case", "counted_chain_case"]


class _Step:
    """A unit of a chain, or a repetition, with some numbers."""

    def __init__(
        self,
        chooser: Chooser,
        number: int,
        stream: str,
        names: str,
        most: str,
        *,
        may_fold: bool,
        is_repeated: bool | None = None,
    ) -> None:
        self.is_repeated = chooser.integer(0, 2) > 0 if is_repeated is None else is_repeated
        leaves = chooser.choice(["p", most, most])
        self.names = [f"{leaf}{number}" for leaf in leaves]
        self.own = self.names[0]
        has_folds = may_fold and self.is_repeated and chooser.integer(0, 2) == 0
        self.folded = (f"n{number}", f"t{number}") if has_folds else None
        name = chooser.choice(names)
        bound = "".join(f"[{leaf}->{leaf}{number}]" for leaf in leaves)
        self.text = f"{stream}//{name}{bound}"

    def taken(self, chooser: Chooser) -> str:
        """Return a number of what has been taken in the step."""
        name = chooser.choice([self.own, *self.names])
        if not self.is_repeated:
            return name
        if self.folded and chooser.integer(0, 1):
            return chooser.choice(self.folded)
        function = chooser.choice(["first", "last", "count", "sum", "avg", "min", "max"])
        return f"{function}({name})"


class _ColumnChains(Statements):
    """Makes statements with a chain under MATCH that compares numbers.

    `kinds` are the names and the numbers of documents of its steps, and of the last one.  Only
    where it `asks_between` there are conditions of the operators, and FOLD.
    """

    def __init__(
        self,
        chooser: Chooser,
        kinds: tuple[tuple[str, str], tuple[str, str]],
        *,
        asks_between: bool,
    ) -> None:
        super().__init__(chooser)
        self.kinds = kinds
        self.asks_between = asks_between

    def statements(self) -> list[str]:
        """Return some statements with the same steps."""
        chooser = self.chooser
        stream = chooser.choice("SSSP")
        strategy = chooser.choice(["NEXT", "NEXT", "PARTITION", "STRICT"])
        count = chooser.choice([1, 2, 2, 2, 3])
        steps = [
            _Step(
                chooser,
                number,
                stream,
                *self.kinds[number == count - 1],
                may_fold=self.asks_between,
            )
            for number in range(count)
        ]
        has_key = strategy == "PARTITION" or chooser.integer(0, 1) == 0
        grace = f" GRACE {chooser.choice([0, 1, 2, 4])} s" if chooser.integer(0, 4) else ""
        keys = f" SAME ({chooser.choice(['//k', '//k', '//k, //p'])})" if has_key else ""
        return [
            f"{self.chain(steps)}{keys} MATCH {strategy}{grace}"
            for _ in range(chooser.choice([1, 2, 3]))
        ]

    def chain(self, steps: list[_Step]) -> str:
        """Return a chain with its windows."""
        chooser = self.chooser
        is_within = chooser.integer(0, 2) > 0
        text = ""
        for number, step in enumerate(steps):
            if number:
                first = ""
                if self.asks_between:
                    first = self.conditions(steps[:number], step, is_own=False)
                is_bounded = is_within and chooser.integer(0, 1)
                window = "" if is_bounded else f", {chooser.choice('258')} s"
                braces = f" {{{first}{window}}}" if first or window else ""
                text += f" FOLLOWED BY{braces} "
            text += step.text
            if step.is_repeated:
                gap = f", {chooser.choice('148')} s" if chooser.integer(0, 3) == 0 else ""
                asked = self.conditions(steps[:number], step, is_own=True)
                text += f"+ {{{asked}{gap}}}" if asked or gap else "+"
                text += self.folds(steps[:number], step)
        return f"{text} WITHIN {chooser.choice([3, 6, 12])} s" if is_within else text

    def folds(self, before: list[_Step], step: _Step) -> str:
        """Return what a repetition folds: a number, and a text."""
        if step.folded is None:
            return ""
        chooser, (number, text) = self.chooser, step.folded
        first = chooser.choice(before).taken(chooser) if before else "1"
        chosen = f"if ({self.compared(before, step, True)}) then {number} else {step.own}"
        following = chooser.choice([f"{number} + {self.side(before, step, True)}", chosen])
        texts = [self.text(before, step, True), "'x'", f"if ({step.own} > 1) then {text} else '1'"]
        values = (
            f"{number} = {chooser.choice(['0', '2', first])} THEN {following}",
            f"{text} = 'x' THEN {chooser.choice(texts)}",
        )
        return f" FOLD {{{', '.join(values)}}}"

    def conditions(self, before: list[_Step], step: _Step, *, is_own: bool) -> str:
        """Return what is asked of an element of a step."""
        chooser = self.chooser
        terms = [
            self.compared(before, step, is_own)
            for _ in range(chooser.choice([0, 1, 1, len(step.names), 2]))
        ]
        return f" {chooser.choice(['AND', 'AND', 'OR'])} ".join(terms)

    def compared(self, before: list[_Step], step: _Step, is_own: bool) -> str:
        """Return a comparison of an element with what a run has taken, or with a constant."""
        chooser = self.chooser
        if chooser.integer(0, 3):
            operator = chooser.choice(["=", "!=", "<", "<=", ">", ">="])
            number = self.number(before, step, is_own)
            return f"{self.side(before, step, is_own)} {operator} {number}"
        texts = [self.text(before, step, is_own) for _ in range(2)]
        if chooser.integer(0, 2) == 0:
            texts[1] = chooser.choice(["'1'", "'x'", "' 2 '", "''"])
        return f"{texts[0]} {chooser.choice(['=', '!='])} {texts[1]}"

    def text(self, before: list[_Step], step: _Step, is_own: bool) -> str:
        """Return an operand that is a text, of an element or of what a run has taken."""
        chooser = self.chooser
        name = chooser.choice([step.own, *step.names])
        texts = [name]
        if is_own:
            texts += [f"prev({name})", f"prev({name}, 'x')", f"prev({name}, 1)", f"first({name})"]
            texts += [step.folded[1]] * 2 if step.folded else []
        for other in before:
            taken = chooser.choice([other.own, *other.names])
            texts.append(
                f"{chooser.choice(['first', 'last'])}({taken})" if other.is_repeated else taken
            )
        return chooser.choice(texts)

    def number(self, before: list[_Step], step: _Step, is_own: bool) -> str:
        """Return a constant, or what is certainly a number."""
        chooser = self.chooser
        side = self.side(before, step, is_own)
        one = chooser.integer(0, 3)
        return chooser.choice([str(one), str(one), "-1", f"{one} + {side}", f"0 - {side}"])

    def side(self, before: list[_Step], step: _Step, is_own: bool) -> str:
        """Return an operand of an element and of what a run has taken."""
        chooser = self.chooser
        name = chooser.choice([step.own, *step.names])
        sides = [name, name, f"{name} mod 2", f"{name} * 2", f"time({name}) - start()", "dur()"]
        sides += [f"{name} div {step.own}", f"-{name}"]
        if before:
            sides += [chooser.choice(before).taken(chooser) for _ in range(4)]
        if is_own:
            sides += [f"prev({name})", f"prev({name}, 2)", f"first({name})", "count()"]
            sides += [f"{each}({name})" for each in ("sum", "avg", "min", "max")]
            sides += [f"first({name}) mod 2", f"prev({name}, {step.names[-1]})"]
            sides += [*step.folded, step.folded[0]] if step.folded else []
        return chooser.choice(sides)


class _ColumnRuns(_ColumnChains):
    """Makes statements with a repetition behind NEXT, most with WHILE."""

    def statements(self) -> list[str]:
        """Return some statements with the same blocks."""
        chooser = self.chooser
        stream = chooser.choice("SSSP")
        steps = [
            _Step(chooser, n, stream, *self.kinds[n], may_fold=True, is_repeated=bool(n))
            for n in range(2)
        ]
        keys = f" SAME ({chooser.choice(['//k', '//k, //p'])})" if chooser.integer(0, 1) else ""
        grace = f" GRACE {chooser.choice([0, 1, 2, 4])} s" if chooser.integer(0, 4) else ""
        count = chooser.choice([1, 2, 3])
        return [f"{self.around(steps, keys)}{grace}" for _ in range(count)]

    def around(self, steps: list[_Step], keys: str) -> str:
        """Return a repetition with its keys, now and then with something behind it."""
        chooser = self.chooser
        text = self.run(*steps)
        behind = f"S//{chooser.choice('ab')}[p->q]"
        own = chooser.choice(["last", "first", "max", "sum"]) + f"({steps[1].own})"
        keyword = chooser.choice(["NEXT", "FOLLOWED BY", "NOT FOLLOWED BY"])
        asked = chooser.choice(["", f"q > {own}", f"q = last({steps[1].own})"])
        kind = chooser.integer(0, 5)
        if kind == 0:
            return f"({text}) {keyword} {{{asked}, {chooser.choice('25')} s}} {behind}{keys}"
        if kind == 1:
            return f"{text}{keys} WHERE {own} >= {chooser.choice(['1', steps[0].own])}"
        if kind == 2:
            return f"({text}{keys} WHERE dur() >= 2 s) {keyword} {{{asked}, 5 s}} {behind}"
        return f"{text}{keys}"

    def run(self, left: _Step, step: _Step) -> str:
        """Return a repetition behind NEXT, with its windows."""
        chooser = self.chooser
        is_within = chooser.integer(0, 2) == 0
        first = self.conditions([left], step, is_own=False) if chooser.integer(0, 1) else ""
        window = "" if is_within and chooser.integer(0, 1) else f", {chooser.choice('2589')} s"
        braces = f" {{{first}{window}}}" if first or window else ""
        gap = f", {chooser.choice('148')} s" if chooser.integer(0, 3) == 0 else ""
        asked = self.conditions([left], step, is_own=True)
        if chooser.integer(0, 2) == 0:
            equal = f"{left.own} = {step.own}"
            asked = chooser.choice([equal, f"{equal} AND {asked}" if asked else equal])
        text = f"{left.text} NEXT{braces} {step.text}"
        text += f"+ {{{asked}{gap}}}" if asked or gap else "+"
        if chooser.integer(0, 3):
            goes_on = self.conditions([left], step, is_own=True)
            text += f" WHILE {{{goes_on or 'count() < 2'}}}"
        text += self.folds([left], step)
        return f"{text} WITHIN {chooser.choice([3, 6, 12])} s" if is_within else text


def column_case(chooser: Chooser) -> str:
    """Return the text of a case of chains over numbers, and documents."""
    return _case(chooser, lambda text: text, asks_between=True)


def column_run_case(chooser: Chooser) -> str:
    """Return the text of a case of repetitions behind NEXT over numbers, and documents."""
    return _case(chooser, lambda text: text, asks_between=True, maker=_ColumnRuns)


def counted_chain_case(chooser: Chooser) -> str:
    """Return the text of a case of such chains of which rows are asked, most of their number."""
    asks_between = chooser.integer(0, 3) == 0
    return _case(chooser, lambda text: _counted(chooser, text), asks_between=asks_between)


def _counted(chooser: Chooser, text: str) -> str:
    """Return a statement that has rows of the runs of a source."""
    if chooser.integer(0, 7) == 0:
        return text
    source, grace, own = text.partition(" GRACE ")
    count = chooser.choice(["count()", "count()", "count()", "count(), 'of', count()", "'some'"])
    length = chooser.choice([0, 0, 0, 0, 1, 3, 8])
    having = ["", "", "count() > 0", "count() >= 2", "count() >= 2", "count() = 1", "count() < 0"]
    asked = chooser.choice([*having, "count() > 1 AND count() < 4", "count() < 2 OR count() > 3"])
    rows = f"WINDOW {length} s" + (f" HAVING {asked}" if asked else "")
    if chooser.integer(0, 9) == 0:
        rows += " LIMIT 1 PER 3 s"
    return f"SELECT <n>{{{count}}}</n> FROM {source} {rows}{grace}{own}"


def _case(
    chooser: Chooser,
    asked: Callable[[str], str],
    *,
    asks_between: bool,
    maker: type[_ColumnChains] = _ColumnChains,
) -> str:
    lines = [f"lateness {chooser.choice([0, 2, 5, 100, 100])} s"]
    is_growing = chooser.integer(0, 1) == 0
    kinds = (("a", "p"), ("b", "pvw")) if is_growing else (("ab**", "pv"), ("ab**", "pv"))
    texts = [*map(asked, maker(chooser, kinds, asks_between=asks_between).statements())]
    if "P//" in texts[0]:
        source = chooser.choice(["S//a->x", "S//*->x FOLLOWED BY {, 3 s} S//b"])
        lines += ["query made", f"    SELECT * FROM {source} PUBLISH P"]
    for number, text in enumerate(texts):
        lines += [f"query q{number}", f"    {text}"]
    lines.append("")
    count = chooser.integer(8, 20)
    few = chooser.integer(1, count - 1) if is_growing else 0
    for number, second in enumerate(seconds(chooser, count), 1):
        names, leaves = ("a", "p") if number <= few else ("aab", "pvw" if is_growing else "pv")
        document = _document(chooser, names, leaves)
        lines.append(f"document {number} S 00:00:{second} {document}")
    if chooser.integer(0, 4):
        lines.append(f"tick {count + 1} 00:10:00")
    return "\n".join(lines) + "\n----\n"


def _document(chooser: Chooser, names: str, leaves: str) -> str:
    name = chooser.choice(names)
    inner = "".join(
        f"<{leaf}>{chooser.choice(['0', '1', '2', '3', '1.5', '-1', ' 2 ', 'x', ''])}</{leaf}>"
        for each in leaves
        for leaf in each * chooser.choice([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 2])
    )
    key = chooser.choice(["x", "x", "y", ""])
    several = "<k>y</k>" if chooser.integer(0, 7) == 0 else ""
    return f"<{name}><k>{key}</k>{several}{inner}</{name}>"
