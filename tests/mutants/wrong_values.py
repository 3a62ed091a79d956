"""Values, compared and derived otherwise than sections 4 and 5 say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

from oracle import values
from oracle.values import Atom

__all__ = [
    "COMPARISONS",
    "EMPTY",
    "condition",
    "first_value",
    "host_in_capitals",
    "host_of_all",
    "host_with_www",
    "residual",
]

_compare = values._compare
_host = values._host
_apply = values.apply


def numbers_where_both_are(left: Atom, comparison: str, right: Atom, as_numbers: bool) -> bool:
    both = values.number(left) is not None and values.number(right) is not None
    return _compare(left, comparison, right, as_numbers=as_numbers or both)


def order_of_strings(left: Atom, comparison: str, right: Atom, as_numbers: bool) -> bool:
    if comparison in ("=", "!="):
        return _compare(left, comparison, right, as_numbers=as_numbers)
    return bool(values.OPERATORS[comparison](str(left), str(right)))


def always_strings(left: Atom, comparison: str, right: Atom, as_numbers: bool) -> bool:
    return _compare(left, comparison, right, as_numbers=False)


def no_number_is_unequal(left: Atom, comparison: str, right: Atom, as_numbers: bool) -> bool:
    if as_numbers and comparison == "!=" and None in (values.number(left), values.number(right)):
        return True
    return _compare(left, comparison, right, as_numbers=as_numbers)


def empty_equals_nothing(left: Atom, comparison: str, right: Atom, as_numbers: bool) -> bool:
    is_equal = _compare(left, comparison, right, as_numbers=as_numbers)
    return is_equal and not (left == right == "")


def residual(wrong: Callable[[Atom, str, Atom, bool], bool]) -> Callable[..., bool]:
    """Return an error about residuals."""

    def compare_operands(
        left: Sequence[Atom], comparison: str, right: Sequence[Atom], *, with_number: bool
    ) -> bool:
        return any(wrong(a, comparison, b, with_number) for a, b in product(left, right))

    return compare_operands


def condition(wrong: Callable[[Atom, str, Atom, bool], bool]) -> Callable[..., bool]:
    """Return an error about comparisons in steps."""

    def compare_with_constant(value: Atom, comparison: str, constant: Atom) -> bool:
        return wrong(value, comparison, constant, isinstance(constant, float))

    return compare_with_constant


def first_value(function: str, arguments: Sequence[Sequence[Atom]]) -> list[Atom]:
    return _apply(function, arguments)[:1]


def host_with_www(url: str) -> list[Atom]:
    return _host(url.replace("www.", "www.www."))


def host_in_capitals(url: str) -> list[Atom]:
    return [host if str(host) in url else str(host).upper() for host in _host(url)]


def host_of_all(url: str) -> list[Atom]:
    return _host(url) or [url]


COMPARISONS = {
    "= and != compare strings": numbers_where_both_are,
    "< <= > >= compare numbers": order_of_strings,
    "with a number compare numbers": always_strings,
    "what is no number is not even unequal": no_number_is_unequal,
}
EMPTY = ("empty strings are equal", empty_equals_nothing)
