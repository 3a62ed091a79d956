"""Random predicates of operators: value joins, residuals, functions of values, and OR."""

from __future__ import annotations

import re
from collections.abc import Sequence

from generators.mood import Mood
from generators.random_blocks import COMPARISONS, Names
from generators.random_terms import WORDS, Terms

__all__ = ["Predicates"]

FUNCTIONS: Sequence[tuple[str, Sequence[str]]] = (
    ("lower-case({})", ("X", "x")),
    ("upper-case({})", ("x", "X")),
    ("string({})", ("x", "y")),
    ("substring({}, 2)", ("yx", "x")),
    ("substring({}, 1, 1)", ("xy", "x")),
    ("substring-after({}, ',')", ("y,x", "x")),
    ("substring-before({}, ',')", ("x,y", "x")),
    ("normalize-space({})", (" x", "x", "x ")),
    ("tokenize({}, ',')", ("x,y", "x", "y")),
    ("host({})", ("http://www.a.org/x", "https://A.org:8/", "a.org")),
    ("host({})", ("http://www.a.org/x", "https://A.org:8/", "a.org", "//b", "b")),
    ("concat({}, 'y')", ("x", "xy")),
    ("lower-case(tokenize({}, ' '))", ("X Y", "x", "y")),
    ("translate({}, 'X', 'x')", ("Xy", "xy")),
    ("replace({}, '^ ', '')", (" x", "x")),
)
"""Functions of a value, each with values of which it makes one another."""

GIVEN: Sequence[tuple[str, Sequence[object]]] = (
    ("concat({0}, {2}) = 'xy'", ("x", "y")),
    ("replace({0}, {2}, 'y') = {1}", ("x", "y")),
    ("tokenize({0}, {2}) = {1}", (",", "x")),
    ("contains({0}, concat({2}, 'y'))", ("x", "")),
    ("contains(lower-case({0}), {2})", ("x", "1")),
    ("exists({0}/c[. = {2}])", ("x", "1")),
    ("empty({0}/c[. = {2}])", ("x", "1")),
    ("{0}/c[{2}] = {1}", (1, 2)),
    ("{0}//c[position() < {2}] = {1}", (2, 3)),
    ("{0}[c >= @k * {2} or t = 1]/c = {1}", (1, 2)),
    ("if ({0}/c > {2}) then 'x' else {1} = 'x'", (0, 1)),
    ("time({0}) > time({1}) + {2}", ("1 us", "1 h")),
)
"""Conditions of two variables with a parameter within, and what it can be."""


class Predicates:
    """Writes predicates; `words` are values that the functions of a case tell apart."""

    def __init__(self, mood: Mood) -> None:
        self._mood = mood
        chosen = [mood.choice(FUNCTIONS) for _ in range(2 if mood.is_about("function") else 0)]
        self._functions = [function for function, _ in chosen]
        self.words = [word for _, words in chosen for word in words]
        self._terms = Terms(mood)
        if mood.is_about("term", "clause"):
            self.words += WORDS

    def predicate(self, left: list[str], right: list[str], names: Names) -> str:
        """Return a predicate that compares variables of two operands; it may be empty."""
        mood = self._mood
        if mood.chance(40 if mood.is_about("unjoined") else 5):
            return ""

        def alternative() -> str:
            return self._conjunction(left, right, names)

        if not mood.chance(80 if mood.is_about("or") else 12):
            return alternative()
        if mood.chance(30):
            return f"({alternative()} OR {alternative()}) AND {alternative()}"
        return " OR ".join(alternative() for _ in range(mood.choice((2, 2, 3))))

    def condition(self, variables: list[str], names: Names) -> str:
        """Return a condition of the tuples of a from: WHERE."""

        def part() -> str:
            if self._mood.chance(50):
                return self._terms.term(variables, variables, names)
            return self._residual(variables, variables, names)

        text = part()
        while self._mood.chance(30):
            text += f" {self._mood.choice(('AND', 'OR'))} {part()}"
        return text

    def mirrored(self, text: str, variables: list[str], names: Names) -> tuple[str, list[str], str]:
        """Return a block that asks for the same, its variables, and a predicate of equal pairs."""
        twins = {variable: names.variable() for variable in variables}
        names.roots.update(twins[variable] for variable in variables if variable in names.roots)

        def renamed(text: str) -> str:
            return re.sub(r"\bv\d+\b", lambda found: twins[found[0]], text)

        operands = [self._operand(variables, names) for _ in range(self._mood.integer(1, 2))]
        equal = [f"{operand} = {renamed(operand)}" for operand in operands]
        return renamed(text), list(twins.values()), " AND ".join(equal)

    def _conjunction(self, left: list[str], right: list[str], names: Names) -> str:
        mood = self._mood
        parts = [
            f"{self._joined(left, names)} = {self._joined(right, names)}"
            for _ in range(0 if mood.rarely(15, "unjoined") else 1 + mood.rarely(20))
        ]
        if mood.is_about("term"):
            parts += [self._terms.term(left, right, names) for _ in range(mood.choice((1, 1, 2)))]
        if mood.joins_parameters and mood.chance(60):
            parts.append(self._given(left, right, names))
        more = 40 if mood.is_about("empty", "parameter") else 0
        while not parts or (len(parts) < 4 and (mood.rarely(16, "residual") or mood.chance(more))):
            parts.append(self._residual(left, right, names))
        return " AND ".join(parts)

    def _residual(self, left: list[str], right: list[str], names: Names) -> str:
        mood = self._mood
        if mood.joins_parameters and mood.chance(35):
            return self._given(left, right, names)
        comparison = mood.choice((*COMPARISONS, "!="))
        first = self._filtered(left, names)
        second = mood.choice(
            (
                self._filtered(right, names),
                self._filtered(left, names),
                "1",
                "''" if mood.is_about("empty") else mood.choice(("'x'", "'1'")),
                f"concat({mood.choice(left)}, {mood.choice(right)})",
                self._filtered(right, names),
            )
        )
        if second == "''":
            comparison = mood.choice(("=", "=", "!="))
        if mood.chance(50 if mood.is_about("parameter") else 6):
            second = names.parameter(["x", "1"] if comparison in ("=", "!=") else [1, 2])
        if mood.chance(30):
            first, second = second, first
        return f"{first} {comparison} {second}"

    def _given(self, left: list[str], right: list[str], names: Names) -> str:
        """Return a condition of two variables with a parameter within."""
        condition, values = self._mood.choice(GIVEN)
        two = self._mood.choice(((left, right), (right, left)))
        return condition.format(*map(self._mood.choice, two), names.parameter([*values]))

    def _filtered(self, variables: list[str], names: Names) -> str:
        """Return a side of a residual: in a case about these, mostly what may be a number."""
        return self._child("t", variables, names) or self._operand(variables, names)

    def _joined(self, variables: list[str], names: Names) -> str:
        return self._child("c", variables, names) or self._operand(variables, names)

    def _child(self, name: str, variables: list[str], names: Names) -> str:
        """Return, in most cases about residuals, what all documents have."""
        roots = [variable for variable in variables if variable in names.roots]
        if roots and self._mood.is_about("residual") and self._mood.chance(75):
            return f"{self._mood.choice(roots)}/{name}"
        return ""

    def _operand(self, variables: list[str], names: Names) -> str:
        mood = self._mood
        operand = mood.choice(variables)
        if mood.chance(90 if operand in names.roots else 6):
            rare = ("//t", "/*", "/@h", "/p/c", "/text()")
            operand += mood.choice(rare if mood.rarely(50, "axis") else ("/c", "//c"))
        if self._functions and mood.chance(55):
            return mood.choice(self._functions).format(operand)
        if mood.rarely(20):
            return mood.choice(FUNCTIONS)[0].format(operand)
        return operand
