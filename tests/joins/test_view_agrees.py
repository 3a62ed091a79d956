"""What the view finds class by class is what its database finds."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from support.examples import is_searching

from joins.classes import ClassRegistry
from joins.memory.durations import UNBOUNDED
from joins.memory.shapes import Shapes
from joins.memory.slots import Layout
from joins.signature.compared import SLOT_BITS, Grouped
from joins.signature.equalnodes import Signature
from joins.signature.limits import SignatureLimits
from joins.signature.view import SignatureView
from templates.queryclass import QueryClass
from templates.template import Template, TemplateRow
from xpath_eval.shape import Edge

VARIABLES = range(5)
NODES = range(6)


def shape(chance: random.Random) -> list[Edge]:
    """Return edges of a few nodes, most of which have a variable of their own."""
    several = chance.random() < 0.4
    nodes = NODES[: chance.randint(1, len(NODES))]
    own = {v: [chance.choice(nodes) for _ in range(1 + several)] for v in VARIABLES}
    edges = {
        (above, below, chance.choice(own[above]), chance.choice(own[below]))
        for above in VARIABLES
        for below in VARIABLES
        if chance.random() < 0.5
    }
    return sorted(edges) or [(0, 0, 0, 0)]


def template(chance: random.Random) -> Template:
    """Return a template of one or two sides."""
    sizes = [chance.randint(1, 3) for _ in range(chance.choice((1, 2, 2, 2)))]
    parents = [i - 1 if i and chance.randrange(4) else -1 for size in sizes for i in range(size)]
    left = sizes[0]
    # Nodes of the right side are numbered behind those of the left one.
    parents[left:] = [p if p < 0 else p + left for p in parents[left:]]
    joins = [
        (chance.randrange(left), left + chance.randrange(sizes[1]))
        for _ in range(chance.randint(0, 3) if len(sizes) == 2 else 0)
    ]
    return Template(tuple(parents), left, tuple(sorted({*joins})))


def query_class(chance: random.Random, templates: Sequence[Template]) -> QueryClass:
    """Return a class of one of some templates, whose meta-variables may share variables."""
    of = chance.choice(templates)
    row = TemplateRow(tuple(chance.choice(VARIABLES) for _ in of.parents))
    return QueryClass(of, row, is_symmetric=False, stratum=0)


def signature(chance: random.Random, shapes: Shapes) -> Signature:
    """Return a signature of two shapes, or of one alone."""
    sides = [
        Layout(number, *shapes[number].slots({*VARIABLES}))
        for number in chance.choices([*shapes], k=2)
    ]
    left, right = sides
    if chance.random() < 0.2:
        return left, None, ()
    pairs = [(i, j) for i in range(len(left.nodes)) for j in range(len(right.nodes))]
    pairs = sorted(pair for pair in pairs if chance.random() < chance.choice((0.2, 0.7)))
    if chance.random() < 0.3:
        groups = {(i, tuple(j for k, j in pairs if k == i)) for i, _ in pairs}
        return left, right, Grouped(tuple(sorted(((i,), others) for i, others in groups)))
    return left, right, tuple(i << SLOT_BITS | j for i, j in pairs)


def found(view: SignatureView, signatures: Sequence[Signature]) -> list[object]:
    """Return the tuples and the skewed classes of each signature."""
    return [
        (sorted(zip(entry.classes.tolist(), entry.nodes, strict=True)), entry.skewed.tolist())
        for entry in view.look_up(signatures)
    ]


@pytest.mark.parametrize("tuples_max", [UNBOUNDED, 3])
@pytest.mark.parametrize("seed", range(30) if is_searching() else (0, 4, 6))
def test_tuples_class_by_class_are_those_of_the_database(seed: int, tuples_max: int) -> None:
    chance = random.Random(seed)
    shapes = Shapes()
    shapes.add({str(i): shape(chance) for i in range(6)})
    shapes.of_tuples(["tuple"], [tuple(chance.sample(VARIABLES, 3))])
    registry = ClassRegistry(shapes)
    templates = [template(chance) for _ in range(5)]
    asking, assigning = (
        SignatureView(shapes, registry, tuples_max, SignatureLimits(assigned=assigned))
        for assigned in (0, 1_000)
    )
    signatures: list[Signature] = []
    for _ in range(2):
        for _ in range(60):
            registry.add(query_class(chance, templates), 1)
        signatures += dict.fromkeys(signature(chance, shapes) for _ in range(40))
        expected = found(asking, signatures)
        assert found(assigning, signatures) == expected
        assert any(tuples for tuples, _ in expected)
    if tuples_max == UNBOUNDED:
        assert "db" not in vars(assigning)
