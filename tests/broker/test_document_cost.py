"""What one document costs: it is numbered once, and a query pays in bytes for what it asks."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, cached_property
from itertools import product
from typing import Any

import pytest
from support.budget_runs import Running, Way, run, stream
from support.budgets import UNLIMITED
from support.examples import some

import broker.matching.rendering.trees
import xscl.output
from broker.documents.document import Document
from broker.matching.costs.budget import DEFAULT_BUDGET, TUPLE_COST
from broker.matching.limits import DEFAULT_MATCHING_LIMITS
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.matches import BuiltMatches, MatchBuilder
from broker.matching.rendering.trees import DocumentTree, Trees, WholeTexts
from joins.budget.limits import RunLimits
from joins.engines import ENGINES
from joins.sequences.runparts import Extent
from joins.sequences.runrows import RunRows

MINUTE_US = 60_000_000
NODES = "S//c->a FOLLOWED BY {a = b, 1 h} S//c->b"
WAYS = [*map(Way, ENGINES), Way("signatures", 3), Way("mmqjp-views", 3)]


def auctions(seed: int) -> str:
    """Return items as in an auction site, 1 MB of them in 17,000 elements."""
    items = (
        f"<item id='i{n}'><name>{(n * seed) % 199}</name><description>{'<text>gold</text>' * 60}"
        f"</description><mail><date>{n}</date>{'<from>Ann</from>' * 20}</mail></item>"
        for n in range(200)
    )
    return f"<regions>{''.join(items)}</regions>{'<person><name>Ann</name></person>' * 6_000}"


HUNDRED_EQUAL = NODES, ["<c>same</c>" * 100 + "<e>other</e>" * 1_600] * 2, 10_000
AUCTIONS = (
    "S//item->a FOLLOWED BY {a/name = b/name, 1 h} S//item->b",
    [auctions(3), auctions(5)],
    202,
)


@pytest.mark.parametrize(("text", "bodies", "matches"), [HUNDRED_EQUAL, AUCTIONS])
def test_the_nodes_of_a_document_are_numbered_once_for_all_matches(
    text: str, bodies: list[str], matches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered: list[Any] = []

    class Listening(DocumentTree):
        @cached_property
        def elements(self) -> list[Any]:
            numbered.append(self.root)
            return super().elements

    monkeypatch.setattr(broker.matching.rendering.trees, "DocumentTree", Listening)
    found = run({"nodes": text}, DEFAULT_BUDGET, stream(bodies))
    assert (len(found.lines), found.pauses) == (matches, [])
    assert len(numbered) == 2


WHOLE = "S//i->a[.//c->x] FOLLOWED BY {x = y, %s} S//i->b[.//c->y]"
TEXTS = {
    "output": f"SELECT a, b FROM {WHOLE % '1 h'}",
    "short": f"SELECT a, b FROM {WHOLE % '4 m'}",
    "reading": f"SELECT x FROM {WHOLE % '1 h'}",
    "constructor": f"SELECT <o>{{count(a//* | b//*)}}</o> FROM {WHOLE % '1 h'}",
    "comparing": f"SELECT <o>{{a//e = b//f}}</o> FROM {WHOLE % '1 h'}",
    "residual": "S//i->a FOLLOWED BY {a/c = b/c AND concat(a/e, b/f) = a/f, 1 h} S//i->b",
    "nested": f"SELECT c FROM ({WHOLE % '1 h'}) FOLLOWED BY {{y = z, 2 m}} S//i->c[.//c->z]",
    "pairs": f"SELECT * FROM {WHOLE % '3 m'} PUBLISH pairs",
    "reader": "SELECT p FROM pairs//i->p FOLLOWED BY {p/t = q/t, 2 m} S//i->q",
    "free": "SELECT x FROM S//i[t->x] FOLLOWED BY {x = y, 4 m} S//i[t->y]",
}
LONG = 200


def documents(count: int = 14) -> list[Document]:
    return stream(
        [
            f"<t>{n % 3}</t><c>same</c><e>{'ä' * LONG}{n}</e><f>{n}</f>" + "<e>x</e>" * (n % 4)
            for n in range(count)
        ]
    )


def paused(running: Running) -> dict[str, tuple[int, str]]:
    return {pause.query: (pause.docid, pause.reason) for pause in running.pauses}


BUDGETS = {
    "a document": replace(UNLIMITED, bytes_per_document=9_000),
    "a block": replace(UNLIMITED, output_bytes_per_1000_documents=30_000),
    "both": replace(UNLIMITED, bytes_per_document=14_000, output_bytes_per_1000_documents=25_000),
}
PAUSED = {
    "a document": {"output", "reading", "constructor", "comparing", "residual", "pairs"},
    "a block": {"output", "pairs"},
    "both": {"output", "constructor"},
}


@cache
def one_by_one(name: str) -> Running:
    return run(TEXTS, BUDGETS[name], documents(), 1)


@pytest.mark.parametrize(
    ("name", "way", "batch"),
    [*((name, Way(), 3) for name in BUDGETS), *(("both", way, 14) for way in some(WAYS, 3))],
    ids=str,
)
def test_engines_shards_and_batches_pause_at_the_same_document(
    name: str, way: Way, batch: int
) -> None:
    expected = one_by_one(name)
    found = run(TEXTS, BUDGETS[name], documents(), batch, way)
    assert paused(found) == paused(expected)
    assert sorted(found.lines) == sorted(expected.lines)
    assert PAUSED[name] <= paused(found).keys()
    assert "free" not in paused(found)


@pytest.mark.parametrize(
    ("name", "nbytes"),
    some(
        product(
            ["output", "reading", "constructor", "pairs"], [3_000, 6_000, 9_000, 14_000, 30_000]
        ),
        3,
    ),
)
def test_who_gets_an_output_that_is_there_pays_for_it_all_the_same(name: str, nbytes: int) -> None:
    budget = replace(
        UNLIMITED, bytes_per_document=nbytes, output_bytes_per_1000_documents=3 * nbytes
    )
    text, copies = TEXTS[name], ["first", "other", "third"]
    alone = run({"alone": text}, budget, documents())
    texts = {each: text.replace("PUBLISH pairs", f"PUBLISH {each}") for each in copies}
    found = run(texts, budget, documents())
    for each in copies:
        assert _outputs(found, each) == _outputs(alone, "alone")
        assert paused(found).get(each) == paused(alone).get("alone")


def _outputs(running: Running, query: str) -> list[tuple[int, str]]:
    found = ((docid, line) for name, docid, line in running.lines if name == query)
    return sorted((docid, json.loads(line)["output"]) for docid, line in found)


@cache
def without_budget() -> Running:
    return run(TEXTS, UNLIMITED, documents())


@pytest.mark.parametrize("name", some(BUDGETS, 1))
def test_other_queries_do_not_move_a_pause_and_lose_nothing(name: str) -> None:
    stream, free = documents(), without_budget()
    found = run(TEXTS, BUDGETS[name], stream, 5)
    for query in TEXTS.keys() - {"reader"}:
        alone = run({query: TEXTS[query]}, BUDGETS[name], stream)
        assert paused(found).get(query) == paused(alone).get(query)
        docid, _ = paused(found).get(query, (1_000, ""))
        assert found.of(query) == alone.of(query) == free.of(query, before=docid)


@pytest.mark.parametrize(("name", "after"), some(product(BUDGETS, [3, 6, 9]), 2))
def test_a_restart_does_not_move_a_pause(name: str, after: int) -> None:
    stream, texts = documents(), {name: TEXTS[name] for name in TEXTS.keys() - {"pairs", "reader"}}
    expected = run(texts, BUDGETS[name], stream)
    found = Running(texts, BUDGETS[name]).feed(stream[:after], 2)
    found.restart(stream[:after]).feed(stream, 4, after)
    assert paused(found) == paused(expected)
    assert sorted(found.lines) == sorted(expected.lines)


def test_who_is_paused_is_told_what_to_select() -> None:
    found = run({"output": TEXTS["output"]}, BUDGETS["a document"], documents())
    [pause] = found.pauses
    assert pause.reason == (
        f"the matches of document {pause.docid} read and write more than 9,000 bytes"
        " (budget.bytes_per_document); select less of its documents, or join on something rarer"
        " as well, or shorten the window"
    )
    found = run({"output": TEXTS["output"]}, BUDGETS["a block"], documents())
    [pause] = found.pauses
    assert pause.reason == (
        f"documents 1 to {pause.docid} have more than 30,000 bytes of output and compared values"
        " (budget.output_bytes_per_1000_documents); select less of each, or join on something"
        " rarer as well, or shorten the window"
    )


def test_all_matches_of_a_document_pay_once_for_reading_its_partner(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    costs: list[int] = []

    class Listening(DocumentTree):
        def __init__(self, xml: bytes) -> None:
            super().__init__(xml)
            costs.append(self.cost)

    monkeypatch.setattr(broker.matching.rendering.trees, "DocumentTree", Listening)
    bodies = ["<c>same</c><c>same</c><e>other</e>"] * 2
    assert len(run({"nodes": NODES}, UNLIMITED, stream(bodies)).lines) == 4
    output = "<match><c>same</c><c>same</c></match>"
    each = len(output) - len("<match></match>") + len("samesame") + TUPLE_COST
    for most, count in ((sum(costs) + 4 * each, 0), (sum(costs) + 4 * each - 1, 1)):
        found = run({"nodes": NODES}, replace(UNLIMITED, bytes_per_document=most), stream(bodies))
        assert len(found.pauses) == count


OLD_AND_NEW = "S//i[old]->a FOLLOWED BY {a/c = b/c, 2 h} S//i[new]->b"


def old_and_new(count: int, length: int = 200) -> list[Document]:
    """Return documents of which the last one has a match with each of those before it."""
    whole = f"<c>same</c><e>{'long ' * length}</e>"
    return stream([*(f"<old/>{n}{whole}" for n in range(count)), f"<new/>{whole}"])


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[DocumentTree]:
    """Return the documents that have been read for output."""
    read: list[DocumentTree] = []

    class Listening(DocumentTree):
        def __init__(self, xml: bytes) -> None:
            super().__init__(xml)
            read.append(self)

    monkeypatch.setattr(broker.matching.rendering.trees, "DocumentTree", Listening)
    return read


def test_all_copies_of_whole_documents_pay_once_for_reading_each() -> None:
    documents = old_and_new(20)
    assert len(run({"whole": OLD_AND_NEW}, UNLIMITED, documents).lines) == 20
    trees = [DocumentTree(document.xml) for document in documents]
    copies = sum(tree.nbytes for tree in trees) + 19 * trees[-1].nbytes
    values = 20 * (len("samesame") + TUPLE_COST)
    most = sum(tree.cost for tree in trees) + copies + values
    for nbytes, count in ((most, 0), (most - 1, 1)):
        budget = replace(UNLIMITED, bytes_per_document=nbytes)
        found = run({"whole": OLD_AND_NEW}, budget, documents)
        assert (len(found.lines) == 20, len(found.pauses)) == (not count, count)


def test_whole_documents_that_are_over_the_budget_are_not_read(
    read: list[DocumentTree], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole: list[Leaf] = []
    of_trees = Trees.whole_texts

    def listening(self: Trees, leaves: Sequence[Leaf]) -> WholeTexts:
        whole.extend(leaves)
        return of_trees(self, leaves)

    monkeypatch.setattr(Trees, "whole_texts", listening)
    budget = replace(UNLIMITED, bytes_per_document=500_000)
    found = run({"whole": OLD_AND_NEW}, budget, old_and_new(100, 10_000))
    assert [pause.docid for pause in found.pauses] == [101]
    assert len(read) + len(whole) < 10


@pytest.mark.parametrize("attribute", ["", " a='b'"])
def test_of_matches_that_are_over_the_budget_few_are_made_first(
    attribute: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    of_rows = MatchBuilder.build

    def listening(self: MatchBuilder, *given: Any) -> BuiltMatches:
        built = of_rows(self, *given)
        made.extend(len(row.line) for row in built.rows)
        return built

    monkeypatch.setattr(MatchBuilder, "build", listening)
    bodies = [f"<c>same</c><e{attribute}>{'long ' * 100}</e>"] * 40
    budget = replace(UNLIMITED, output_bytes_per_1000_documents=100_000)
    limits = replace(DEFAULT_MATCHING_LIMITS, made_bytes=5_000)
    found = run({"whole": WHOLE % "1 h"}, budget, stream(bodies), way=Way(limits=limits))
    assert [pause.docid for pause in found.pauses] == [15]
    assert sum(made) < 150_000, "of 1 MB"


def test_what_is_over_the_budget_is_not_written_first(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[int] = []
    serialised = xscl.output._serialised

    def listen(node: Any) -> str:
        text = serialised(node)
        written.append(len(text))
        return text

    monkeypatch.setattr(xscl.output, "_serialised", listen)
    whole = "SELECT a, b, x, y FROM " + WHOLE % "1 h"
    bodies = ["<c>same</c>" * 60 + "<e>other</e>" * 1_600] * 2
    found = run({"whole": whole}, replace(UNLIMITED, bytes_per_document=5_000_000), stream(bodies))
    assert [pause.docid for pause in found.pauses] == [2]
    assert sum(written) < 5_000_000 + max(written), "of 144 MB"


GROWING = "S//i->a NEXT {, 9 m} S//i->b+ {, 1 h}"
RUNS = {
    "runs": GROWING,
    "counted": f"SELECT b/c FROM {GROWING}",
    "asked": "S//i->a NEXT {a/t != b/t, 9 m} S//i->b+ {b/f > prev(b/f), 1 h}",
    "handed on": f"SELECT c FROM ({GROWING}) FOLLOWED BY {{a/t = c/t, 3 m}} S//i->c",
}


def test_runs_that_are_over_the_budget_become_no_instances_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []
    row = RunRows._row

    def listening(self: RunRows, extent: Extent, terms: Any, shape: int) -> tuple[Any, ...]:
        made.append(extent.docid_max)
        return row(self, extent, terms, shape)

    monkeypatch.setattr(RunRows, "_row", listening)
    limits = replace(DEFAULT_MATCHING_LIMITS, runs=RunLimits(spelled_bytes=1_000), read_bytes=1_000)
    budget = replace(UNLIMITED, output_bytes_per_1000_documents=10_000)
    expected = run({"runs": RUNS["asked"]}, budget, documents(30))
    whole, made[:] = len(made), []
    found = run({"runs": RUNS["asked"]}, budget, documents(30), way=Way(limits=limits))
    assert (found.lines, found.pauses) == (expected.lines, expected.pauses)
    assert [pause.docid for pause in found.pauses] == [max(made)] == [4]
    assert len(made) < whole / 10


@pytest.mark.parametrize(
    ("bound", "most", "size", "batch"),
    some(
        product(
            ["bytes_per_document", "output_bytes_per_1000_documents", "matches_per_1000_documents"],
            [1, 2, 5, 20],
            [1, 300, 2_000],
            [1, 4, 14],
        ),
        2,
    ),
)
def test_runs_that_become_instances_in_portions_pause_at_the_same_document(
    bound: str, most: int, size: int, batch: int
) -> None:
    count = 3 * most if bound.startswith("matches") else 2_000 * most
    budget = replace(UNLIMITED, **{bound: count})
    expected = run(RUNS, budget, documents(), 14)
    limits = replace(
        DEFAULT_MATCHING_LIMITS,
        runs=RunLimits(spelled_bytes=size),
        read_bytes=size,
        made_bytes=size,
    )
    found = run(RUNS, budget, documents(), batch, Way(limits=limits))
    assert paused(found) == paused(expected)
    assert sorted(found.lines) == sorted(expected.lines)


@pytest.mark.parametrize(
    "expression",
    [
        "count(a//e[. = $b//f])",
        "count(for $i in a//e, $j in b//e return 1)",
        "sum(for $i in a//e return count($i/following::*))",
        "count(for $i in a//e return count(1 to 99999))",
        "for $i in a//e return b",
        "a//e = b//f",
        "some $i in a//e satisfies exactly-one($i) = b//f",
        "(a//e = b//f) castable as xs:boolean",
    ],
)
def test_a_constructor_that_multiplies_nodes_pauses_its_query(expression: str) -> None:
    text = f"SELECT <o>{{{expression}}}</o> FROM {WHOLE % '1 h'}"
    bodies = ["<c>same</c>" + "<e>x</e>" * 1_600 + "<f>y</f>" * 1_600] * 2
    budget = replace(UNLIMITED, bytes_per_document=5_000_000)
    [pause] = run({"product": text, "free": TEXTS["free"]}, budget, stream(bodies)).pauses
    assert (pause.query, pause.docid) == ("product", 2)
    assert "budget.bytes_per_document" in pause.reason


def test_long_values_are_paid_for_before_they_are_compared() -> None:
    nested = "<c>" * 100 + "x" * 50_000 + "</c>" * 100
    text = f"SELECT a, b FROM {WHOLE % '1 h'}"
    [pause] = run({"nested": text}, DEFAULT_BUDGET, stream([nested] * 2)).pauses
    assert pause.docid == 2
    assert "budget.bytes_per_document" in pause.reason
