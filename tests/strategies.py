"""Random query sets and document streams that cover the whole language.

One generator serves two masters: Hypothesis, which shrinks, and a seeded `random.Random`, for long
runs that name a failing case by its number.  It writes a match case as text (see `kit`), so that
the parser is on trial too and a failing case can be kept as it stands.

Vocabulary and values are small on purpose, for matches, ties and near misses.  A case is of one of
three moods: in a *tame* one constructs are rare, and operators of three and four blocks find
something too; in a *wild* one every construct is likely, and matches are few; most have a *focus*,
one construct that is in everything, the others rare, so that it decides which matches there are.
`clauses` counts how often that comes true.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from choosers import Chooser, DrawnChooser, RandomChooser
from hypothesis import strategies as st

__all__ = ["FOCI", "Generator", "case_texts", "random_case"]

NAMES = ("c", "t", "c", "c", "c", "t", "p", "i")
COMMON = ("x", "x", "y", "x", "1", "x")
RARE = ("X", " x", "x,y", "x y", "", "1.0", "2", "10", "http://www.a.org/x", "n,", "http://a.org")
DERIVED = ("X", "x", " x", "x ", "x,y", "y", "x y", "http://www.a.org/x", "http://a.org", "a.org")
ATTRIBUTES = ("h", "k")
NAMESPACES = (("dc", "http://purl.org/dc/elements/1.1/"), ("n", "urn:n"))
WINDOWS = ("INF", "1 h", "1.5 h", "INF", "2 h", "PT30M", "10 m")
LATENESSES = ("1 d", "1 d", "1 h", "10 m", "0 s")
COMPARISONS = ("=", "!=", "<", "<=", ">", ">=")
FOCI = (
    *("function", "function", "condition", "condition", "position", "parameter", "parameter"),
    *(
        "residual",
        "residual",
        "or",
        "publish",
        "publish",
        "stream",
        "axis",
        "key",
        "late",
        "nested",
    ),
    *("symmetric", "namespace", "select", "register", "empty", "unjoined", "single"),
)
"""The constructs that a case can be about."""

FUNCTIONS = (
    "lower-case({})",
    "upper-case({})",
    "string({})",
    "substring({}, 2)",
    "substring-after({}, ',')",
    "normalize-space({})",
    "tokenize({}, ',')",
    "host({})",
    "substring-before({}, ',')",
    "concat({}, 'y')",
    "lower-case(tokenize({}, ' '))",
    "translate({}, 'X', 'x')",
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


@st.composite
def case_texts(draw: Any) -> str:
    """Return a strategy of cases as text."""
    return Generator(DrawnChooser(draw)).case()


def random_case(seed: int) -> str:
    """Return the case of a seed as text."""
    return Generator(RandomChooser(seed)).case()


class Generator:
    """Writes documents and queries from the choices of a chooser; so many percent are wild."""

    def __init__(self, chooser: Chooser, *, wild: int = 25, foci: Sequence[str] = FOCI) -> None:
        self._choose = chooser
        self._variables = 0
        self._roots: set[str] = set()
        self._readable: list[str] = []
        self._parameters: dict[str, list[Any]] = {}
        self._is_wild = self._chance(wild)
        self._keyed: dict[str, str] = {}
        self._focus = ""
        if not self._is_wild and self._chance(75):
            self._focus = chooser.choice(foci)

    def _rarely(self, percent: int, construct: str = "") -> bool:
        """Return true for so many percent of wild cases, and for few of others.

        Of cases that are about the construct, it is true for most.
        """
        if construct and construct == self._focus:
            return self._chance(60)
        if self._is_wild:
            return self._chance(percent)
        return self._chance(percent // (8 if self._focus else 4))

    def _is_about(self, *constructs: str) -> bool:
        return self._focus in constructs

    def _chance(self, percent: int) -> bool:
        return self._choose.integer(0, 99) >= 100 - percent

    def case(self) -> str:
        """Return a case, without expectations."""
        if self._chance(1):
            return self._crowd()
        queries: list[str] = []
        published: list[str] = []
        for number in range(self._choose.integer(2 if self._is_about("publish") else 1, 4)):
            queries.append(self._query(number, published))
            if f"PUBLISH P{number}" in queries[-1]:
                published.append(f"P{number}")
        lines = [f"lateness {self.lateness()}", *queries]
        count = self._choose.choice((3, 5, 6, 7, 8, 9, 2))
        for number in range(len(queries)):
            if self._chance(60 if self._is_about("register") else 8):
                lines.append(f"register q{number} after {self._choose.integer(1, count // 2)}")
        lines += [self.document(number) for number in range(1, count + 1)]
        return "# Generated.\n" + "\n".join(lines) + "\n----\n"

    def _crowd(self) -> str:
        """Return a case of two documents with more than a thousand pairs of equal values."""
        residual = self._choose.choice(("", " AND v2 != 'y'", " AND v1/t != v3/t"))
        kind = self._choose.choice(("FOLLOWED BY", "JOIN"))
        select = self._choose.choice(("", " SELECT v1, v3", " SELECT v2"))
        from_ = f"S//i->v1[c->v2] {kind} {{v2 = v4{residual}, 1 h}} S//i->v3[c->v4]"
        lines = ["lateness 1 h", f"query q0\n    FROM {from_}{select}"]
        for number in (1, 2):
            values = "".join(f"<c>{self._choose.choice('xxxxxxxy')}</c>" for _ in range(38))
            lines.append(f"document {number} S 00:{number:02}  <i><t>{number}</t>{values}</i>")
        return "# Generated.\n" + "\n".join(lines) + "\n----\n"

    # Documents

    def lateness(self) -> str:
        """Return an allowed lateness."""
        return self._choose.choice(LATENESSES[2:] if self._is_about("late") else LATENESSES)

    def document(self, number: int) -> str:
        """Return the line of a document."""
        stream = "T" if self._rarely(20, "stream") else "S"
        minute = 5 * self._choose.integer(0, 24)
        time = f"{minute // 60:02}:{minute % 60:02}"
        options = ""
        if self._rarely(20, "late"):
            late = minute + 5 * self._choose.integer(-3, 12)
            options = f" arrival={max(late, 0) // 60:02}:{max(late, 0) % 60:02}"
        if self._rarely(5):
            time, options = "-", f" arrival={time}"
        xml = self._element(0)
        if self._rarely(4):
            xml = xml[: len(xml) // 2]
        if self._rarely(15, "key"):
            key = f"k{self._choose.integer(0, 2)}"
            options += f" key={key}"
            xml = self._keyed.setdefault(key, xml) if self._chance(40) else xml
        return f"document {number} {stream} {time}{options}  {xml}"

    def _element(self, depth: int) -> str:
        name = "i" if depth == 0 and not self._rarely(10) else self._choose.choice(NAMES)
        attributes = "".join(
            f' {attribute}="{self._value()}"'
            for attribute in ATTRIBUTES
            if self._chance(70 if self._is_about("axis") else 25)
        )
        tag = name
        if self._rarely(4, "namespace"):
            prefix, uri = self._choose.choice(NAMESPACES)
            tag, attributes = f"{prefix}:{name}", f'{attributes} xmlns:{prefix}="{uri}"'
        if depth > 0 and not (name in "ip" and self._chance(80)):
            content = self._value()
        else:
            content = "".join(self._content(depth) for _ in range(self._choose.integer(2, 5)))
        return f"<{tag}{attributes}>{content}</{tag}>"

    def _content(self, depth: int) -> str:
        if depth < 2 and not self._rarely(10):
            return self._element(depth + 1)
        return self._choose.choice((self._value(), "<!-- no -->", "x<!-- no -->y"))

    def _value(self) -> str:
        if self._is_about("empty") and self._chance(40):
            return ""
        if self._is_about("function") and self._chance(70):
            return self._choose.choice(DERIVED)
        return self._choose.choice(RARE if self._rarely(25) else COMMON)

    # Queries

    def _query(self, number: int, published: Sequence[str]) -> str:
        lines = [f"query q{number}", f"    {self.statement(number, published)}"]
        for row in range(self._choose.choice((2, 1, 2, 0)) if self._parameters else 0):
            lines.append(f"parameters q{number} {self.values(row)}")
        return "\n".join(lines)

    def values(self, row: int) -> str:
        """Return values of the parameters of the statement that was written last: 0 or 1."""
        return json.dumps({name: given[row] for name, given in self._parameters.items()})

    def statement(self, number: int, published: Sequence[str]) -> str:
        """Return a query; it may read these published streams, and publish that of its number."""
        self._parameters = {}
        self._readable = list(published)
        from_, variables = self._from(self._choose.choice(self._blocks()))
        select = self._select(variables)
        text = f"SELECT {select} FROM {from_}" if self._chance(50) else f"FROM {from_}"
        if text.startswith("FROM") and self._chance(30):
            text += f" SELECT {select}"
        if self._chance(70 if self._is_about("publish") else 25):
            text += f" PUBLISH P{number}"
        if "n:" in from_:
            text = f'DECLARE NAMESPACE n = "urn:n"; {text}'
        return text

    def _blocks(self) -> tuple[int, ...]:
        """Return how many blocks a query may have."""
        if self._is_about("nested"):
            return (3, 3, 3, 4)
        if self._is_about("single", "condition", "position", "publish"):
            return (2, 1)
        return (2, 2, 2, 2, 1, 2, 2, 3) if self._focus else (2, 1, 2, 2, 2, 2, 2, 3, 3, 4)

    def _from(self, blocks: int) -> tuple[str, list[str]]:
        """Return an operand of some blocks, and the variables that it binds."""
        if blocks == 1:
            return self._block()
        inner = self._choose.integer(1, blocks - 1)
        left, left_variables = self._from(blocks - inner)
        kind = self._choose.choice(("FOLLOWED BY", "JOIN"))
        if blocks == 2 and self._rarely(10, "symmetric"):
            right, right_variables, predicate = self._mirrored(left, left_variables)
        else:
            right, right_variables = self._from(inner)
            predicate = self._predicate(left_variables, right_variables)
        if inner > 1:
            right = f"({right})"
        text = f"{left} {kind} {{{predicate}, {self._window()}}} {right}"
        return text, left_variables + right_variables

    def _mirrored(self, text: str, variables: list[str]) -> tuple[str, list[str], str]:
        """Return a block that asks for the same, its variables, and a predicate of equal pairs."""
        names = {variable: self._new_variable() for variable in variables}
        self._roots.update(names[variable] for variable in variables if variable in self._roots)

        def renamed(text: str) -> str:
            return re.sub(r"\bv\d+\b", lambda found: names[found[0]], text)

        compared = [self._operand(variables) for _ in range(self._choose.integer(1, 2))]
        equal = [f"{operand} = {renamed(operand)}" for operand in compared]
        return renamed(text), list(names.values()), " AND ".join(equal)

    def _window(self) -> str:
        if self._rarely(10, "parameter"):
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
        stream = self._choose.choice(("T", "*", "*")) if self._rarely(40, "stream") else "S"
        if self._readable and self._chance(70 if self._is_about("publish") else 20):
            stream = self._choose.choice(self._readable)
            if self._chance(80):
                # Matches of matches of matches are too many for the oracle.
                self._readable = []
            return self._reader(stream)
        if self._chance(10):
            variable = self._new_variable()
            self._roots.add(variable)
            return f"{stream} AS {variable}", [variable]
        start = (
            self._choose.choice(("//i", "/i")) if not self._rarely(35, "path") else self._start()
        )
        variables = [self._new_variable()]
        if start in ("//i", "/i"):
            self._roots.update(variables)
        steps = [f"{start}->{variables[0]}"]
        for _ in range(self._choose.choice((1, 1, 2, 1) if self._focus else (1, 1, 2, 0, 3))):
            steps.append(self._bracket(variables))
        if self._rarely(10, "axis"):
            variables.append(self._new_variable())
            steps.append(f"/{self._choose.choice(('c', '*', '@h', 'text()'))}->{variables[-1]}")
        return stream + "".join(steps), variables

    def _reader(self, stream: str) -> tuple[str, list[str]]:
        """Return a block that reads what a query publishes."""
        variables = [self._new_variable()]
        self._roots.update(variables)
        start = self._choose.choice(("//i", "/*", "/*", "//*"))
        bracket = self._bracket(variables) if self._chance(50) else ""
        return f"{stream}{start}->{variables[0]}{bracket}", variables

    def _start(self) -> str:
        return self._choose.choice(("//*", "//p", "//i/p", "//c", "//i//t", "//*:i", "//i/c[1]"))

    def _bracket(self, variables: list[str]) -> str:
        """Return a predicate of a step; it may bind, and then says so in `variables`."""
        if self._rarely(4, "position"):
            return f"[{self._choose.choice(POSITIONS)}]"
        if self._rarely(12, "condition"):
            condition = self._choose.choice(CONDITIONS)
            return f"[{condition.format(self._path())}]"
        if self._rarely(6, "parameter"):
            return f"[{self._given()}]"
        variables.append(self._new_variable())
        path = f"{self._path()}->{variables[-1]}"
        if self._rarely(15):
            inner = self._new_variable()
            variables.append(inner)
            return f"[{path}[{self._path()}->{inner}]]"
        if self._rarely(15, "condition"):
            path += self._choose.choice((" = 'x'", " > 1", "[1]", "[. != 'x']"))
        elif self._rarely(5, "position"):
            path += f"[{self._choose.choice(POSITIONS)}]"
        return f"[{path}]"

    def _given(self) -> str:
        """Return a condition with a parameter: a string, a number, or either."""
        if self._chance(30):
            return f"contains({self._path()}, {self._parameter(['x', 'y'])})"
        if self._chance(20):
            comparison = self._choose.choice(COMPARISONS[2:])
            return f"{self._path()} {comparison} {self._parameter([1, 2])}"
        return (
            f"{self._path()} {self._choose.choice(('=', '=', '!='))} {self._parameter(['x', 'y'])}"
        )

    def _path(self) -> str:
        usual = ("c", "c", "c", "t", ".//c", "*")
        rare = ("@h", "@k", "p", ".//t", "p/c", ".", "text()", ".//@h", "i", ".//p", "c[last()]")
        if self._rarely(4, "namespace"):
            return self._choose.choice(("dc:c", "n:c", "*:c", "n:*", ".//dc:c", ".//*:t"))
        return self._choose.choice(rare if self._rarely(25, "axis") else usual)

    # Predicates of operators

    def _predicate(self, left: list[str], right: list[str]) -> str:
        if self._chance(60 if self._is_about("unjoined") else 5):
            return ""
        count = 2 if self._chance(80 if self._is_about("or") else 12) else 1
        alternatives = [self._conjunction(left, right) for _ in range(count)]
        return " OR ".join(alternatives)

    def _conjunction(self, left: list[str], right: list[str]) -> str:
        parts = [
            f"{self._operand(left)} = {self._operand(right)}"
            for _ in range(0 if self._rarely(15, "unjoined") else 1 + self._rarely(20))
        ]
        while not parts or (len(parts) < 4 and self._rarely(16, "residual")):
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
        if self._chance(50 if self._is_about("parameter") else 6):
            second = self._parameter(["x", "1"] if comparison in ("=", "!=") else [1, 2])
        return f"{first} {comparison} {second}"

    def _operand(self, variables: list[str]) -> str:
        operand = self._choose.choice(variables)
        if self._chance(90 if operand in self._roots else 6):
            rare = ("//t", "/*", "/@h", "/p/c", "/text()")
            operand += self._choose.choice(rare if self._rarely(50, "axis") else ("/c", "//c"))
        if self._rarely(20, "function"):
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
                f'<i h="{{start()}}"><c>{{end()}}</c><t>{{dur()}}</t>{{{chosen}}}</i>',
                f"<i>{{{chosen}}}{{{other}/c[1]}}<c>{{xs:integer(string({other}))}}</c></i>",
            )
        )
