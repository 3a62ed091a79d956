"""Paths as they are written: what lxml selects with the whole text, we select.

Only where XPath 1.0 and the fragment mean the same; the oracle has the rest.
"""

from __future__ import annotations

import random

from generators.random_paths import DECLARE, random_xml
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from support.registered import register

import xscl

NAMES = ("a", "b", "c", "*", "n:a", "n:b", "n:*")
ENDS = ("text()", "@k", "@*", "@n:k", "@n:*", ".")
TEXTS = ("'x'", "'y'", "'xy'", "'1'", "''")
POSITIONS = ("1", "2", "last()", "position() > 1", "position() mod 2 = 1", "last() = 2")
OPAQUE = (
    "following-sibling::*",
    "preceding-sibling::*[1]",
    "ancestor::a",
    "../b",
    "a = b",
    "a | b",
    "/a/b",
    "name() = 'n:a'",
    "@k + 1 = 2",
    "(a | b)[last()] = 'x'",
)


class Paths:
    """Writes random paths."""

    def __init__(self, random_: random.Random) -> None:
        self._random = random_
        self._choose = random_.choice

    def path(self) -> str:
        """Return a path from the document to elements."""
        count = self._random.randint(1, 3)
        return "".join(self._choose(("/", "//")) + self._step(2) for _ in range(count))

    def _step(self, depth: int) -> str:
        predicates = self._choose((0, 0, 1, 1, 2)) if depth else 0
        return self._choose(NAMES) + "".join(
            f"[{self._predicate(depth - 1)}]" for _ in range(predicates)
        )

    def _relative(self, depth: int) -> str:
        steps = [self._step(depth) for _ in range(self._choose((1, 1, 2)))]
        if self._random.random() < 0.3:
            steps[-1] = self._choose(ENDS)
        return self._choose(("", ".//", "./")) + self._choose(("/", "//")).join(steps)

    def _predicate(self, depth: int) -> str:
        path, text = self._relative(depth), self._choose(TEXTS)
        forms = [
            path,
            f"{path} = {text}",
            f"{path} != {text}",
            f"{path} {self._choose(('=', '<', '<=', '>', '>='))} 1",
            f"contains(., {text})",
            f"string-length(.) > {self._choose('012')}",
            f"normalize-space(.) = {text}",
            f"count({path}) = {self._choose('012')}",
            self._choose(POSITIONS),
            self._choose(OPAQUE),
        ]
        if depth:
            first, second = self._predicate(0), self._predicate(depth - 1)
            forms += [f"not({first})", f"({first}) and ({second})", f"({first}) or ({second})"]
        return self._choose(forms)


def theirs(path: str, xml: bytes) -> set[int]:
    """Return the numbers of the elements that lxml selects."""
    root = etree.fromstring(xml, etree.XMLParser(remove_comments=True, remove_pis=True))
    numbers = {element: i for i, element in enumerate(root.iter())}
    return {numbers[each] for each in root.xpath(path, namespaces={"n": "urn:n"})}


@given(st.randoms(use_true_random=False))
def test_a_path_selects_what_lxml_selects_with_its_text(random_: random.Random) -> None:
    writer = Paths(random_)
    paths = [writer.path() for _ in range(5)]
    blocks = [xscl.parse(f"{DECLARE} S{path}")[0].blocks[0] for path in paths]
    registered, evaluator = register(blocks, nested_variables=random_.choice((0, 5)))
    xml = random_xml(random_)
    witnesses = evaluator.evaluate("S", xml)
    for path, block, one in zip(paths, blocks, registered, strict=True):
        roots = {n for bound in one.bindings(witnesses) for v, n in bound if v == block.root}
        assert roots == theirs(path, xml), path
