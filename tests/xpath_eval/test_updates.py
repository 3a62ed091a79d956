"""Registering and removing patterns one by one leaves what registering them at once makes."""

from __future__ import annotations

import pickle
import random

import pytest
from generators.random_paths import random_block, random_nested_block, random_xml
from support.registered import Registered

import xscl
from xpath_eval.catalog import EvaluationPlan, PatternCatalog
from xpath_eval.evaluator import Evaluator


@pytest.mark.parametrize("seed", range(8))
def test_an_updated_evaluator_is_like_a_new_one(seed: int) -> None:
    random_ = random.Random(seed)
    catalog = PatternCatalog()
    evaluator = Evaluator(catalog.plan())
    registered: list[Registered] = []
    for _ in range(25):
        if registered and random_.random() < 0.4:
            registered.pop(random_.randrange(len(registered))).remove()
        else:
            make = random_.choice((random_block, random_nested_block))
            registered.append(Registered(catalog, make(random_)))
        evaluator.update(catalog.plan())
        new = Evaluator(catalog.plan())
        for _ in range(3):
            xml = random_xml(random_)
            assert evaluator.evaluate("S", xml) == new.evaluate("S", xml)
            assert evaluator.evaluate("S", xml) == new.evaluate("S", xml)


def test_an_evaluator_turns_to_the_plan_of_another_catalog() -> None:
    random_ = random.Random(5)
    plans = []
    for _ in range(4):
        catalog = PatternCatalog()
        for _ in range(6):
            Registered(catalog, random_block(random_))
        plans.append(catalog.plan())
    evaluator = Evaluator(plans[0])
    documents = [random_xml(random_) for _ in range(10)]
    for plan in plans + plans[::-1]:
        evaluator.update(plan)
        new = Evaluator(plan)
        for xml in documents:
            assert evaluator.evaluate("S", xml) == new.evaluate("S", xml)


def test_without_patterns_an_evaluator_is_as_new() -> None:
    random_ = random.Random(9)
    catalog = PatternCatalog()
    registered = [Registered(catalog, random_block(random_)) for _ in range(30)]
    evaluator = Evaluator(catalog.plan())
    for _ in range(10):
        evaluator.evaluate("S", random_xml(random_))
    for one in registered:
        one.remove()
    evaluator.update(catalog.plan())
    assert (evaluator.state_count, evaluator.raw_shape_count, evaluator.step_count) == (0, 0, 0)


def test_elements_that_no_pattern_names_leave_no_state_behind() -> None:
    catalog = PatternCatalog()
    (query,) = xscl.parse("S/a/b->x")
    registered = Registered(catalog, query.blocks[0])
    evaluator = Evaluator(catalog.plan())
    evaluator.evaluate("S", b"<a><c/></a>")
    registered.remove()
    evaluator.update(catalog.plan())
    assert evaluator.state_count == 0


def test_known_states_outlive_a_pattern_that_is_added_elsewhere() -> None:
    catalog = PatternCatalog()
    (first,) = xscl.parse("S//item->x[title->t]")
    (second,) = xscl.parse("T/other->x")
    Registered(catalog, first.blocks[0])
    evaluator = Evaluator(catalog.plan())
    evaluator.evaluate("S", b"<item><title/></item>")
    states = evaluator.state_count
    Registered(catalog, second.blocks[0])
    evaluator.update(catalog.plan())
    assert evaluator.state_count == states > 0


def test_equal_patterns_make_equal_plans_whatever_their_variables_are_called() -> None:
    plans = []
    for text in ("S//item[author = 'Ann']->x", "S//item[author = 'Bob']->y"):
        catalog = PatternCatalog()
        (query,) = xscl.parse(text)
        Registered(catalog, query.blocks[0])
        plans.append(catalog.plan())
    assert plans[0] == plans[1]
    assert plans[0].version == plans[1].version


def test_a_plan_has_one_version_however_it_came_about() -> None:
    random_ = random.Random(2)
    catalog = PatternCatalog()
    kept = [Registered(catalog, random_block(random_)) for _ in range(5)]
    before = catalog.plan()
    gone = Registered(catalog, random_block(random_))
    assert catalog.plan().version != before.version or catalog.plan() == before
    gone.remove()
    after = catalog.plan()
    assert after.version == before.version
    assert pickle.loads(pickle.dumps(after)).version == before.version
    by_hand = EvaluationPlan(after.definitions, after.edges, after.valued)
    assert by_hand.version == before.version
    assert kept


def test_a_hundred_thousand_constants_are_one_pattern() -> None:
    catalog = PatternCatalog()
    (query,) = xscl.parse("S//item[author = 'Ann']->x[link->l]")
    block = query.blocks[0]
    first = Registered(catalog, block)
    size = len(pickle.dumps(catalog.plan()))
    for _ in range(1_000):
        catalog.add(first.pattern)
        catalog.want(first.edges, first.ids)
    assert len(pickle.dumps(catalog.plan())) == size
