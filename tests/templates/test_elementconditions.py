"""What braces of a repetition hold an element against is asked in its block."""

from __future__ import annotations

import pytest

import xscl
from templates.nodeconditions import with_conditions_of_operands
from templates.plain import plain_statements
from xscl.path import condition_parameters
from xscl.rewriting import strip_variables


def asked(source: str) -> list[object]:
    """Return the conditions with parameters of all blocks but the first."""
    [query] = xscl.parse(f"S//a->a FOLLOWED BY {{, 1 h}} {source}", id="q")
    [plain] = map(with_conditions_of_operands, plain_statements(query))
    return [
        strip_variables(each)
        for block in plain.blocks[1:]
        for step in block.path.steps
        for each in step.predicates
        if any(condition_parameters(each))
    ]


@pytest.mark.parametrize(
    ("braces", "block"),
    [
        ("S//b->b+ {b/k = $k AND b/n > prev(b/n)}", "S//b[k = $k]+"),
        ("S//b->b+ {$n < b/n}", "S//b[n > $n]+"),
        ("S//b[k->x]+ {x != $k}", "S//b[k[. != $k]]+"),
        ("S//b->b+ {contains(b/k, $k)}", "S//b[contains(k, $k)]+"),
        ("S//b->b+ {matches(b/k, $k, 'i')}", "S//b[matches(k, $k, 'i')]+"),
        ("S//b->b+ {replace(b/k, 'a', 'b') = $k}", "S//b[replace(k, 'a', 'b') = $k]+"),
        ("S//b->b+ {exists(b/e[f = $k]/g)}", "S//b[e[f = $k]/g]+"),
        ("S//b->b+ {empty(b/e[f = $k])}", "S//b[not(e[f = $k])]+"),
        ("(S//b[n->x] | S//c[n->x])+ {x > $n}", "(S//b[n[. > $n]] | S//c[n[. > $n]])+"),
        ("S//b+ UNLESS {c/k = $k} S//c->c", "S//b+ UNLESS S//c[k = $k]"),
        (
            "S//b->b+ {b/k = $k} FOLLOWED BY {, 1 h} S//c MATCH NEXT",
            "S//b[k = $k]+ FOLLOWED BY {, 1 h} S//c MATCH NEXT",
        ),
        ("S//b->b+ {b/k = $k OR b/n = $n}", "S//b+"),
        ("S//b->b+ {b/n = prev(b/n) * $n}", "S//b+"),
        ("S//b->b+ {concat(b/k, b/m) = $k}", "S//b+"),
        ("S//b->b+ {b/k = 'x'}", "S//b+"),
        ("S//b->b+ {exists(b/e[f = 'x'])}", "S//b+"),
        ("S//b->b+ {a/k = $k}", "S//b+"),
    ],
)
def test_what_an_element_is_held_against_is_asked_in_its_block(braces: str, block: str) -> None:
    assert asked(braces) == asked(block)
