"""Where in a document a text is looked for: the end of a path of names.

`title` is every element or attribute of this local name, `item/title` those below an `item`,
`channel//title` those anywhere below a `channel`, `/rss/channel` those that the path from the root
is, `item/@id` attributes alone.  `*` is any name.  A prefix (`dc:creator`) is left out: names are
told apart without their namespaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from lxml import etree

from broker.documents.wellformed import text_of

__all__ = ["texts_at"]


class _NameStep(NamedTuple):
    """A name, `*` for any, and whether it may stand at any depth below the step before."""

    name: str
    is_deep: bool


def texts_at(root: etree._Element, place: str) -> Iterator[str]:
    """Yield the texts of the elements and attributes at a place, in the document's order.

    >>> root = etree.fromstring("<r><a n='1'><b>x</b></a><b>y</b></r>")
    >>> [*texts_at(root, "b")], [*texts_at(root, "a/b")], [*texts_at(root, "/r/*")]
    (['x', 'y'], ['x'], ['x', 'y'])
    >>> [*texts_at(root, "a/@n")], [*texts_at(root, "/b")]
    (['1'], [])
    """
    steps = _steps(place)
    last = steps[-1]
    # By element, how many steps the path to it may have gone through.
    gone: dict[etree._Element | None, frozenset[int]] = {None: frozenset((0,))}
    for element in root.iter(etree.Element):
        before = gone[element.getparent()]
        here = gone[element] = _after(before, steps, etree.QName(element).localname)
        if len(steps) in here:
            yield text_of(element)
        if len(steps) - 1 in here:
            for attribute, value in element.attrib.items():
                name = etree.QName(attribute).localname
                if last.name.removeprefix("@") in ("*", name):
                    yield str(value)


def _steps(place: str) -> list[_NameStep]:
    """Return the steps of a place; what does not begin with one slash is at any depth."""
    names = place.removeprefix("/").split("/") if place.startswith("/") else ["", *place.split("/")]
    found: list[_NameStep] = []
    is_deep = False
    for name in names:
        if not name:
            is_deep = True
            continue
        attribute = "@" if name.startswith("@") else ""
        found.append(_NameStep(attribute + name.removeprefix("@").rpartition(":")[2], is_deep))
        is_deep = False
    return found or [_NameStep("*", True)]


def _after(gone: frozenset[int], steps: list[_NameStep], name: str) -> frozenset[int]:
    """Return how many steps may be gone through with one name more."""
    further = {at + 1 for at in gone if at < len(steps) and steps[at].name in ("*", name)}
    return frozenset(further | _waiting(gone, steps))


def _waiting(gone: frozenset[int], steps: list[_NameStep]) -> set[int]:
    """Return where names may be passed over: the next step is at any depth."""
    return {at for at in gone if at < len(steps) and steps[at].is_deep}
