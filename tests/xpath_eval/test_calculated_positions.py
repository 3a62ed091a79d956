"""Positions that are calculated: what lxml selects with the whole path, we select."""

from __future__ import annotations

import random
from itertools import product

import pytest
from generators.random_paths import DECLARE, random_xml
from lxml import etree
from oracle.paths import bindings
from oracle.tree import parse_tree
from support.registered import register

import xscl
from xpath_eval.catalog import PatternCatalog
from xscl.query import Block
from xscl.treepattern import tree_pattern

PREDICATES = (
    "[position() mod 2 = 1]",
    "[position() mod 2 = 0]",
    "[last() div 2]",
    "[(last() + 1) div 2]",
    "[count(*)]",
    "[count(*) + 1]",
    "[count(preceding-sibling::*) + 1]",
    "[-1 + 2]",
    "[last() - position() = 1]",
    "[position() = count(../b)]",
    "[position() = string-length(.)]",
    "[number(.)]",
    "[position() = *]",
    "[not(position() mod 2 = 1)]",
    "[not(last() - 1)]",
    "[position() mod 2]",
    "[* and position() mod 2 = 0]",
    "[@k or last() mod 2 = 0]",
    "[count(*[position() mod 2 = 1]) = 1]",
    "[*[position() * 2 = last()]]",
    "[a[last() div 2]/..]",
    "[boolean(position() - 1)]",
    "[contains('1 3', string(position()))]",
    "[. = '[' or position() mod 2 = 1]",
    "[concat('position()', position()) = 'position()2']",
    "[*][position() mod 2 = 1]",
    "[position() mod 2 = 1][*]",
    "[. = 'x'][position() mod 2 = 1]",
    "[position() mod 2 = 1][. = 'x']",
    "[position() > 1][last() div 2]",
    "[position() mod 2 = 1][last() div 2]",
)
PATHS = ("//a{}", "//*{}/b", "/*/*{}", "//a{}//*", "//b/*{}", "//*[b]{}", "//*/self::node(){}")


def theirs(path: str, xml: bytes) -> set[int]:
    """Return the numbers of the elements that lxml selects."""
    root = etree.fromstring(xml)
    number = {element: i for i, element in enumerate(root.iter("*"))}
    return {number[element] for element in root.xpath(path, namespaces={"n": "urn:n"})}


def ours(block: Block, xml: bytes) -> set[int]:
    """Return the numbers of the block roots that the oracle finds."""
    found = bindings(block.path, parse_tree(xml), {})
    return {node.number for one in found for name, node in one if name == block.root}


def block_of(path: str) -> Block:
    """Return the block of a path."""
    (query,) = xscl.parse(f"{DECLARE} S{path}")
    return query.blocks[0]


@pytest.mark.parametrize("predicate", PREDICATES)
def test_a_path_selects_what_it_selects_in_lxml(predicate: str) -> None:
    random_ = random.Random(predicate)
    paths = [path.format(predicate) for path in PATHS]
    blocks = [block_of(path) for path in paths]
    registered, evaluator = register(blocks)
    selected = 0
    for _ in range(25):
        xml = random_xml(random_)
        witnesses = evaluator.evaluate("S", xml)
        for path, block, one in zip(paths, blocks, registered, strict=True):
            expected = theirs(path, xml)
            selected += len(expected)
            assert ours(block, xml) == expected, (path, xml)
            assert {n for b in one.bindings(witnesses) for _, n in b} == expected, (path, xml)
    assert selected


def test_patterns_that_count_differently_are_not_shared_and_equal_ones_are() -> None:
    catalog = PatternCatalog()

    def root(path: str) -> int:
        block = block_of(path)
        pattern = tree_pattern(block, ())
        return catalog.add(pattern)[pattern.node_of(block.root)]

    odd = root("//a[position() mod 2 = 1]->x")
    assert odd == root("//a[ position()  mod 2=1 ]->y")
    assert odd != root("//a[position() mod 2 = 0]")
    first = root("//a[position() mod 2 = 1][b]")
    assert first != root("//a[b][position() mod 2 = 1]")
    assert root("//a[b][c]") == root("//a[c][b]")


@pytest.mark.parametrize(
    ("first", "second"), list(product(("b", "b = 'x'", "count(b) = 1", "@k"), repeat=2))
)
def test_predicates_around_a_position_are_taken_in_their_order(first: str, second: str) -> None:
    random_ = random.Random(first + second)
    path = f"//*[{first}][position() mod 2 = 1][{second}][last() div 2]"
    (one,), evaluator = register([block_of(path)])
    for _ in range(10):
        xml = random_xml(random_)
        bound = one.bindings(evaluator.evaluate("S", xml))
        assert {n for b in bound for _, n in b} == theirs(path, xml)


@pytest.mark.parametrize(
    ("path", "numbers"),
    [
        ("//@*[position() mod 2 = 0]", {3}),
        ("//@*[position() = string-length(.)]", {3, 4}),
        ("//text()[position() mod 2 = 0]", {7}),
        ("//text()[last() div 2]", {5}),
        ("//text()[string-length(.)]", {5, 6}),
    ],
)
def test_attributes_and_texts_are_counted_too(path: str, numbers: set[int]) -> None:
    xml = b'<a k="12" j="qq" l="xyz">x<b>y</b>yz<!-- -->z</a>'
    (one,), evaluator = register([block_of(path)])
    assert {n for b in one.bindings(evaluator.evaluate("S", xml)) for _, n in b} == numbers
    assert ours(block_of(path), xml) == numbers
