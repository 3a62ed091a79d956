"""Section 3 of the semantics: conditions that XPath 1.0 evaluates."""

from __future__ import annotations

import pytest
from support.reading import block, child, predicate

from xscl.namespaces import KNOWN_PREFIXES
from xscl.path import (
    And,
    Exists,
    Opaque,
    Or,
    Path,
)


@pytest.mark.parametrize(
    "text",
    [
        "count(a) > 2",
        "a = b",
        "a + 1 > b * 2",
        "../a",
        "ancestor::a",
        "/rss/channel",
        "//a",
        "id('x')",
        "string(a) = 'x'",
        "substring(a, 1, 1) = 'x'",
        "contains(a, b)",
        "a | b",
        "a[count(b) = 1]/..",
        "true()",
        "sum(a) < 3 div 4",
        "name() = 'a'",
        "lang('en')",
        "processing-instruction('x')",
        "comment()",
        "not(count(a) > 2) = false()",
    ],
)
def test_anything_else_of_xpath_1_is_opaque(text: str) -> None:
    assert predicate(text) == Opaque(text)


def test_an_opaque_condition_keeps_to_its_own_leaf() -> None:
    found = predicate("count(a) > 2 and b or c = 'd'")
    assert isinstance(found, Or)
    assert isinstance(found.conditions[0], And)
    assert found.conditions[0].conditions[0] == Opaque("count(a) > 2")


def test_an_opaque_condition_carries_its_prefixes() -> None:
    assert predicate("count(dc:a) > 2") == Opaque(
        "count(dc:a) > 2", (("dc", KNOWN_PREFIXES["dc"]),)
    )
    text = "DECLARE DEFAULT ELEMENT NAMESPACE = 'urn:d'; S//a[count(b/@c) > *:d]"
    [found] = block(text).path.steps[0].predicates
    assert found == Opaque("count(default:b/@c) > *[local-name() = 'd']", (("default", "urn:d"),))
    text = "DECLARE NAMESPACE default = 'urn:e'; S//*:a[count(default:b) > count(c)]"
    [found] = block(f"DECLARE DEFAULT ELEMENT NAMESPACE = 'urn:d'; {text}").path.steps[0].predicates
    namespaces = (("default", "urn:e"), ("default_", "urn:d"))
    assert found == Opaque("count(default:b) > count(default_:c)", namespaces)


def test_an_opaque_condition_is_xpath_1() -> None:
    assert predicate("number(a)= number('it''s \"x\"')") == Opaque(
        "number(a) = number(concat('it', \"'\", 's \"x\"'))"
    )
    assert predicate("count(.[a]/..[b]) = 1") == Opaque(
        "count(self::node()[a]/parent::node()[b]) = 1"
    )
    assert predicate("a and count(b)") == And(
        (Exists(Path((child("a"),))), Opaque("boolean(count(b))"))
    )
