"""XPath 1.0 at nodes of libxml2's trees: at elements, and at what only an element leads to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from xscl.opaque import positions_as_variables
from xscl.path import Opaque

if TYPE_CHECKING:
    from lxml import etree

__all__ = ["SELF", "Namespaces", "NodePlace", "compile_xpath", "holds_at"]

Namespaces = tuple[tuple[str, str], ...]


class NodePlace(NamedTuple):
    """How to go to a node from its element: an expression, with variables for what it needs.

    What documents hold is given by variables: it may have quotes.
    """

    expression: str = ""
    variables: Mapping[str, str | float] = {}

    @classmethod
    def of_text(cls, index: int) -> NodePlace:
        """Return the place of a text, by its place among the texts of its element."""
        return cls("(text()[$number])", {"number": index + 1.0})

    @classmethod
    def of_attribute(cls, expanded: str) -> NodePlace:
        """Return the place of an attribute of this name."""
        namespace, _, name = expanded.rpartition("}")
        expression = "(@*[local-name() = $name and namespace-uri() = $namespace])"
        return cls(expression, {"name": name, "namespace": namespace[1:]})


SELF = NodePlace()


def holds_at(
    condition: Opaque, element: etree._Element, place: NodePlace, position: int, size: int
) -> bool:
    """Return whether a condition holds at the node that has a place at an element."""
    expression, variables = condition.expression, dict(place.variables)
    if condition.is_positional:
        expression = positions_as_variables(expression)
        variables |= {"position": float(position), "last": float(size)}
    if place.expression:
        expression = f"{place.expression}[{expression}]"
    holds = compile_xpath(f"boolean({expression})", condition.namespaces)
    return bool(holds(element, **variables))


@lru_cache(maxsize=4_096)
def compile_xpath(expression: str, namespaces: Namespaces) -> etree.XPath:
    """Return an expression as libxml2 evaluates it."""
    from lxml import etree  # parsing does without it

    names = dict(namespaces) or None
    # A smart string would hold on to its document.
    return etree.XPath(expression, namespaces=names, regexp=False, smart_strings=False)
