"""The theory of docs/signatures.md: the theorem, and a counter-example for each part of the key."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest
from support.examples import examples

import xscl
from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.queries.registration import SetChange
from joins.engines import EngineName
from joins.memory.remembered import EMPTY
from joins.memory.slots import Layout
from joins.signature.compared import SLOT_BITS, SharedSlots
from joins.signature.engine import SignatureProcessor
from joins.signature.pair import pair_signatures

Equal = frozenset[tuple[int, int]]
Signature = tuple[Layout, Layout, Equal]
Held = frozenset[tuple[int, tuple[int, ...]]]
"""Which classes hold on a pair, and with which nodes."""

QUERIES = [
    "S//i->a JOIN {a/c = b/c, 1 h} S//i->b",
    "S//i->a JOIN {a/c = b/d, 1 h} S//i->b",
    "S//i[c->x][c->y] JOIN {x = z AND y = w, 1 h} S//i[c->z][d->w]",
    "S//g->a JOIN {a/c = b/c AND a/d = b/d, 1 h} S//g->b",
    "S//i[not(d = '1')]->a JOIN {a//c = b//d, 1 h} S//i->b",
]


class Joined:
    """A stream of bodies that has been joined, two at least, a second apart."""

    def __init__(self, texts: Sequence[str], engine: EngineName = "signatures") -> None:
        queries = [RegisteredQuery(xscl.parse(t, id=f"q{i}")[0]) for i, t in enumerate(texts)]
        self.engine = Engine(queries, lateness_us=0, engine=engine)
        self.tuples: dict[tuple[int, int], set[tuple[int, tuple[int, ...]]]] = defaultdict(set)
        self._documents = 0

    def feed(self, *bodies: str) -> Joined:
        stream = []
        for body in bodies:
            self._documents += 1
            time_us = self._documents * 1_000_000
            before_us = time_us - 1_000_000 if self._documents > 1 else FIRST_WATERMARK_US
            times = (time_us, time_us, time_us, before_us)
            xml = f"<i>{body}</i>".encode()
            stream.append(Document(self._documents, "S", str(self._documents), *times, xml))
        self.engine.processor.begin_batch()
        self.engine._absorption.witnesses(self.engine.evaluate(stream))
        for found in self.engine.processor.probe(0):
            assert found.right is not None
            self.tuples[found.left, found.right].add((found.query_class, found.nodes))
        return self

    def add(self, text: str) -> None:
        query = RegisteredQuery(xscl.parse(text, id="added")[0], registration_point=self._documents)
        assert self.engine.follow(SetChange([query]))

    @property
    def count(self) -> int:
        """How many documents fit some block: these are remembered, and numbered."""
        return self.engine.processor.next_instance - 1

    def held(self, left: int, right: int) -> Held:
        return frozenset(self.tuples.get((left, right), ()))

    def signature(self, left: int, right: int) -> Signature:
        processor = self.engine.processor
        assert isinstance(processor, SignatureProcessor)
        remembered, pair = processor._remembered, (np.array([left]), np.array([right]))
        shared = SharedSlots(0, remembered.hashes[0] != EMPTY)
        found, _ = pair_signatures(remembered, processor._layouts, *pair, shared)
        [(a, b, codes)] = found
        layouts = processor._layouts.layouts
        return layouts[a], layouts[b], frozenset(divmod(code, 1 << SLOT_BITS) for code in codes)


@pytest.mark.parametrize("seed", range(examples(2)))
def test_pairs_with_one_signature_have_the_same_tuples_in_every_class(seed: int) -> None:
    random_ = random.Random(seed)
    bodies = [
        "".join(
            random_.choice(["<c>{}</c>", "<d>{}</d>", "<g><c>{}</c><d>1</d></g>"]).format(
                random_.choice(["", "1", "2"])
            )
            for _ in range(random_.randint(0, 3))
        )
        for _ in range(25)
    ]
    signed = Joined(QUERIES).feed(*bodies)
    # What holds is asked of the paper's engine: signatures have no part in it.
    asked = Joined(QUERIES, "mmqjp").feed(*bodies)
    held = defaultdict(set)
    assert signed.count == asked.count > 2
    pairs = list(permutations(range(1, signed.count + 1), 2))
    for left, right in pairs:
        held[signed.signature(left, right)].add(asked.held(left, right))
    assert len(held) < len(pairs), "no signature occurs twice"
    assert sum(map(len, asked.tuples.values())) > 0
    assert all(len(different) == 1 for different in held.values())


def test_what_nodes_are_called_is_in_the_shapes() -> None:
    joined = Joined(
        ["S//i->a JOIN {a/c = b/c, 1 h} S//i->b", "S//i->a JOIN {a/d = b/e, 1 h} S//i->b"]
    )
    joined.feed("<c>1</c>", "<c>1</c>", "<d>1</d>", "<d>1</d>")
    first, second = joined.signature(1, 2), joined.signature(3, 4)
    assert first[2] == second[2] == {(0, 0)}
    assert joined.held(1, 2)
    assert not joined.held(3, 4)
    assert first != second


def test_what_conditions_said_is_in_the_shapes() -> None:
    text = "S//i[not(lang = 'en')]->a JOIN {a/c = b/c, 1 h} S//i->b"
    joined = Joined([text]).feed("<lang>de</lang><c>1</c>", "<lang>en</lang><c>1</c>", "<c>1</c>")
    assert joined.held(1, 3)
    assert not joined.held(2, 3)
    assert joined.signature(1, 3)[0] != joined.signature(2, 3)[0]


def test_which_nodes_had_slots_when_a_document_came_is_in_the_layouts() -> None:
    joined = Joined(
        ["S//i->a JOIN {a/c = b/c, 1 h} S//i->b", "S//i->a JOIN {a/b = 'x', 1 h} S//i->b"]
    )
    joined.feed("<b>1</b><c>2</c>", "<b>1</b><c>2</c>")
    joined.add("S//i->a JOIN {a/b = b/b, 1 h} S//i->b")
    joined.feed("<b>3</b><c>2</c>", "<b>3</b><c>4</c>")
    before, after = joined.signature(1, 2), joined.signature(3, 4)
    assert before[2] == {(0, 0)} == after[2], "the first slot: c before, b after"
    assert before[0].nodes != after[0].nodes
    assert joined.held(1, 2) != joined.held(3, 4)


def test_which_document_is_left_is_in_the_signature() -> None:
    joined = Joined(["S//i->a JOIN {a/c = b/d, 1 h} S//i->b"])
    joined.feed("<c>1</c><d>2</d>", "<c>3</c><d>1</d>")
    assert joined.signature(1, 2)[2] == {(0, 1)}
    assert joined.signature(2, 1)[2] == {(1, 0)}
    assert joined.held(1, 2)
    assert not joined.held(2, 1)


def test_nodes_are_in_the_signature_not_variables_alone() -> None:
    group = "<g><c>{}</c><d>{}</d></g>"
    joined = Joined(["S//g->a JOIN {a/c = b/c AND a/d = b/d, 1 h} S//g->b"])
    two = group.format(1, 2) + group.format(3, 4)
    joined.feed(two, group.format(1, 2), group.format(1, 4))

    def variables(left: int, right: int) -> set[tuple[int, int]]:
        mine, others, equal = joined.signature(left, right)
        return {
            (v, w)
            for i, j in equal
            for a, v in mine.bindings
            for b, w in others.bindings
            if (a, b) == (i, j)
        }

    assert variables(1, 2) == variables(1, 3) != set()
    assert joined.held(1, 2)
    assert not joined.held(1, 3)
    assert joined.signature(1, 2) != joined.signature(1, 3)


def test_values_and_times_are_not_in_the_signature() -> None:
    joined = Joined(["S//i->a FOLLOWED BY {a/c = b/c, 1 s} S//i->b"])
    joined.feed("<c>1</c>", "<c>1</c>", "<c>other</c>", "<c>1</c>", "<c>other</c>")
    assert joined.signature(1, 2) == joined.signature(1, 4) == joined.signature(3, 5)
    assert joined.held(1, 2)
    assert not joined.held(1, 4)
