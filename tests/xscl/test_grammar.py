"""The grammar in the documentation and the parser accept the same texts."""

from __future__ import annotations

import random
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from generators.grammar import Grammar
from hypothesis import given
from hypothesis import strategies as st

from xscl.canonical import render_expression, render_step
from xscl.layout import render
from xscl.operands import RESERVED
from xscl.parser import parse_file
from xscl.report import Report
from xscl.selects import item_text
from xscl.statement import BracesSyntax, SelectSyntax
from xscl.syntax import Filter, PathExpression, StepSyntax

EBNF = Path(__file__).parents[2] / "docs" / "xscl.ebnf"

SAMPLES = {
    "plain_name": ["S", "news", "select", "from", "and", "a-b", "été", "_x", "item.1"],
    "variable": ["x1", "x5'", "y''", "or", "e-f"],
    "name": ["author", "dc:creator", "div", "mod", "and", "text", "from", "j-k.l"],
    "any_name": ["*:name"],
    "any_prefix": ["atom:*"],
    "parameter": ["$who", "$n-1", "$T_1'"],
    "string": ["'Ann'", '"it\'s"', "'it''s'", "''", "'(: no comment :)'", "'-- none'"],
    "number": ["3", "2.5", ".5", "4.", "1e3", "1.5E-2"],
    "unit_of_time": ["ms", "s", "min", "hours", "d", "weeks", "H"],
    "iso_duration": ["P30D", "PT6H", "P1DT1H30M", "PT1.5S", "P2W"],
    "symbolic": ["T", "T1", "T_2", "T1'"],
    "xml_name": ["p:b-c"],  # one name: end tags fit any start tag
    "function_name": ["count", "contains", "lower-case", "f"],
    "attribute_name": [f"{prefix}k{n}" for n in range(5_000) for prefix in ("", "p:")],
    "space": ["", " ", "\n  "],
    "text": ["hello", " ", "{{}}", "&lt;&#65;&#x42;", "'\"", "it's > 3"],
    "single_text": ["v", "{{", '"', "''", "&amp;"],
    "double_text": ["v", "}}", "'", '""', "&apos;"],
    "xpath": ["x1/title", "count($x1//a[b = 'c']) + 1", "'x'", "dur()"],
}

DEPTH = 18
"""Of the tree of rules: deep enough for every production, shallow enough to stay small."""

GRAMMAR = Grammar(EBNF.read_text(encoding="utf-8"), SAMPLES)


def errors_of(text: str) -> list[str]:
    report = Report(text)
    parse_file(text, report)
    return [str(each) for each in report.diagnostics if each.is_error]


def test_every_rule_is_used_and_every_used_rule_is_there() -> None:
    assert GRAMMAR.references() | {"file", "reserved"} == set(GRAMMAR.rules)


@pytest.mark.parametrize("name", sorted(GRAMMAR.regular() - {"reserved"}))
def test_the_samples_fit_the_regular_rules(name: str) -> None:
    pattern = re.compile(GRAMMAR.rules[name].text, re.IGNORECASE if name == "unit_of_time" else 0)
    assert all(pattern.fullmatch(sample) for sample in SAMPLES[name])


def test_the_reserved_words_are_those_of_the_parser() -> None:
    assert set(GRAMMAR.rules["reserved"].text.split("|")) == RESERVED


@pytest.mark.parametrize("rule", sorted(set(GRAMMAR.rules) - GRAMMAR.regular()))
def test_every_production_makes_texts(rule: str) -> None:
    chance = random.Random(rule)
    first = GRAMMAR.make(rule, chance, DEPTH)
    assert any(GRAMMAR.make(rule, chance, DEPTH) != first for _ in range(20))


@given(st.integers(0, 2**32))
def test_the_parser_accepts_what_the_grammar_makes(seed: int) -> None:
    text = GRAMMAR.make("file", random.Random(seed), DEPTH)
    assert errors_of(text) == []


def without_places(syntax: Any) -> Any:
    """Return syntax as plain values without spans, and what is XPath as its canonical text."""
    if isinstance(syntax, list):
        return [without_places(each) for each in syntax]
    if isinstance(syntax, StepSyntax):
        return render_step(syntax)
    if isinstance(syntax, (PathExpression, Filter)):
        return render_expression(syntax)
    if isinstance(syntax, SelectSyntax):
        items = [item_text(each) for each in syntax.items]
        found = (syntax.kind, items, without_places(syntax.constructor))
        return None if found == ("", [], None) else found  # `SELECT *` may be left out
    if not is_dataclass(syntax):
        return syntax
    if isinstance(syntax, BracesSyntax) and syntax.predicate is None and syntax.window is None:
        return None  # they say nothing, and are left out
    kept = [each.name for each in fields(syntax) if not each.name.endswith("span")]
    values = {name: without_places(getattr(syntax, name)) for name in kept if name != "end"}
    return (type(syntax).__name__, values)


@given(st.integers(0, 2**32))
def test_what_is_rendered_is_read_as_the_same_syntax(seed: int) -> None:
    text = GRAMMAR.make("statement", random.Random(seed), DEPTH)
    first, _ = parse_file(text, Report(text))
    rendered = render(text)
    second, _ = parse_file(rendered, Report(rendered))
    assert without_places(second) == without_places(first)


@given(st.integers(0, 2**32))
def test_generated_texts_format_to_a_fixed_point(seed: int) -> None:
    text = GRAMMAR.make("statement", random.Random(seed), DEPTH)
    once = render(text)
    assert render(once) == once
