"""Random statements: operands of up to four blocks, windows, SELECT, PUBLISH, parameters."""

from __future__ import annotations

import json
from collections.abc import Sequence

from generators.mood import Mood
from generators.random_blocks import Blocks, Names
from generators.random_predicates import Predicates

__all__ = ["Statements"]

WINDOWS = ("INF", "1 h", "1.5 h", "INF", "2 h", "PT30M", "10 m")


class Statements:
    """Writes statements; `words` are values on which it depends what they find."""

    def __init__(self, mood: Mood) -> None:
        self._mood = mood
        self._blocks = Blocks(mood)
        self._predicates = Predicates(mood)
        self._names = Names()
        self._readable: list[str] = []
        self._is_bounded = False
        self.words = (*self._blocks.words, *self._predicates.words)

    def statement(self, number: int, published: Sequence[str]) -> str:
        """Return a query; it may read these published streams, and publish that of its number."""
        mood = self._mood
        self._names = Names()
        self._readable = list(published)
        self._is_bounded = mood.is_about("clause") and mood.chance(70)
        from_, variables = self._from(mood.choice(self._block_counts()))
        if mood.is_about("clause"):
            from_ += self._clauses(variables, is_bounded=self._is_bounded)
        select = self._select(variables)
        text = f"SELECT {select} FROM {from_}" if mood.chance(50) else f"FROM {from_}"
        if text.startswith("FROM") and mood.chance(30):
            text += f" SELECT {select}"
        if mood.chance(70 if mood.is_about("publish") else 25):
            text += f" PUBLISH P{number}"
        if "n:" in from_:
            text = f'DECLARE NAMESPACE n = "urn:n"; {text}'
        return text

    @property
    def has_parameters(self) -> bool:
        """Whether the statement that was written last has parameters."""
        return bool(self._names.parameters)

    def values(self, row: int) -> str:
        """Return values of the parameters of the statement that was written last: 0 or 1."""
        return json.dumps({name: given[row] for name, given in self._names.parameters.items()})

    def _block_counts(self) -> tuple[int, ...]:
        """Return how many blocks a query may have."""
        if self._mood.is_about("nested"):
            return (3, 3, 4)
        if self._mood.is_about("clause"):
            return (1, 2, 2, 2, 2, 2, 3)
        if self._mood.is_about("late"):
            return (2, 2, 3)
        if self._mood.is_about("single", "condition", "position", "publish"):
            return (2, 1)
        return (2, 2, 2, 2, 1, 2, 2, 3) if self._mood.has_focus else (2, 1, 2, 2, 2, 2, 2, 2, 3, 3)

    def _from(self, blocks: int) -> tuple[str, list[str]]:
        """Return an operand of some blocks, and the variables that it binds."""
        if blocks == 1:
            return self._operand()
        mood = self._mood
        inner = 2 if blocks == 4 and mood.chance(60) else mood.integer(1, blocks - 1)
        left, left_variables = self._from(blocks - inner)
        kind = mood.choice(("FOLLOWED BY", "JOIN"))
        if blocks == 2 and mood.rarely(10, "symmetric"):
            twin = self._predicates.mirrored(left, left_variables, self._names)
            right, right_variables, predicate = twin
        else:
            right, right_variables = self._from(inner)
            predicate = self._predicates.predicate(left_variables, right_variables, self._names)
        if inner > 1:
            right = f"({right}{self._inner_clauses(right_variables)})"
        text = f"{left} {kind}{self._braces(predicate)} {right}"
        return text, left_variables + right_variables

    def _operand(self) -> tuple[str, list[str]]:
        """Return a block, which may stand in parentheses with clauses of its own."""
        block, variables = self._blocks.block(self._names, self._readable)
        if self._mood.is_about("clause") and self._mood.chance(25):
            other, more = self._blocks.block(self._names, self._readable)
            block, variables = f"({block} | {other})", variables + more
        clauses = self._inner_clauses(variables)
        return (f"({block}{clauses})" if clauses else block), variables

    def _braces(self, predicate: str) -> str:
        """Return the braces of an operator; a window may be left out where WITHIN bounds it."""
        if self._is_bounded and self._mood.chance(60):
            return f" {{{predicate}}}" if predicate else ""
        return f" {{{predicate}, {self._window()}}}"

    def _inner_clauses(self, variables: list[str]) -> str:
        if not self._mood.is_about("clause") or not self._mood.chance(25):
            return ""
        return self._clauses(variables, is_bounded=self._mood.chance(30))

    def _clauses(self, variables: list[str], *, is_bounded: bool) -> str:
        """Return WITHIN, SAME and WHERE of a from, none or several of them."""
        mood, text = self._mood, ""
        if is_bounded:
            given = mood.chance(20) and self._names.parameter(["40 m", "2 h"])
            text += f" WITHIN {given or mood.choice(('30 m', '1 h', '1.5 h', '2 h'))}"
        if mood.chance(40):
            keys = ("//c", "//t", "//@h", "/*/c", "//c[1]", "/*/t", "//c = 'x'", "//*/@k")
            text += f" SAME ({mood.choice(keys)})"
        if mood.chance(50):
            text += f" WHERE {self._predicates.condition(variables, self._names)}"
        return text

    def _window(self) -> str:
        if self._mood.rarely(10, "parameter"):
            return self._names.parameter(["10 m", "1 h"])
        return self._mood.choice(WINDOWS)

    def _select(self, variables: list[str]) -> str:
        chosen = self._mood.choice(variables)
        other = self._mood.choice(variables)
        listed = chosen if chosen == other else f"{chosen}, {other}"
        return self._mood.choice(
            (
                "*",
                listed,
                f'<i h="{{{chosen}}}"><c>{{string({other})}}</c></i>',
                f'<i h="x"><p>{{{chosen}/c}}</p><t>{{{chosen}/@h}}</t></i>',
                f'<i h="{{start()}}"><c>{{end()}}</c><t>{{dur()}}</t>{{{chosen}}}</i>',
                f"<i>{{{chosen}}}{{{other}/c[1]}}<c>{{xs:integer(string({other}))}}</c></i>",
            )
        )
