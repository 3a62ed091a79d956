"""Documents of known tags, read by patterns: what a parser finds in them, and what it refuses."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from support.examples import examples

import xpath_eval.evaluator
import xscl
from broker.matching.engine import Engine, RegisteredQuery
from xpath_eval.catalog import EvaluationPlan
from xpath_eval.evaluator import Evaluator, Witnesses
from xpath_eval.parsing import XmlError, parse_elements
from xpath_eval.tagpatterns import _pattern

QUERIES = {
    "values": "S//item->a FOLLOWED BY {a/t = b/t AND a/e = b/u, 1 h} S//item->b",
    "attributes": "S//item[@k = 'v']->a FOLLOWED BY {a/t = b/@k, 1 h} S//item->b",
    "nested": "S//item->a FOLLOWED BY {a/t = b, 1 h} S//*->b",
    "asked": "S//item[contains(t, 'x')]->a FOLLOWED BY {a/u = b/u, 1 h} S//item->b",
    "texts": "S//item->a FOLLOWED BY {a/t/text() = b/t/text(), 1 h} S//item->b",
    "derived": "S//item->a FOLLOWED BY {lower-case(a/t) = upper-case(b/u), 1 h} S//item->b",
    "opaque": "S//item[u != t]->a FOLLOWED BY {lower-case(a/t) = lower-case(b/u), 1 h} S//item->b",
    "whole": "S//item[contains(., 'x')]->a FOLLOWED BY {a/t = b/t, 1 h} S//*[u]->b",
    "several": "S//item[u > 3 or matches(t, 'x')]->a JOIN {a/t = b/t, 1 h} S//*[. = 'y']->b",
    "owned": "S//item[t = 'x']->a FOLLOWED BY {a/@k = b/@k, 1 h} S//item[u != 'x']->b",
    "revised": "S//item->a FOLLOWED BY {revision(a) = revision(b), 1 h} S//item->b",
}

PATTERNS = {
    "values": 8,
    "attributes": 4,
    "nested": 1,
    "asked": 8,
    "texts": 0,
    "derived": 8,
    "opaque": 1,
    "whole": 2,
    "several": 2,
    "owned": 4,
    "revised": 8,
}
"""How many of the documents become patterns for each: their tags and texts say what they have."""

DOCUMENTS = (
    b"<item><t>x</t><e/><u>y</u></item>",
    b'<item k="v"><v/><t>x</t><e></e><u q="1">y</u></item>',
    b"<item k='v'><w/><t>x</t><e/>tail<u>y</u></item>",
    b'<r xmlns:p="urn:p"><item p:k="v" k="w"><p:t>n</p:t><t>x</t><u>y</u></item></r>',
    b'<r xmlns="urn:d"><item><t>x</t></item></r>',
    b'<item  k = "a&amp;b" l="x=" m="y"><t >x</t ><u>&lt;b&gt; &amp;amp; &quot;&apos;</u></item>',
    b"<item><u>y</u><t>x</t><t>z</t></item>",
    b"<item/>",
)
"""Each is read often enough to become a pattern."""

PIECES = (
    *(b"x", b"y ", b"&amp;", b"&lt;", b"&#65;", b"&nbsp;", b"&", b"<", b">", b"]]>", b"]]", b'"'),
    *(b"'", b"\t", b"\n", b"\r", b"\r\n", b"\0", b"\x0b", b"\x7f", b"\xff", b"\xc3\xa9", b"/"),
    *(b"\xef\xbf\xbe", b"\xef\xbf\xbf", b"\xef\xbc\x81", b"\xed\xa0\x80", b"\xc0\xbc"),
    *(b"<!-- c -->", b"<![CDATA[d]]>", b"<?p i?>", b"<b>b</b>", b"<b/>", b"</t><t>"),
    *(b'" n="', b' n="1"', b"=", b"\xe2\x80\xa8", b"\xef\xbb\xbf", b"<!DOCTYPE item>"),
)
"""What is put into documents, or in the place of a part of one."""


def plan_of(name: str) -> EvaluationPlan:
    query = xscl.parse(QUERIES[name], id="q")[0]
    return Engine([RegisteredQuery(query)], lateness_us=0).plan


def found(evaluator: Evaluator, xml: bytes, revision: int = 0) -> Witnesses | str:
    try:
        return evaluator.evaluate("S", xml, revision=revision)
    except XmlError as error:
        return str(error)


def taught(plan: EvaluationPlan) -> Evaluator:
    evaluator = Evaluator(plan)
    for _ in range(20):
        for xml in DOCUMENTS:
            evaluator.evaluate("S", xml)
    return evaluator


def mutated(chance: random.Random, xml: bytes) -> bytes:
    for _ in range(chance.randint(0, 2)):
        at = chance.randint(0, len(xml))
        until = min(len(xml), at + chance.choice([0, 0, 1, 3]))
        xml = xml[:at] + chance.choice(PIECES) + xml[until:]
    return xml


@pytest.mark.parametrize("name", QUERIES)
def test_patterns_find_what_a_parser_finds(name: str) -> None:
    plan, chance = plan_of(name), random.Random(name)
    evaluator, parsing = taught(plan), Evaluator(plan)
    assert evaluator.pattern_count == PATTERNS[name]
    for _ in range(examples(600)):
        xml = mutated(chance, chance.choice(DOCUMENTS))
        parsing.forget_shapes()
        revision = chance.randint(0, 2)
        assert found(evaluator, xml, revision) == found(parsing, xml, revision), xml


def test_what_has_known_tags_is_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    evaluator = taught(plan_of("values"))

    def parse(xml: bytes) -> list[object]:
        parsed.append(xml)
        return [*parse_elements(xml)]

    monkeypatch.setattr(xpath_eval.evaluator, "parse_elements", parse)
    known = evaluator.evaluate("S", b"<item><t>a &amp; b</t><e/><u>\xc3\xa9</u></item>")
    assert parsed == []
    assert sorted(known.values, key=str) == ["", None, "a & b", "é"]
    evaluator.evaluate("S", b"<item><t>a</t><e/><u>b\r</u></item>")
    evaluator.evaluate("T", b"<item><t>a</t><e/><u>b</u></item>")
    assert len(parsed) == 2


def test_another_plan_forgets_patterns() -> None:
    evaluator = taught(plan_of("values"))
    for name in ("nested", "values", "texts"):
        evaluator.update(plan_of(name))
        parsing = Evaluator(plan_of(name))
        for xml in DOCUMENTS:
            assert found(evaluator, xml) == found(parsing, xml)


def test_tags_that_are_always_others_take_no_room() -> None:
    """Prefixes are a matter of taste; the structure is the same."""
    plan = plan_of("values")
    evaluator = Evaluator(plan)
    for number in range(400):
        xml = f'<p{number}:item xmlns:p{number}="u"><t>x</t></p{number}:item>'.encode()
        assert found(evaluator, xml) == found(Evaluator(plan), xml)
    assert evaluator.raw_shape_count == 1
    assert evaluator.pattern_count <= 3


def test_what_has_many_tags_or_values_or_some_out_of_order_has_no_pattern() -> None:
    def has_pattern(count: int, leaves: Sequence[int]) -> bool:
        return _pattern(f"<item>{'<t>x</t>' * count}</item>", leaves) is not None

    assert [has_pattern(count, [1]) for count in (98, 99, 100)] == [True, True, False]
    assert [has_pattern(1, [-1] * count) for count in (200, 201)] == [True, False]
    assert [has_pattern(2, leaves) for leaves in ([1, -1, 2], [2, -1, 1])] == [True, False]
