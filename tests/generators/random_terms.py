"""Random conditions beyond comparisons of values: arithmetic, times, tests, choices (13.5)."""

from __future__ import annotations

from collections.abc import Sequence

from generators.mood import Mood
from generators.random_blocks import Names

__all__ = ["WORDS", "Terms"]

WORDS = ("1", "2", "4", "x", "xy")
"""Values that terms tell apart."""

TERMS: Sequence[str] = (
    "{a} + 1 = {b}",
    "{a} * 2 <= {b}",
    "{a} - {b} < 1",
    "-{a} < {b} - 2",
    "{b} div {a} >= 2",
    "{b} mod {a} = 0",
    "{a} + {b} != 3",
    "dur() <= 40 min",
    "dur() > {length}",
    "time({x}) < time({y})",
    "time({y}) - time({x}) <= 30 min",
    "end() - start() > 10 min",
    "start() = time({x})",
    "{revision}",
    "contains({a}, {b})",
    "starts-with({b}, {a})",
    "ends-with({b}, lower-case({a}))",
    "matches({a}, concat('^', {b}))",
    "contains({a}, {word})",
    "matches({a}, {word})",
    "exists({n}/c)",
    "empty({n}/t)",
    "exists({n}//c[. = {word}])",
    "empty({m}/@h)",
    "exists(host({a}))",
    "if ({a} = {b}) then 1 else 2 = 1",
    "if (exists({n}/t)) then {n}/t else {a} = {b}",
    "if ({a} > 1 OR contains({b}, 'x')) then {a} else 2 > 1",
    "if (dur() > 30 min) then {b} else {a} = {word}",
)
"""Conditions of values `a` and `b`, nodes `m` and `n`, variables `x` and `y` of two operands."""


REVISIONS: Sequence[str] = (
    "revision({x}) = 0",
    "revision({y}) > revision({x})",
    "revision({y}) + 1 != {b}",
    "revision({x}) = {number}",
    "end() > time({x}) AND revision({y}) < 1",
)
"""Such conditions of revisions: a case with one has more documents of one key."""


class Terms:
    """Writes conditions of two operands."""

    def __init__(self, mood: Mood) -> None:
        self._mood = mood

    def term(self, left: list[str], right: list[str], names: Names) -> str:
        """Return a condition that compares variables of two operands."""
        template = self._mood.choice(TERMS)
        parameters = {}
        if template == "{revision}":
            template = self._mood.choice(REVISIONS)
            self._mood.has_revisions = True
        if "{number}" in template:
            parameters["number"] = self._constant(names, [0, 1], "1")
        if "{word}" in template:
            parameters["word"] = self._constant(names, ["x", "1"], "'x'")
        if "{length}" in template:
            parameters["length"] = self._constant(names, ["20 m", "1 h"], "30 min")
        return template.format(
            a=self._value(left, names),
            b=self._value(right, names),
            n=self._node(right, names),
            m=self._node(left, names),
            x=self._mood.choice(left),
            y=self._mood.choice(right),
            **parameters,
        )

    def _constant(self, names: Names, values: Sequence[str | int], constant: str) -> str:
        return names.parameter(list(values)) if self._mood.chance(30) else constant

    def _value(self, variables: list[str], names: Names) -> str:
        node = self._node(variables, names)
        return f"{node}/{self._mood.choice(('c', 't'))}" if node in names.roots else node

    def _node(self, variables: list[str], names: Names) -> str:
        roots = [each for each in variables if each in names.roots]
        return self._mood.choice(roots if roots and self._mood.chance(80) else variables)
