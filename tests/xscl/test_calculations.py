"""Comparisons that are calculated with data are XPath's."""

from __future__ import annotations

import json
import random

import pytest
from lxml import etree
from support.examples import some

from xscl.calculations import calculation, passes_calculated, read_calculation
from xscl.path import FunctionValue, Literal, Parameter, Path, Value, XPathValue

NUMBERS = ["0", "-0", "1", "2", "2.5", "-3", "x", "", "1000000000000000000000"]
GIVEN = [0.0, -0.0, 1.0, -2.0, 2.5, "3", "x", ""]
OPERANDS = [XPathValue(Path(()), name) for name in ("number(v)", "count(p)")]


def side(chance: random.Random, depth: int = 2) -> tuple[Value, str]:
    """Return arithmetic around data, and its text in XPath 1.0."""
    if not depth or chance.random() < 0.3:
        number = chance.choice([0.0, 1.0, 3.5])
        names: list[tuple[Value, str]] = [
            (Parameter("x"), "number($x)"),
            (Literal(number), f"{number}"),
        ]
        return chance.choice([*names, *((each, each.expression) for each in OPERANDS)])
    if chance.random() < 0.2:
        value, text = side(chance, depth - 1)
        return FunctionValue("-", (value,)), f"-({text})"
    function = chance.choice(["+", "-", "*", "div", "mod"])
    (one, left), (two, right) = side(chance, depth - 1), side(chance, depth - 1)
    return FunctionValue(function, (one, two)), f"({left} {function} {right})"


@pytest.mark.parametrize("seed", some(range(400), 40))
def test_numbers_pass_as_in_xpath(seed: int) -> None:
    chance = random.Random(seed)
    prices = [chance.choice(NUMBERS) for _ in range(chance.randint(0, 3))]
    parts = [*(f"<p>{each}</p>" for each in prices), f"<v>{chance.choice(NUMBERS)}</v>"]
    node = etree.fromstring(f"<i>{''.join(parts)}</i>")
    left, text = side(chance)
    right: Value = XPathValue(Path(()), "p")
    other, operator = "p", chance.choice(["=", "!=", "<", "<=", ">", ">="])
    if chance.random() < 0.5:
        right, other = side(chance)
    of_node, compared = calculation(left, operator, right)
    of_nodes = {"p": [float(node.xpath("number($t)", t=each)) for each in prices]}
    numbers = [
        of_nodes[each.expression] if each.expression == "p" else [node.xpath(each.expression)]
        for each in of_node.arguments
        if isinstance(each, XPathValue)
    ]
    given = chance.choice(GIVEN)
    written = compared.text({"x": given})
    expected = node.xpath(f"{text} {operator} {other}", x=given)
    assert passes_calculated(json.dumps(numbers), written) == expected
    assert read_calculation(written).text({}) == written
    opposite = compared.opposite().text({"x": given})
    assert passes_calculated(json.dumps(numbers), opposite) != expected
