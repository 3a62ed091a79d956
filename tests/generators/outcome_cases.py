"""Random cases of WINDOW, LIMIT and DISJOINT: statements, streams, orders of arrival, as texts."""

from __future__ import annotations

from generators.choosers import Chooser
from generators.ordered_cases import Statements, Unit, case_with_reader

__all__ = ["outcome_case"]


class _Outcomes(Statements):
    """Makes statements with rows or limits over sources of all kinds."""

    def operand_of(self, units: list[Unit]) -> str:
        """Return what an aggregate is of."""
        node = self.chooser.choice([n for unit in units for n in unit.nodes])
        own = [v for unit in units for v in (*unit.keys, *unit.numbers)]
        return self.chooser.choice([*own, f"{node}/p", f"{node}/k", f"{node}/p", f"time({node})"])

    def aggregate(self, units: list[Unit]) -> str:
        """Return an aggregate of rows."""
        chooser = self.chooser
        one, other = self.operand_of(units), self.operand_of(units)
        return chooser.choice(
            [
                "count()",
                "count()",
                f"count({one})",
                f"count(distinct {one})",
                f"sum({one})",
                f"avg({one})",
                f"min({one})",
                f"max({one})",
                f"first({one})",
                f"last({one})",
                f"argmax({one}, {other})",
                f"argmin({one}, {other})",
                f"collect({one})",
                f"collect(distinct {one})",
            ]
        )

    def having(self, units: list[Unit], keys: list[str]) -> str:
        """Return a condition of a row."""
        chooser = self.chooser
        terms = []
        for _ in range(chooser.choice([1, 1, 2])):
            compared = chooser.choice([self.aggregate(units), "count()"])
            other = chooser.choice(["1", "2", "2", "3", "$least", self.aggregate(units), "'x'"])
            terms.append(
                f"{compared} {chooser.choice(['>=', '>=', '<=', '<=', '=', '!='])} {other}"
            )
        if keys and chooser.integer(0, 4) == 0:
            terms.append(f"{chooser.choice(keys)} = 'x'")
        return f" {chooser.choice(['AND', 'AND', 'OR'])} ".join(terms)

    def keys(self, units: list[Unit]) -> list[str]:
        """Return what rows are grouped by."""
        chooser = self.chooser
        node = chooser.choice([n for unit in units for n in unit.nodes])
        own = [v for unit in units for v in unit.keys]
        found = [chooser.choice([*own * 2, f"{node}/k", f"{node}/k"])]
        if chooser.integer(0, 5) == 0:
            found.append(f"{node}/p")
        return found if chooser.integer(0, 2) else []

    def length(self) -> str:
        """Return the length of a window of rows."""
        return self.chooser.choice(["0 s", "1 s", "3 s", "5 s", "20 s", "$long"])

    def limit(self, keys: list[str]) -> str:
        """Return a LIMIT."""
        chooser = self.chooser
        by = f" BY {chooser.choice(keys)}" if keys and chooser.integer(0, 1) else ""
        count = chooser.choice(["1", "1", "2", "$most"])
        return f" LIMIT {count} PER {chooser.choice(['1 s', '3 s', '6 s', '$long'])}{by}"

    def outcome(self) -> str:
        """Return a whole statement."""
        chooser = self.chooser
        text, units = self.source(chooser.choice([0, 0, 0, 1, 1]))
        single = [unit for unit in units if len(unit.nodes) == 1] or units
        keys = self.keys(single)
        kind = chooser.choice(["rows", "rows", "rows", "limit", "limit", "disjoint"])
        variables = [v for unit in single for v in (*unit.nodes, *unit.keys)]
        if kind == "rows":
            if chooser.integer(0, 2) == 0:
                values = [f"{{{each}}}" for each in keys]
                values += [f"{{{self.aggregate(single)}}}" for _ in range(2)]
                text = f"SELECT <r>{' '.join(values)}</r> FROM {text}"
            text += f" WINDOW {self.length()}"
            text += f" BY {', '.join(keys)}" if keys else ""
            if chooser.integer(0, 1):
                text += f" HAVING {self.having(single, keys)}"
            text += self.limit(keys) if chooser.integer(0, 2) == 0 else ""
        else:
            shown = chooser.choice(variables) if chooser.integer(0, 2) == 0 else "*"
            if kind == "disjoint":
                text = f"SELECT DISJOINT {shown} FROM {text}"
            elif shown != "*":
                text = f"SELECT {shown} FROM {text}"
            if kind == "limit" or chooser.integer(0, 3) == 0:
                text += self.limit(keys or [f"{single[0].nodes[0]}/k"])
        if chooser.integer(0, 4):
            text += f" GRACE {chooser.choice([0, 1, 2, 4])} s"
        return text


def outcome_case(chooser: Chooser) -> str:
    """Return the text of a case: a statement with an outcome, perhaps its reader, documents."""
    return case_with_reader(chooser, _Outcomes(chooser).outcome(), assigned=4)
