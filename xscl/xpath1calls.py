"""What XPath 1.0 makes of values: of texts, of numbers, and of nodes with given texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from xscl.opaque import in_xml
from xscl.path import Parameter, XPathFrame
from xscl.xpath1numbers import as_number

if TYPE_CHECKING:
    from lxml import etree

__all__ = ["XPathArgument", "call_xpath", "given_text", "given_value"]

XPathArgument = str | float | Sequence[str]
"""A text, a number, or the texts of nodes in the order of the document."""


def given_value(value: str | float | int) -> str | float:
    """Return what a parameter is given as XPath 1.0 has it in the text of a condition."""
    return in_xml(value) if isinstance(value, str) else as_number(float(value))


def given_text(frame: XPathFrame, values: Mapping[str, Any]) -> str:
    """Return the text that is made of parameters alone."""
    names = [each.name for each in frame.arguments if isinstance(each, Parameter)]
    return _text(frame.expression, tuple(given_value(values[name]) for name in names))


@lru_cache(maxsize=4_096)
def _text(expression: str, arguments: tuple[str | float, ...]) -> str:
    return cast(str, call_xpath(f"string({expression})", arguments))


def call_xpath(expression: str, arguments: Sequence[XPathArgument]) -> str | float:
    """Return the text or the number that an expression makes of arguments, `$v1`, `$v2` and so on.

    >>> call_xpath("string($v1 = concat($v2, 's'))", [["cat", "dogs"], "dog"])
    'true'
    """
    variables = {f"v{i}": _variable(each) for i, each in enumerate(arguments, 1)}
    evaluate, anywhere = _compile(expression)
    return cast("str | float", evaluate(anywhere, **variables))


def _variable(argument: XPathArgument) -> Any:
    return argument if isinstance(argument, (str, float)) else _nodes(tuple(argument))


@lru_cache(maxsize=4_096)
def _compile(expression: str) -> tuple[etree.XPath, etree._Element]:
    from lxml import etree  # parsing does without it

    found = etree.XPath(expression, regexp=False, smart_strings=False)
    return found, etree.Element("anywhere")


@lru_cache(maxsize=256)
def _nodes(texts: tuple[str, ...]) -> list[etree._Element]:
    from lxml import etree

    nodes = []
    for text in texts:
        node = etree.Element("node")
        node.text = text
        nodes.append(node)
    return nodes
