"""Random blocks of queries: a stream, steps, and what stands between their brackets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from generators.mood import Mood

__all__ = ["COMPARISONS", "Blocks", "Names"]

COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")

JOINED = (
    *("{} or {}", "not({} or {})", "not({})", "{} or p > 1", "{} and {}", "{} and {} or {}"),
    *(
        "not({} and p)",
        "not({}) or {}",
        "{} and not({}) or {} and p",
        "c[{}]",
        "*[not({})]/c",
        "not(c[{} or {}])",
        "*[not({})][not({})]",
        "not(*[{}][{}])",
        "*[{}][2]",
        "{}][2",
        "{} and position() < 3",
    ),
)
PLACED = ("{}[{}] = 'x'", "{}[position() > {}]", "{}[{}][. != 'y']/@h", "{}[. = 'x'][{}]")
NUMBERS = ("count({})", "sum({})", "{} * 2", "string-length({}) - 1")
CALCULATED = (
    *("{} > p * {}", "count({}) * {} <= 2", "{} * 2 + {} = 4", "{1} div count({0}) >= 1"),
    *("{} != p * {}", "{} * 2 != {} - p"),
)
FRAMED = (
    *("string({}) = {}", "concat({}, 'y') != {}", "contains(concat({}, c), {})"),
    *("{} = normalize-space({})", "concat({}, {}) = 'xy'", "({} = {}) != @k", "{} < string({})"),
    *("count({}[. = {}]) > 1", "not(*[not({} = {})])", "not(../*[{} = {}])"),
    *("following-sibling::*/{} = {}", "count(//{}[. = {}]) = 1", "{} != {}][last()"),
)

CONDITIONS: Sequence[tuple[str, Sequence[str]]] = (
    ("{}", ()),
    ("not({})", ()),
    ("{} = 'x'", ("x", "y")),
    ("{} = '1'", ("1", "1.0", "2")),
    ("{} != '1'", ("1", "1.0")),
    ("{} != 'x'", ("x", "y")),
    ("{} = 1", ("1.0", "2", "x")),
    ("{} != 1", ("1.0", "2", "x")),
    ("{} > 1", ("1", "2", "x")),
    ("{} <= '2'", ("1", "2", "10", "x")),
    ("contains({}, 'x')", ("xy", "y")),
    ("starts-with({}, 'x')", ("xy", "yx")),
    ("ends-with({}, 'y')", ("xy", "yx")),
    ("matches({}, '^[a-w]')", ("a", "x")),
    ("string-length({}) < 2", ("x", "xy")),
    ("lower-case({}) = 'x'", ("X", "y")),
    ("normalize-space({}) = 'x'", (" x", "y")),
    ("{} = 'x' or @k", ("x", "y")),
    ("{} = 'x' or contains(c, 'y') or starts-with(t, 'x')", ("x", "y")),
    ("{} = 'x' and .//t", ("x", "y")),
    ("not({} = 'x' or @k)", ("x", "y")),
    ("not({} != 'x')", ("x", "y")),
    ("count({}) = 1", ()),
    ("count({}) > 1", ()),
    ("number({}) != 1", ("1", "1.0", "x")),
    ("{} * 2 <= 3", ("1", "2", "x")),
    ("not({} < 2)", ("1", "2", "x")),
    ("not(number({}) > 1)", ("1", "2", "x")),
    ("{}[. > 1]", ("1", "2", "x")),
    ("{}[contains(., 'x')][. != 'x']", ("xy", "x", "y")),
    ("*[c = 'x'] or {} = 'y'", ("x", "y")),
    (".//*[c = 'x' and not({} = 1)]", ("x", "1")),
    ("not(*[{} > 1]/c)", ("1", "2", "x")),
    ("*[count({}) < 2]/c", ("x", "y")),
    ("{} = c", ("x", "y", "1")),
    ("{} > p * 2", ("1", "2", "5")),
    ("3 - count(c) * {} <= p", ("0", "1", "x")),
    ("{} * 2 - p = 1 + count(c)", ("1", "2", "x")),
    ("2 div {} >= count(c) div p", ("0", "1", "2")),
    ("string({}) = 'x'", ("x", "y")),
    ("starts-with(concat({}, c), 'x')", ("xy", "yx")),
    ("{} = 'x' and p > 1 or c = 'y'", ("x", "y")),
    ("not({0} = 'x' and c) or {0} > 2", ("x", "3")),
    ("not(.//c = 'x') and {0} or {0} > p * 2", ("1", "x", "4")),
)
"""Conditions of a path, each with values for which it holds and others for which it does not."""

POSITIONS = (
    "1",
    "2",
    "last()",
    "position() > 1",
    "position() < last()",
    "last() = 2",
    "last() > 1",
    "position() mod 2 = 1",
    "last() div 2",
    "count(c) + 1",
    "not(position() mod 2 = 1)",
)


class Names:
    """What a statement binds and asks for: its variables, and its parameters with two values."""

    def __init__(self) -> None:
        self._count = 0
        self.roots: set[str] = set()
        self.parameters: dict[str, list[Any]] = {}

    def variable(self) -> str:
        """Return a variable that is not bound yet."""
        self._count += 1
        return f"v{self._count}"

    def parameter(self, values: list[Any]) -> str:
        """Return a parameter that can have these values."""
        name = f"p{len(self.parameters)}"
        self.parameters[name] = values
        return f"${name}"


class Blocks:
    """Writes blocks; `words` are values that tell whether the conditions of a case hold."""

    def __init__(self, mood: Mood) -> None:
        self._mood = mood
        chosen = [mood.choice(CONDITIONS) for _ in range(2 if mood.is_about("condition") else 0)]
        self._conditions = [condition for condition, _ in chosen]
        self.words = [word for _, words in chosen for word in words]

    def block(self, names: Names, readable: list[str]) -> tuple[str, list[str]]:
        """Return a block and what it binds; it may read a published stream, and leave others."""
        mood = self._mood
        elsewhere = 20 if mood.is_about("publish") else 0
        is_elsewhere = mood.rarely(40, "stream") or mood.chance(elsewhere)
        stream = mood.choice(("T", "*", "*")) if is_elsewhere else "S"
        if readable and mood.chance(70 if mood.is_about("publish") else 20):
            stream = mood.choice(readable)
            if mood.chance(80):
                # Matches of matches of matches are too many for the oracle.
                readable.clear()
            return self._reader(stream, names)
        if mood.chance(10):
            variable = names.variable()
            names.roots.add(variable)
            return f"{stream} AS {variable}", [variable]
        start = mood.choice(("//i", "/i")) if not mood.rarely(35) else self._start()
        variables = [names.variable()]
        if start in ("//i", "/i"):
            names.roots.update(variables)
        steps = [f"{start}->{variables[0]}"]
        for _ in range(mood.choice((1, 1, 2, 1) if mood.has_focus else (1, 1, 2, 0, 3))):
            steps.append(self._bracket(variables, names))
        if mood.rarely(10, "axis"):
            variables.append(names.variable())
            steps.append(f"/{mood.choice(('c', '*', '@h', 'text()'))}->{variables[-1]}")
        return stream + "".join(steps), variables

    def _reader(self, stream: str, names: Names) -> tuple[str, list[str]]:
        """Return a block that reads what a query publishes."""
        variables = [names.variable()]
        names.roots.update(variables)
        start = self._mood.choice(("//i", "/*", "/*", "//*"))
        bracket = self._bracket(variables, names) if self._mood.chance(50) else ""
        return f"{stream}{start}->{variables[0]}{bracket}", variables

    def _start(self) -> str:
        starts = ("//*", "//p", "//i/p", "//c", "//i//t", "//*:i", "//i/c[1]")
        return self._mood.choice(starts)

    def _bracket(self, variables: list[str], names: Names) -> str:
        """Return a predicate of a step; it may bind, and then says so in `variables`."""
        mood = self._mood
        if mood.chance(15) if mood.is_about("position") else mood.rarely(4):
            return f"[{mood.choice(POSITIONS)}]"
        if mood.rarely(12, "condition"):
            return f"[{self._stated()}]"
        if mood.rarely(6, "parameter"):
            return f"[{self._given(names)}]"
        variables.append(names.variable())
        path = f"{self._path()}->{variables[-1]}"
        if mood.rarely(15):
            inner = names.variable()
            variables.append(inner)
            return f"[{path}[{self._path()}->{inner}]]"
        if mood.rarely(5, "position"):
            path += f"[{mood.choice(POSITIONS)}]"
        elif mood.rarely(15, "condition"):
            path += mood.choice((" = 'x'", " > 1", "[1]", "[. != 'x']", "/c", "//t[. = 'x']"))
        return f"[{path}]"

    def _stated(self) -> str:
        """Return a condition: mostly the one that the case is about."""
        mood = self._mood
        if self._conditions and mood.chance(90):
            path = mood.choice(("t", ".//t", "@h", "c", "t", "p"))
            return mood.choice(self._conditions).format(path)
        return mood.choice(CONDITIONS)[0].format(self._path())

    def _given(self, names: Names) -> str:
        """Return a condition with parameters, in which words may join several."""
        mood = self._mood
        if not mood.joins_parameters or mood.chance(20):
            return self._given_once(names)
        form = mood.choice(JOINED)
        return form.format(*(self._given_once(names) for _ in range(form.count("{}"))))

    def _given_once(self, names: Names) -> str:
        """Return a condition with a parameter: a string, a number, or either."""
        mood, path = self._mood, self._path()
        if mood.joins_parameters and mood.chance(40):
            number = mood.choice(NUMBERS)
            data = names.parameter([mood.choice((2, "2", 3)), mood.choice((1, "x", 2))])
            return f"{number.format(path)} {mood.choice(COMPARISONS)} {data}"
        if mood.joins_parameters and mood.chance(25):
            number = names.parameter([mood.choice((2, "2", 3)), mood.choice((1, "x", 2, 0))])
            return mood.choice(CALCULATED).format(path, number)
        if mood.joins_parameters and mood.chance(20):
            data = names.parameter([mood.choice(("x", "y", 1)), mood.choice(("1", "xy", 2, ""))])
            return mood.choice(FRAMED).format(path, data)
        if mood.joins_parameters and mood.chance(15):
            name = mood.choice(("c", "t", ".//c", "*", "p/c"))
            return mood.choice(PLACED).format(name, names.parameter([1, 2]))
        if mood.chance(30):
            function = mood.choice(("contains", "matches"))
            return f"{function}({path}, {names.parameter(['x', 'y'])})"
        if mood.chance(30):
            return f"{path} {mood.choice(COMPARISONS[2:])} {names.parameter([1, 2])}"
        return f"{path} {mood.choice(('=', '=', '!='))} {names.parameter(['x', 'y'])}"

    def _path(self) -> str:
        mood = self._mood
        usual = ("c", "c", "c", "t", ".//c", "*")
        rare = ("@h", "@k", "p", ".//t", "p/c", ".", "text()", ".//@h", "i", ".//p", "c[last()]")
        if mood.rarely(4, "namespace"):
            return mood.choice(("dc:c", "n:c", "*:c", "n:*", ".//dc:c", ".//*:t"))
        if mood.is_about("function") and mood.chance(80):
            return "c"
        return mood.choice(rare if mood.rarely(25, "axis") else usual)
