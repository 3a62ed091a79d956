"""The functions that comparisons use, on plain strings: sections 4 and 5 of the language.

Every function maps over sequences: `lower-case(tokenize(x, ','))` has one value for each token,
and a function of several sequences one for each combination.  These run for every candidate of
a join, in Spark workers too, so this module imports nothing heavy before it is needed.
"""

from __future__ import annotations

import functools
import itertools
import math
import operator
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any
from urllib.parse import urlsplit

from xscl.numerals import spell_double
from xscl.path import Literal
from xscl.patterns import PatternError, compile_pattern
from xscl.query import Call, Derived, Operand, VariableValue

__all__ = [
    "Atom",
    "apply",
    "compare",
    "compare_literal",
    "derive",
    "exact",
    "holds",
    "host",
    "passes",
    "spell",
    "to_double",
]

Atom = str | float | Fraction
"""A value: a string, or a number where one was written or counted; a measure is a fraction."""

_XML_SPACE = " \t\r\n"
_DOUBLE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

_DECIMAL_BELOW = 1e15
"""Functions write smaller numbers without an exponent; counts are among them, which are doubles."""

COMBINATION_LIMIT = 100_000
"""Values of one function of several sequences; the rest is left out."""


def to_double(value: Atom) -> float:
    """Return a value as `xs:double`; what is not a number is NaN.

    >>> to_double(" 1.5e1 "), to_double("fifteen")
    (15.0, nan)
    """
    if isinstance(value, float):
        return value
    # To ask whether it is a fraction costs more.
    if isinstance(value, str):
        return _read_double(value)
    return float(value)


@functools.lru_cache(maxsize=4_096)
def _read_double(value: str) -> float:
    text = value.strip(_XML_SPACE)
    if _DOUBLE.fullmatch(text):
        return float(text)
    return {"INF": math.inf, "-INF": -math.inf}.get(text, math.nan)


def compare(left: Sequence[Atom], comparison: str, right: Sequence[Atom]) -> bool:
    """Return whether some value of one side and some value of the other satisfy a comparison.

    `=` and `!=` of two strings compare strings; all else compares doubles, and what is not a
    number makes the comparison false.  Where a measure is compared, a double is its shortest
    decimal.

    >>> compare(["1.0"], "=", ["1"]), compare(["1.0"], "=", [1.0]), compare(["b"], ">", ["a"])
    (False, True, False)
    """
    test = _COMPARE[comparison]
    if not all(isinstance(value, (str, float)) for value in (*left, *right)):
        return any(_exactly(a, b, test) for a in left for b in right)
    if comparison in ("=", "!="):
        return any(_equality(a, b, test) for a in left for b in right)
    numbers = [to_double(b) for b in right]
    return any(test(to_double(a), b) for a in left for b in numbers)


def compare_literal(values: Sequence[Atom], comparison: str, literal: Atom) -> bool:
    """Return whether some value in a step's predicate satisfies a comparison with a literal.

    `=` and `!=` with a string compare strings, a count of characters as it is written.

    >>> compare_literal([2.0], "=", "2"), compare_literal([2.0], "=", "02")
    (True, False)
    """
    if isinstance(literal, str) and comparison in ("=", "!="):
        values = [spell(value) for value in values]
    return compare(values, comparison, [literal])


def exact(value: Atom) -> Fraction | float:
    """Return a number as its shortest decimal says; infinities, and NaN for no number, as floats.

    >>> exact(0.8), exact("1e1"), exact("ten")
    (Fraction(4, 5), Fraction(10, 1), nan)
    """
    if isinstance(value, Fraction):
        return value
    number = to_double(value)
    return Fraction(repr(number)) if math.isfinite(number) else number


def _exactly(left: Atom, right: Atom, test: Callable[[Any, Any], bool]) -> bool:
    first, second = exact(left), exact(right)
    return first == first and second == second and test(first, second)


def _equality(left: Atom, right: Atom, test: Callable[[Any, Any], bool]) -> bool:
    if isinstance(left, str) and isinstance(right, str):
        return test(left, right)
    first, second = to_double(left), to_double(right)
    return first == first and second == second and test(first, second)


def derive(operand: Derived, value: str) -> tuple[str, ...]:
    """Return the values of an operand of one variable whose node has this string value."""
    return tuple(map(spell, _derived(operand, value)))


def _derived(operand: Operand, value: str) -> tuple[Atom, ...]:
    match operand:
        case VariableValue():
            return (value,)
        case Literal(constant):
            return (constant,)
        case Call(function, arguments):
            return apply(function, [_derived(each, value) for each in arguments])
    raise AssertionError(f"no function of a string: {operand}")


def apply(function: str, arguments: Sequence[Sequence[Atom]]) -> tuple[Atom, ...]:
    r"""Return the values of a function for every combination of its arguments' values.

    >>> apply("tokenize", [["a, b"], [",\\s*"]])
    ('a', 'b')
    """
    call = FUNCTIONS[function]
    if len(arguments) == 1:
        return tuple(found for value in arguments[0] for found in call(value))
    combinations = itertools.islice(itertools.product(*arguments), COMBINATION_LIMIT)
    return tuple(found for each in combinations for found in call(*each))


def holds(function: str, value: Atom, argument: Atom, flags: str = "") -> bool:
    """Return whether a value passes `contains`, `starts-with`, `ends-with` or `matches`."""
    text, wanted = spell(value), spell(argument)
    if function == "contains":
        return wanted in text
    if function == "starts-with":
        return text.startswith(wanted)
    if function == "ends-with":
        return text.endswith(wanted)
    try:
        return compile_pattern(wanted, flags).is_found(text)
    except PatternError:
        return False


def passes(function: str, arguments: Sequence[Sequence[Atom]]) -> bool:
    """Return whether `contains` or the like holds for some combination of arguments' values.

    >>> passes("contains", [["harbour", "sea"], ["arb", "x"]])
    True
    """
    combinations = itertools.islice(itertools.product(*arguments), COMBINATION_LIMIT)
    return any(
        holds(function, value, argument, spell(flags[0]) if flags else "")
        for value, argument, *flags in combinations
    )


def spell(value: Atom) -> str:
    """Return a value as a string: numbers below 10^15 without an exponent, others as XPath does.

    >>> spell(2.0), spell(1234567.5), spell(1.5e20)
    ('2', '1234567.5', '1.5E20')
    """
    if isinstance(value, str):
        return value
    value = to_double(value)
    if math.isfinite(value) and value == int(value) and abs(value) < _DECIMAL_BELOW:
        return str(int(value))
    return spell_double(value, _DECIMAL_BELOW)


def _string_function(value: Atom) -> tuple[Atom, ...]:
    return (spell(value),)


def _normalize_space(value: Atom) -> tuple[Atom, ...]:
    return (" ".join(re.split(f"[{_XML_SPACE}]+", spell(value).strip(_XML_SPACE))),)


def _lower_case(value: Atom) -> tuple[Atom, ...]:
    return (spell(value).lower(),)


def _upper_case(value: Atom) -> tuple[Atom, ...]:
    return (spell(value).upper(),)


def _string_length(value: Atom) -> tuple[Atom, ...]:
    return (float(len(spell(value))),)


def _translate(value: Atom, source: Atom, target: Atom) -> tuple[Atom, ...]:
    table: dict[int, str | None] = {}
    replacements = spell(target)
    for index, character in enumerate(spell(source)):
        table.setdefault(ord(character), replacements[index : index + 1] or None)
    return (spell(value).translate(table),)


def _substring(value: Atom, start: Atom, length: Atom = math.inf) -> tuple[Atom, ...]:
    """XPath's: positions from 1, both numbers rounded half up, NaN selects nothing."""
    text, first, count = spell(value), _round(to_double(start)), _round(to_double(length))
    end = first + count  # NaN for -INF + INF, as in XPath
    if math.isnan(first) or math.isnan(end):
        return ("",)
    begin = max(0, int(max(first, 1.0)) - 1) if first < math.inf else len(text)
    stop = len(text) if end == math.inf else max(begin, int(max(end, 1.0)) - 1)
    return (text[begin:stop],)


def _round(number: float) -> float:
    return float(math.floor(number + 0.5)) if math.isfinite(number) else number


def _substring_before(value: Atom, mark: Atom) -> tuple[Atom, ...]:
    before, found, _ = _partition(spell(value), spell(mark))
    return (before if found else "",)


def _substring_after(value: Atom, mark: Atom) -> tuple[Atom, ...]:
    _, _, after = _partition(spell(value), spell(mark))
    return (after,)


def _partition(text: str, mark: str) -> tuple[str, bool, str]:
    if not mark:
        return "", True, text
    before, found, after = text.partition(mark)
    return before, bool(found), after


def _concat(*parts: Atom) -> tuple[Atom, ...]:
    return ("".join(map(spell, parts)),)


def _replace(value: Atom, pattern: Atom, replacement: Atom, flags: Atom = "") -> tuple[Atom, ...]:
    """Nothing where the pattern or the replacement is none: XPath raises an error there."""
    try:
        compiled = compile_pattern(spell(pattern), spell(flags))
        groups = compiled.groups
        template = _template(spell(replacement), groups)
    except PatternError:
        return ()
    if compiled.fits_nothing():
        return ()
    return (compiled.replaced(spell(value), lambda found: _fill(template, found, groups)),)


def _template(replacement: str, groups: int) -> list[str | int]:
    """Return a replacement in pieces: text, and numbers of groups (`$1`)."""
    pieces: list[str | int] = []
    for found in re.finditer(r"\\(.?)|\$(\d*)|[^\\$]+", replacement, re.DOTALL):
        escaped, digits = found[1], found[2]
        if escaped is not None:
            if escaped not in ("\\", "$"):
                raise PatternError("a backslash escapes only `$` and itself")
            pieces.append(escaped)
        elif digits is not None:
            if not digits:
                raise PatternError("`$` is followed by a group's number")
            size = len(digits)
            while size > 1 and int(digits[:size]) > groups:
                size -= 1
            pieces += [int(digits[:size]), digits[size:]]
        else:
            pieces.append(found[0])
    return pieces


def _fill(template: Sequence[str | int], found: Any, groups: int) -> str:
    return "".join(
        piece if isinstance(piece, str) else (found[piece] or "" if piece <= groups else "")
        for piece in template
    )


def _tokenize(value: Atom, pattern: Atom, flags: Atom = "") -> tuple[Atom, ...]:
    text = spell(value)
    try:
        compiled = compile_pattern(spell(pattern), spell(flags))
    except PatternError:
        return ()
    if not text or compiled.fits_nothing():
        return ()
    pieces, start = [], 0
    for found in compiled.found(text):
        pieces.append(text[start : found.start()])
        start = found.end()
    return (*pieces, text[start:])


_AUTHORITY = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")


def host(url: str) -> str | None:
    """Return the host name of an absolute URL, in lower case and without `www.`, or `None`.

    >>> host("https://www.Example.org:8080/a?b"), host("example.org")
    ('example.org', None)
    """
    url = url.strip(_XML_SPACE)
    authority = _AUTHORITY.match(url)
    if authority is None or re.search(r"\s", authority[1].rpartition("@")[2].partition(":")[0]):
        return None  # `urlsplit` would drop line ends
    try:
        name = urlsplit(url).hostname
    except ValueError:
        return None
    if not name:
        return None
    name = name.removesuffix(".")
    return name.removeprefix("www.") or None


def _host(value: Atom) -> tuple[Atom, ...]:
    found = host(spell(value))
    return () if found is None else (found,)


FUNCTIONS: dict[str, Callable[..., tuple[Atom, ...]]] = {
    "string": _string_function,
    "normalize-space": _normalize_space,
    "lower-case": _lower_case,
    "upper-case": _upper_case,
    "string-length": _string_length,
    "translate": _translate,
    "substring": _substring,
    "substring-before": _substring_before,
    "substring-after": _substring_after,
    "concat": _concat,
    "replace": _replace,
    "tokenize": _tokenize,
    "host": _host,
}
"""Every function by its name, on single values."""
