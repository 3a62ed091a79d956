"""Of instances with long values, and of large documents behind matches, few are held at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.budgets import UNLIMITED
from support.runners import SOME_ENGINES

import xscl
from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.matching.bulk import Bulk
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.limits import MatchingLimits
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.trees import Trees
from joins.engines import EngineName
from joins.memory.instance import INSTANCE_SCHEMA

LARGE = 10 << 10


def rows(sizes: Iterable[int]) -> pa.Table:
    """Return instances with so many bytes of values each, in two values."""
    half = [(size // 2, size - size // 2) for size in sizes]
    columns = {
        "vals": [[None, "x" * one, "y" * two] for one, two in half],
        "end_us": list(range(len(half))),
    }
    fields = [INSTANCE_SCHEMA.field(name) for name in columns]
    return pa.table(columns, pa.schema(fields))


@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=12),
    pairs=st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12) | st.none()), max_size=30),
    cut=st.integers(0, 12),
)
def test_parts_are_whole_in_order_and_small(
    sizes: list[int], pairs: list[tuple[int, int | None]], cut: int
) -> None:
    held = dict(enumerate(sizes, 1))
    bulk = Bulk(MatchingLimits(large_bytes=4, read_bytes=20))
    table = rows(sizes)
    bulk.note(1, pa.concat_tables([table.slice(0, cut), table.slice(cut)]))
    assert {n for n in held if bulk.is_large(n)} == {n for n in held if held[n] > 4}
    parts = [list(part) for part in bulk.sub_batches(pairs, lambda pair: pair)]
    assert [pair for part in parts for pair in part] == pairs
    for part in parts:
        numbers = {number for pair in part for number in pair}
        large = sum(held[n] for n in numbers if n is not None and held.get(n, 0) > 4)
        assert len(part) == 1 or large <= 20


def test_large_instances_that_no_window_reaches_are_forgotten() -> None:
    bulk = Bulk(MatchingLimits(large_instances=2))
    bulk.note(1, rows([LARGE] * 5))
    bulk.forget(before_us=3)
    assert [bulk.is_large(number) for number in range(1, 6)] == [False] * 3 + [True] * 2


def leaf(number: int) -> Leaf:
    return Leaf(number, number, 0, "", "S", str(number), 0, 0, "{}", "[]")


def test_trees_are_parsed_again_when_others_have_taken_their_room() -> None:
    read: list[int] = []

    def texts_of(leaves: Sequence[Leaf]) -> Sequence[bytes]:
        read.extend(leaf.instance for leaf in leaves)
        return [b"<i>0123456789</i>"] * len(leaves)

    trees = Trees(texts_of, 200)
    for number in (1, 2, 1, 3, 1, 2):
        assert trees.tree(leaf(number)).root.tag == "i"
    assert read == [1, 2, 3, 2]


@pytest.mark.parametrize("engine", SOME_ENGINES)
def test_matches_of_large_documents_are_made_of_a_few_at_a_time(
    engine: EngineName, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Another query compares the long values, so they are remembered; the matches have none of them.
    texts = [
        "S//i->a FOLLOWED BY {a/c = b/c, 1 h} S//i->b",
        "S//i->a FOLLOWED BY {a/long = b/long, 1 h} S//i->b",
    ]
    queries = [RegisteredQuery(xscl.parse(text, id=f"q{i}")[0]) for i, text in enumerate(texts)]
    limits = MatchingLimits(read_bytes=4 * LARGE)
    running = Engine(queries, lateness_us=0, engine=engine, budget=UNLIMITED, limits=limits)
    documents, watermark_us = [], FIRST_WATERMARK_US
    for docid in range(1, 21):
        times = (docid, docid, docid, watermark_us)
        xml = f"<i><c>same</c><long>{docid}{'x' * LARGE}</long></i>".encode()
        documents.append(Document(docid, "S", str(docid), *times, xml))
        watermark_us = docid
    at_once: list[int] = []
    read = type(running.processor).rows

    def listen(processor: object, numbers: Iterable[int]) -> Iterator[Any]:
        found = list(read(processor, numbers))  # type: ignore[arg-type]
        values = [pc.list_flatten(part.column("vals")) for _, part in found]
        at_once.append(sum(pc.sum(pc.binary_length(each)).as_py() for each in values))
        return iter(found)

    monkeypatch.setattr(type(running.processor), "rows", listen)
    witnesses = running.evaluate(documents)
    step = running.process(witnesses, lambda ids: {n: documents[n - 1].xml for n in ids})
    assert len(step.matches) == 20 * 19 // 2
    assert max(at_once) < 5 * LARGE
