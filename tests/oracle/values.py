"""What comparisons mean: typing (sections 3 and 4) and functions of values (section 5)."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from itertools import product
from typing import Any

from elementpath import ElementPathError, XPath2Parser, XPathContext

__all__ = [
    "OPERATORS",
    "Atom",
    "apply",
    "calculate",
    "compare_operands",
    "compare_with_constant",
    "number",
    "passes",
]

Atom = str | float
"""A string or a number."""

OPERATORS = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_DOUBLE = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-?INF")
_OF_STRINGS = frozenset({"concat", "lower-case", "normalize-space", "string", "upper-case"})
_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://(?:[^/?#]*@)?([^/?#@]*)", re.ASCII)
_HOST = re.compile(r"\[([0-9a-f:.]+)\](?::.*)?|([^\s:\[\]]+)(?::.*)?")


def number(value: Atom) -> float | None:
    """Read a value as `xs:double`; None for what is not a number."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    text = value.strip(" \t\r\n")
    return float(text) if _DOUBLE.fullmatch(text) else None


def compare_with_constant(value: Atom, comparison: str, constant: Atom) -> bool:
    """Section 3: `=` and `!=` with a string compare strings, all else compares numbers."""
    return _compare(value, comparison, constant, as_numbers=isinstance(constant, float))


def compare_operands(
    left: Sequence[Atom], comparison: str, right: Sequence[Atom], *, with_number: bool
) -> bool:
    """Section 4: a general comparison; `with_number` says that one side is a number literal."""
    return any(_compare(a, comparison, b, as_numbers=with_number) for a, b in product(left, right))


def _compare(left: Atom, comparison: str, right: Atom, *, as_numbers: bool) -> bool:
    if not as_numbers and comparison in ("=", "!="):
        return bool(OPERATORS[comparison](string(left), string(right)))
    a, b = number(left), number(right)
    return a is not None and b is not None and bool(OPERATORS[comparison](a, b))


def string(value: Atom) -> str:
    """Return a value as a string; numbers as XPath writes them."""
    if isinstance(value, str):
        return value
    if not math.isfinite(value) or value == 0:
        return str(_xpath("string", (value,))[0])
    # Of other numbers elementpath loses zeros, and keeps those of an exponent.
    number = Decimal(repr(value)).normalize()
    if 1e-6 <= abs(value) < 1e15:
        return f"{number:f}"
    sign, (first, *others), exponent = number.as_tuple()
    places = "".join(map(str, others)) or "0"
    return f"{'-' * sign}{first}.{places}E{int(exponent) + len(others)}"


def apply(function: str, arguments: Sequence[Sequence[Atom]]) -> list[Atom]:
    """Return the values of a function for every choice of one value of each argument."""
    return [value for chosen in product(*arguments) for value in _call(function, chosen)]


def calculate(operation: str, left: float, right: float) -> float:
    """Return the result of an operation of arithmetic, as `xs:double`.

    What `mod` gives has the sign of the dividend, and no number divided is none, as in XPath and
    not in elementpath.
    """
    if math.isnan(left) or math.isnan(right):
        return math.nan
    if operation == "mod" and (left < 0 or right < 0):
        return math.copysign(calculate(operation, abs(left), abs(right)), left)
    context = XPathContext(item=1, variables={"a": left, "b": right})
    return float(_operation(operation).evaluate(context))


@cache
def _operation(operation: str) -> Any:
    parser = XPath2Parser(variable_types={"a": "xs:double", "b": "xs:double"})
    return parser.parse(f"$a {operation} $b")


def passes(function: str, value: Atom, argument: Atom, flags: str = "") -> bool:
    """Return whether `contains`, `starts-with`, `ends-with` or `matches` holds."""
    more = (flags,) if flags else ()
    return _xpath(function, (string(value), string(argument), *more)) == [True]


def _call(function: str, arguments: tuple[Atom, ...]) -> list[Atom]:
    own: dict[str, Callable[..., list[Atom]]] = {
        "host": _host,
        "substring": _substring,
        "translate": _translate,
    }
    if function in _OF_STRINGS:
        arguments = tuple(map(string, arguments))
    return own[function](*arguments) if function in own else _xpath(function, arguments)


def _substring(text: Atom, start: Atom, length: Atom = math.inf) -> list[Atom]:
    """Round half up, as XPath does and elementpath does not; of no numbers there is none."""
    begin, count = number(start), number(length)
    if begin is None or count is None:
        return []
    first = _rounded(begin)
    end = first + _rounded(count)
    found = enumerate(string(text), start=1)
    return ["".join(c for position, c in found if first <= position < end)]


def _rounded(value: float) -> float:
    return value if math.isinf(value) else math.floor(value + 0.5)


def _translate(text: str, source: str, target: str) -> list[Atom]:
    """Let the first of equal characters decide, as XPath does and elementpath does not."""
    places = [(c, source.find(c)) for c in text]
    return ["".join(c if at < 0 else target[at : at + 1] for c, at in places)]


def _host(url: str) -> list[Atom]:
    """Return the host of an absolute URL without the white space around it (section 9)."""
    authority = _AUTHORITY.match(url.strip(" \t\r\n"))
    found = _HOST.fullmatch(authority[1].lower()) if authority else None
    if found is None:
        return []
    host = (found[1] or found[2]).removesuffix(".").removeprefix("www.")
    return [host] if host else []


def _xpath(function: str, arguments: tuple[Atom, ...]) -> list[Atom]:
    variables: Mapping[str, Any] = {f"a{i}": value for i, value in enumerate(arguments)}
    types = tuple("xs:string" if isinstance(value, str) else "xs:double" for value in arguments)
    context = XPathContext(item=1, variables=dict(variables))
    try:
        result = _expression(function, types).evaluate(context)
    except ElementPathError:
        # A pattern that matches the empty string, say: then there are no values.
        return []
    values = result if isinstance(result, list) else [result]
    return [float(value) if isinstance(value, int) else value for value in values]


@cache
def _expression(function: str, types: tuple[str, ...]) -> Any:
    names = [f"a{i}" for i in range(len(types))]
    parser = XPath2Parser(variable_types=dict(zip(names, types, strict=True)))
    return parser.parse(f"{function}({', '.join('$' + name for name in names)})")
