"""The XPath 2.0 between the braces of a constructor: elementpath's.

Its `matches`, `replace` and `tokenize` run on Python's expressions, some of which never end; these
run on `xscl.patterns`, like those of predicates.  And `1 to 10000000000` is an error, not a list.
What an expression goes through, item by item and comparison by comparison, is counted by a meter.
Its paths give nodes as they are met, `x//c` those of an outer element before all that is deeper;
these give them in document order, as XPath does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import elementpath
from elementpath.datatypes import Integer

from xscl import functions
from xscl.meter import STEP_BYTES, Meter
from xscl.patterns import Pattern, PatternError, compile_pattern

__all__ = ["MeteredContext", "XPath2Parser"]


RANGE_LIMIT = 100_000
"""Numbers of one range, `1 to 10`: elementpath makes a list of them, when it parses too."""


NUMBER_BYTES = 8
"""What each number of a range costs."""


class MeteredContext(elementpath.XPathContext):
    """Where an expression is evaluated; it spends of a meter with each item that it comes to."""

    def __init__(self, meter: Meter, **context: Any) -> None:
        self.meter = meter
        super().__init__(**context)

    @property
    def item(self) -> Any:
        """The item that is looked at."""
        return self._item

    @item.setter
    def item(self, item: Any) -> None:
        self.meter.spend(STEP_BYTES)
        self._item = item

    def iter_product(self, *arguments: Any) -> Iterator[Any]:
        """Yield what variables are bound to: `for`, `some` and `every` bind them together."""
        for values in super().iter_product(*arguments):
            self.meter.spend(2 * STEP_BYTES)
            yield values


class XPath2Parser(elementpath.XPath2Parser):
    """Reads an XPath 2.0 expression whose regular expressions take bounded time."""


def _arguments(call: Any, context: Any) -> list[str]:
    """Return the string arguments of a call; a missing first one is the empty string."""
    first = call.get_argument(context, default="", cls=str)
    others = range(1, len(call))
    return [first, *(call.get_argument(context, i, required=True, cls=str) for i in others)]


def _compiled(call: Any, pattern: str, flags: str) -> Pattern:
    try:
        return compile_pattern(pattern, flags)
    except PatternError as error:
        raise call.error("FORX0002", f"not a regular expression: {error}") from error


def _matches(self: Any, context: Any = None) -> bool:
    text, pattern, flags = [*_arguments(self, context), ""][:3]
    return _compiled(self, pattern, flags).is_found(text)


def _replace(self: Any, context: Any = None) -> str:
    text, pattern, replacement, flags = [*_arguments(self, context), ""][:4]
    if _compiled(self, pattern, flags).fits_nothing():
        raise self.error("FORX0003", f"the expression {pattern!r} fits the empty text")
    found = functions.apply("replace", [[text], [pattern], [replacement], [flags]])
    if not found:
        raise self.error("FORX0004", f"not a replacement: {replacement!r}")
    return str(found[0])


def _tokenize(self: Any, context: Any = None) -> list[str]:
    text, pattern, flags = [*_arguments(self, context), ""][:3]
    if _compiled(self, pattern, flags).fits_nothing():
        raise self.error("FORX0003", f"the expression {pattern!r} fits the empty text")
    return [str(each) for each in functions.apply("tokenize", [[text], [pattern], [flags]])]


def _range(self: Any, context: Any = None) -> list[int]:
    first, last = self.get_operands(context, cls=Integer)
    if first is None or last is None:
        return []
    if last - first >= RANGE_LIMIT:
        raise self.error("FOAR0002", f"a range of more than {RANGE_LIMIT:,} numbers")
    if isinstance(context, MeteredContext):
        context.meter.spend(NUMBER_BYTES * max(0, last - first))
    return list(range(first, last + 1))


def _in_document_order(path: Any) -> Any:
    """Return the token of a path operator, `/` or `//`, that sorts the nodes it selects."""

    def select(self: Any, context: Any = None) -> Iterator[Any]:
        found = list(path.select(self, context))
        if all(isinstance(each, elementpath.XPathNode) for each in found):
            found.sort(key=lambda node: node.position)
        return iter(found)

    return type(path.__name__, (path,), {"select": select})


for _name in ("/", "//"):
    XPath2Parser.symbol_table[_name] = _in_document_order(
        elementpath.XPath2Parser.symbol_table[_name]
    )

_OWN = {"matches": _matches, "replace": _replace, "tokenize": _tokenize, "to": _range}
for _name, _evaluate in _OWN.items():
    _token: Any = elementpath.XPath2Parser.symbol_table[_name]
    XPath2Parser.symbol_table[_name] = type(_token.__name__, (_token,), {"evaluate": _evaluate})


def _compared(self: Any, context: Any) -> Iterator[Any]:
    for values in super(type(self), self).iter_comparison_data(context):
        if isinstance(context, MeteredContext):
            context.meter.spend(STEP_BYTES)
        yield values


for _name in ("=", "!=", "<", "<=", ">", ">="):
    _token = XPath2Parser.symbol_table[_name]
    XPath2Parser.symbol_table[_name] = type(
        _token.__name__, (_token,), {"iter_comparison_data": _compared}
    )
