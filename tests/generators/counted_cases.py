"""Random cases of runs that are counted or drawn as graphs, as case texts."""

from __future__ import annotations

from generators.choosers import Chooser
from generators.ordered_cases import Names, Statements, Unit, case_with_reader

__all__ = ["counted_case"]


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
        text = self.outcome(text, left, key)
        if chooser.integer(0, 4):
            text += f" GRACE {chooser.choice([0, 1, 2, 4])} s"
        return text

    def outcome(self, text: str, left: list[Unit], key: str) -> str:
        """Return a statement that counts what a source gives, or draws it."""
        chooser = self.chooser
        if chooser.integer(0, 1):
            return f"SELECT COMPRESSED FROM {text}"
        keys = []
        if chooser.integer(0, 1):
            keys.append(key)
        if left and chooser.integer(0, 2) == 0:
            keys.append(chooser.choice(self.values(left)))
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
