"""Stage 1 is right (against the oracle) and agrees with itself whatever it remembers."""

from __future__ import annotations

import random

import pytest
from generators.random_paths import random_block, random_nested_block, random_xml
from hypothesis import given
from hypothesis import strategies as st
from oracle.paths import bindings
from oracle.tree import parse_tree
from support.registered import Registered, register

import xscl
from xpath_eval.catalog import PatternCatalog
from xpath_eval.evaluator import Evaluator
from xpath_eval.limits import EvaluatorLimits
from xscl.pattern import TuplePattern
from xscl.query import Block
from xscl.treepattern import tree_pattern


def bound_by(block: Block, xml: bytes) -> set[frozenset[tuple[str, int]]]:
    """Return the bindings that the oracle finds."""
    return {
        frozenset((v, node.number) for v, node in assignment if v in block.variables)
        for assignment in bindings(block.path, parse_tree(xml), {})
    }


@pytest.mark.parametrize("seed", range(60))
def test_bindings_are_right(seed: int) -> None:
    random_ = random.Random(seed)
    blocks = [random_block(random_) for _ in range(8)]
    registered, evaluator = register(blocks)
    for _ in range(8):
        xml = random_xml(random_)
        witnesses = evaluator.evaluate("S", xml)
        for block, one in zip(blocks, registered, strict=True):
            assert one.bindings(witnesses) == bound_by(block, xml), (block, xml)


@given(st.randoms(use_true_random=False))
def test_bindings_are_right_whatever_the_patterns_and_the_document(random_: random.Random) -> None:
    blocks = [random_block(random_), random_nested_block(random_)]
    registered, evaluator = register(blocks, nested_variables=random_.choice((0, 5)))
    xml = random_xml(random_)
    witnesses = evaluator.evaluate("S", xml)
    for block, one in zip(blocks, registered, strict=True):
        assert one.bindings(witnesses) == bound_by(block, xml)


@pytest.mark.parametrize(
    ("condition", "holds"),
    [("= '2'", True), ("= '02'", False), ("!= '02'", True), ("= 02", True), ("< '03'", True)],
)
def test_a_count_is_compared_with_a_string_as_it_is_written(condition: str, holds: bool) -> None:
    for path in (
        f"S//a[string-length(.) {condition}]->x",
        f"S//a[string-length(.) {condition}][1]",
    ):
        (query,) = xscl.parse(path)
        (one,), evaluator = register(query.blocks)
        assert bool(one.bindings(evaluator.evaluate("S", b"<a>ab</a>"))) is holds


@pytest.mark.parametrize("path", ["//@*[count(..) = 1]", "//@*[position() mod 2 = 1]"])
def test_a_quote_in_an_attribute_s_namespace_disturbs_no_condition(path: str) -> None:
    (query,) = xscl.parse(f"S{path}->x")
    (one,), evaluator = register(query.blocks)
    xml = b"""<a xmlns:n="it's" n:k="1" k="2"/>"""
    assert one.bindings(evaluator.evaluate("S", xml)) == bound_by(query.blocks[0], xml)


@pytest.mark.parametrize("nested_min", [0, 1_000])
@pytest.mark.parametrize("seed", range(20))
def test_elements_that_pass_nested_paths_are_right(seed: int, nested_min: int) -> None:
    random_ = random.Random(seed)
    catalog = PatternCatalog()
    blocks = [random_nested_block(random_) for _ in range(20)]
    variables = []
    for block in blocks:
        pattern = tree_pattern(block, ())
        variables.append(catalog.add(pattern)[pattern.node_of(block.root)])
        catalog.want([(variables[-1], variables[-1])], [])
    evaluator = Evaluator(catalog.plan(), EvaluatorLimits(nested_variables=nested_min))
    for _ in range(8):
        xml = random_xml(random_)
        witnesses = evaluator.evaluate("S", xml)
        for block, variable in zip(blocks, variables, strict=True):
            expected = {
                node.number
                for found in bindings(block.path, parse_tree(xml), {})
                for name, node in found
                if name == block.root
            }
            edges = witnesses.shape.edges
            assert {witnesses.nodes[n] for v, _, n, _ in edges if v == variable} == expected


@pytest.mark.parametrize("caches", [(0, 1), (1, 1), (2, 1)])
def test_caches_that_are_off_or_tiny_change_nothing(caches: tuple[int, int]) -> None:
    random_ = random.Random(7)
    blocks = [random_block(random_) for _ in range(10)]
    documents = [random_xml(random_) for _ in range(12)]
    _, large = register(blocks)
    _, small = register(blocks, raw_shapes=caches[0], outcomes=caches[1])
    for xml in documents * 2:
        assert small.evaluate("S", xml) == large.evaluate("S", xml)


def test_a_document_of_a_known_shape_is_not_evaluated_again() -> None:
    (query,) = xscl.parse("S//item->x[title->t]")
    _, evaluator = register(query.blocks)
    first = evaluator.evaluate("S", b"<item><title>one</title></item>")
    second = evaluator.evaluate("S", b"<item><title>two</title></item>")
    counters = evaluator.take_counters()
    assert (counters.raw_shape_misses, counters.raw_shape_hits) == (1, 1)
    assert first.shape == second.shape
    assert (first.values[-1], second.values[-1]) == ("one", "two")


def test_other_patterns_do_not_show() -> None:
    random_ = random.Random(11)
    blocks = [random_block(random_) for _ in range(10)]
    for _ in range(10):
        xml = random_xml(random_)
        alone, evaluator = register(blocks[:1])
        expected = alone[0].bindings(evaluator.evaluate("S", xml))
        for order in (blocks, blocks[::-1]):
            together, evaluator = register(order)
            one = together[order.index(blocks[0])]
            assert one.bindings(evaluator.evaluate("S", xml)) == expected


def test_removing_every_pattern_leaves_the_catalog_as_new() -> None:
    random_ = random.Random(3)
    catalog = PatternCatalog()
    registered = [Registered(catalog, random_block(random_)) for _ in range(50)]
    assert catalog.plan() != PatternCatalog().plan()
    random_.shuffle(registered)
    for one in registered:
        one.remove()
    assert catalog.plan() == PatternCatalog().plan()
    assert catalog.names == {}


def test_tuples_of_operators_have_variables_and_nothing_to_be_found_in_documents() -> None:
    catalog = PatternCatalog()
    first = TuplePattern("#1", ("a/t", "$0"))
    variables = catalog.add(first)
    assert catalog.add(TuplePattern("#1", ("a/t", "$0"))) == variables
    other = catalog.add(TuplePattern("#2", ("b",)))
    assert len({*variables, *other}) == len(variables) + len(other) == 5
    assert catalog.tuple_names() == dict(
        zip((*variables, *other), ("tuple", "a/t", "$0", "tuple", "b"), strict=True)
    )
    assert catalog.plan() == PatternCatalog().plan()
    catalog.remove(first)
    assert variables[0] in catalog.tuple_names()
    catalog.remove(first)
    catalog.remove(TuplePattern("#2", ("b",)))
    assert catalog.tuple_names() == {}
    assert catalog.add(first) == variables


def test_equal_definitions_are_one_variable_whatever_they_are_called() -> None:
    first, second = xscl.parse("S//item->x[title->t]; S//item->y[title->z][author->w]")
    catalog = PatternCatalog()
    one, two = Registered(catalog, first.blocks[0]), Registered(catalog, second.blocks[0])
    assert one.ids == two.ids[:2]


def test_a_pattern_on_any_stream_does_not_read_published_documents() -> None:
    (query,) = xscl.parse("*//item->x")
    _, evaluator = register(query.blocks)
    assert evaluator.evaluate("T", b"<item/>").nodes == (0,)
    assert evaluator.evaluate("T", b"<item/>", is_published=True).nodes == ()


def test_an_evaluator_without_patterns_reads_documents() -> None:
    assert Evaluator(PatternCatalog().plan()).evaluate("S", b"<a/>").nodes == ()


@pytest.mark.parametrize("states_max", [1, 3])
def test_an_automaton_of_few_states_changes_nothing(states_max: int) -> None:
    random_ = random.Random(13)
    blocks = [random_block(random_) for _ in range(15)]
    _, large = register(blocks)
    _, small = register(blocks, states=states_max)
    for _ in range(20):
        xml = random_xml(random_)
        assert small.evaluate("S", xml) == large.evaluate("S", xml)
        assert small.state_count <= states_max
