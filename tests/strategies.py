"""Random query sets and document streams that cover the whole language.

One generator serves two masters: Hypothesis, which shrinks, and a seeded `random.Random`, for long
runs that name a failing case by its number.  It writes a match case as text (see `kit`), so that
the parser is on trial too and a failing case can be kept as it stands.

Vocabulary and values are small on purpose, for matches, ties and near misses.  Half of the cases
are *wild*: every construct is likely, matches are few.  In the others constructs are rare, and
operators of three and four blocks find something too.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from hypothesis import strategies as st

__all__ = ["Chooser", "RandomChooser", "case_texts", "generate", "random_case"]

T = TypeVar("T")

NAMES = ("c", "t", "c", "c", "c", "t", "p", "i")
COMMON = ("x", "x", "y", "x", "1", "x")
RARE = ("X", " x", "x,y", "x y", "", "1.0", "2", "10", "http://www.a.org/x", "n,", "http://a.org")
ATTRIBUTES = ("h", "k")
WINDOWS = ("INF", "1 h", "1.5 h", "INF", "2 h", "PT30M", "10 m")
LATENESSES = ("1 d", "1 d", "1 h", "10 m", "0 s")
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
FUNCTIONS = (
    "lower-case({})",
    "normalize-space({})",
    "tokenize({}, ',')",
    "host({})",
    "substring-before({}, ',')",
    "concat({}, 'y')",
    "lower-case(tokenize({}, ' '))",
    "translate({}, 'xX', 'yY')",
    "replace({}, '^ ', '')",
)
CONDITIONS = (
    "{}",
    "not({})",
    "{} = 'x'",
    "{} != 'x'",
    "{} = 1",
    "{} != 1",
    "{} > 1",
    "{} <= '2'",
    "contains({}, 'x')",
    "starts-with({}, 'x')",
    "ends-with({}, 'y')",
    "matches({}, '^[a-z]')",
    "string-length({}) < 2",
    "lower-case({}) = 'x'",
    "normalize-space({}) = 'x'",
    "{} = 'x' or c",
    "{} and .//t",
    "not({} = 'x' or @k)",
    "count({}) = 1",
    "{} = c",
)
POSITIONS = (
    "1",
    "2",
    "last()",
    "position() > 1",
    "position() < last()",
    "last() = 2",
    "position() mod 2 = 1",
    "last() div 2",
    "count(c) + 1",
    "not(position() mod 2 = 1)",
)


class Chooser(Protocol):
    """Where the generator gets its choices from; what comes first is the simpler choice."""

    def choice(self, items: Sequence[T]) -> T: ...

    def integer(self, least: int, most: int) -> int: ...


class RandomChooser:
    """Choices by a seeded generator."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def choice(self, items: Sequence[T]) -> T:
        return self._random.choice(items)

    def integer(self, least: int, most: int) -> int:
        return self._random.randint(least, most)


class _DrawnChooser:
    """Choices by Hypothesis."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def choice(self, items: Sequence[T]) -> T:
        return items[self.integer(0, len(items) - 1)]

    def integer(self, least: int, most: int) -> int:
        return int(self._draw(st.integers(least, most)))


@st.composite
def case_texts(draw: Any) -> str:
    """Return a strategy of cases as text."""
    return generate(_DrawnChooser(draw))


def random_case(seed: int) -> str:
    """Return the case of a seed as text."""
    return generate(RandomChooser(seed))


def generate(chooser: Chooser) -> str:
    """Write a case, without expectations, from the choices of a chooser."""
    return _Generator(chooser).case()


class _Generator:
    def __init__(self, chooser: Chooser) -> None:
        self._choose = chooser
        self._variables = 0
        self._roots: set[str] = set()
        self._published: list[str] = []
        self._parameters: dict[str, list[Any]] = {}
        self._is_wild = self._chance(50)

    def _rarely(self, percent: int) -> bool:
        """Return true for so many percent of wild cases, and a quarter of it in others."""
        return self._chance(percent if self._is_wild else percent // 4)

    def _chance(self, percent: int) -> bool:
        return self._choose.integer(0, 99) >= 100 - percent

    def case(self) -> str:
        queries = [self._query(i) for i in range(self._choose.integer(1, 4))]
        lines = [f"lateness {self._choose.choice(LATENESSES)}", *queries]
        count = self._choose.choice((3, 5, 6, 7, 8, 9, 2))
        for number in range(len(queries)):
            if self._chance(10):
                lines.append(f"register q{number} after {self._choose.integer(1, count // 2)}")
        lines += [self._document(number) for number in range(1, count + 1)]
        return "# Generated.\n" + "\n".join(lines) + "\n----\n"

    # Documents

    def _document(self, number: int) -> str:
        stream = "T" if self._rarely(20) else "S"
        minute = 5 * self._choose.integer(0, 24)
        time = f"{minute // 60:02}:{minute % 60:02}"
        options = ""
        if self._rarely(20):
            late = minute + 5 * self._choose.integer(-3, 12)
            options = f" arrival={max(late, 0) // 60:02}:{max(late, 0) % 60:02}"
        if self._rarely(5):
            time, options = "-", f" arrival={time}"
        if self._rarely(15):
            options += f" key=k{self._choose.integer(0, 2)}"
        return f"document {number} {stream} {time}{options}  {self._element(0)}"

    def _element(self, depth: int) -> str:
        name = "i" if depth == 0 and not self._rarely(10) else self._choose.choice(NAMES)
        attributes = "".join(
            f' {attribute}="{self._value()}"' for attribute in ATTRIBUTES if self._chance(25)
        )
        if depth > 0 and not (name in "ip" and self._chance(80)):
            content = self._value()
        else:
            content = "".join(self._content(depth) for _ in range(self._choose.integer(2, 5)))
        return f"<{name}{attributes}>{content}</{name}>"

    def _content(self, depth: int) -> str:
        if depth < 2 and not self._rarely(10):
            return self._element(depth + 1)
        return self._choose.choice((self._value(), "<!-- no -->", "x<!-- no -->y"))

    def _value(self) -> str:
        return self._choose.choice(RARE if self._rarely(25) else COMMON)

    # Queries

    def _query(self, number: int) -> str:
        self._parameters = {}
        from_, variables = self._from(self._choose.choice((2, 1, 2, 2, 2, 2, 2, 3, 3, 4)))
        select = self._select(variables)
        text = f"SELECT {select} FROM {from_}" if self._chance(50) else f"FROM {from_}"
        if text.startswith("FROM") and self._chance(30):
            text += f" SELECT {select}"
        lines = [f"query q{number}", f"    {text}"]
        if self._chance(25):
            name = f"P{number}"
            self._published.append(name)
            lines[1] += f" PUBLISH {name}"
        for row in range(self._choose.integer(0, 2) if self._parameters else 0):
            values = {name: given[row] for name, given in self._parameters.items()}
            lines.append(f"parameters q{number} {json.dumps(values)}")
        return "\n".join(lines)

    def _from(self, blocks: int) -> tuple[str, list[str]]:
        """Return an operand of some blocks, and the variables that it binds."""
        if blocks == 1:
            return self._block()
        inner = self._choose.integer(1, blocks - 1)
        left, left_variables = self._from(blocks - inner)
        right, right_variables = self._from(inner)
        kind = self._choose.choice(("FOLLOWED BY", "JOIN"))
        predicate = self._predicate(left_variables, right_variables)
        if inner > 1:
            right = f"({right})"
        text = f"{left} {kind} {{{predicate}, {self._window()}}} {right}"
        return text, left_variables + right_variables

    def _window(self) -> str:
        if self._rarely(10):
            return self._parameter(["10 m", "1 h"])
        return self._choose.choice(WINDOWS)

    def _parameter(self, values: list[Any]) -> str:
        name = f"p{len(self._parameters)}"
        self._parameters[name] = values
        return f"${name}"

    def _new_variable(self) -> str:
        self._variables += 1
        return f"v{self._variables}"

    def _block(self) -> tuple[str, list[str]]:
        stream = self._choose.choice(("T", "*", "*")) if self._rarely(40) else "S"
        if self._published and self._chance(20):
            stream = self._choose.choice(self._published)
        if self._chance(10):
            variable = self._new_variable()
            self._roots.add(variable)
            return f"{stream} AS {variable}", [variable]
        start = self._choose.choice(("//i", "/i")) if not self._rarely(35) else self._start()
        variables = [self._new_variable()]
        if start in ("//i", "/i"):
            self._roots.update(variables)
        steps = [f"{start}->{variables[0]}"]
        for _ in range(self._choose.choice((1, 1, 2, 0, 3))):
            steps.append(self._bracket(variables))
        if self._rarely(10):
            variables.append(self._new_variable())
            steps.append(f"/{self._choose.choice(('c', '*', '@h', 'text()'))}->{variables[-1]}")
        return stream + "".join(steps), variables

    def _start(self) -> str:
        return self._choose.choice(("//*", "//p", "//i/p", "//c", "//i//t", "//*:i", "//i/c[1]"))

    def _bracket(self, variables: list[str]) -> str:
        """Return a predicate of a step; it may bind, and then says so in `variables`."""
        if self._rarely(4):
            return f"[{self._choose.choice(POSITIONS)}]"
        if self._rarely(12):
            condition = self._choose.choice(CONDITIONS)
            return f"[{condition.format(self._path())}]"
        if self._rarely(6):
            return f"[c = {self._parameter(['x', 'y'])}]"
        variables.append(self._new_variable())
        path = f"{self._path()}->{variables[-1]}"
        if self._rarely(15):
            inner = self._new_variable()
            variables.append(inner)
            return f"[{path}[{self._path()}->{inner}]]"
        if self._rarely(15):
            path += self._choose.choice((" = 'x'", " > 1", "[1]", "[. != 'x']"))
        return f"[{path}]"

    def _path(self) -> str:
        usual = ("c", "c", "c", "t", ".//c", "*")
        rare = ("@h", "@k", "p", ".//t", "p/c", ".", "text()", ".//@h", "i", ".//p", "c[last()]")
        return self._choose.choice(rare if self._rarely(25) else usual)

    # Predicates of operators

    def _predicate(self, left: list[str], right: list[str]) -> str:
        if self._chance(5):
            return ""
        alternatives = [self._conjunction(left, right) for _ in range(2 if self._chance(12) else 1)]
        return " OR ".join(alternatives)

    def _conjunction(self, left: list[str], right: list[str]) -> str:
        parts = [
            f"{self._operand(left)} = {self._operand(right)}"
            for _ in range(0 if self._rarely(15) else 1 + self._rarely(20))
        ]
        while not parts or self._rarely(16):
            parts.append(self._residual(left, right))
        return " AND ".join(parts)

    def _residual(self, left: list[str], right: list[str]) -> str:
        comparison = self._choose.choice(COMPARISONS)
        first = self._operand(left)
        second = self._choose.choice(
            (
                self._operand(right),
                self._operand(left),
                "1",
                "'x'",
                f"concat({self._choose.choice(left)}, {self._choose.choice(right)})",
            )
        )
        if self._chance(6):
            second = self._parameter(["x", "1"] if comparison in ("=", "!=") else [1, 2])
        return f"{first} {comparison} {second}"

    def _operand(self, variables: list[str]) -> str:
        operand = self._choose.choice(variables)
        if self._chance(90 if operand in self._roots else 6):
            rare = ("//t", "/*", "/@h", "/p/c", "/text()")
            operand += self._choose.choice(rare if self._rarely(50) else ("/c", "//c"))
        if self._rarely(20):
            operand = self._choose.choice(FUNCTIONS).format(operand)
        return operand

    def _select(self, variables: list[str]) -> str:
        chosen = self._choose.choice(variables)
        other = self._choose.choice(variables)
        listed = chosen if chosen == other else f"{chosen}, {other}"
        return self._choose.choice(
            (
                "*",
                listed,
                f'<i h="{{{chosen}}}"><c>{{string({other})}}</c></i>',
                f'<i h="x"><p>{{{chosen}/c}}</p><t>{{{chosen}/@h}}</t></i>',
            )
        )
