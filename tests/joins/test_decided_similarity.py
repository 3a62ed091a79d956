"""What NEXT, UNLESS and NOT decide by similarity is right, whatever thresholds there are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from xml.sax.saxutils import escape

import pytest
from generators.choosers import RandomChooser
from generators.similar_cases import decided_similar_case, similar_text
from support.examples import examples, some
from support.kit import parse_case
from support.runners import lines, run_engine, run_oracle
from support.tiny_limits import TINY_MEMORY, matching

import xscl
from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.queries.registration import SetChange
from joins.memory.limits import DEFAULT_MEMORY_LIMITS
from joins.similarity import textsets
from templates.compiler import compile_query
from templates.prepared import is_prepared, may_be_prepared
from xpath_eval.catalog import PatternCatalog

HOUR_US = 3_600_000_000

TOGETHER = (
    "S//i->a NEXT {similar(a/t, b/t) >= $x, 1 h} S//i->b GRACE 0 s",
    "S//i->a NEXT {containment(words(b/t), words(a/t)) > $x, 1 h} S//i->b GRACE 0 s",
    "S//i->a NEXT {similar(a/t, b/t) >= $x AND a/l = b/l, 1 h} S//i->b GRACE 0 s",
    "S//i->a NEXT {similar(a/t, b/t) >= $x, 1 h} S//i->b UNLESS {a/l = c/l} S//i->c GRACE 0 s",
    "S//i->a FOLLOWED BY {similar(a/t, b/t) >= $x, 1 h} S//i->b UNLESS S//j GRACE 0 s",
    "S//i->a NOT FOLLOWED BY {similar(a/t, b/t) >= $x, 1 h} S//i->b GRACE 0 s",
    "S//i->a NOT JOIN {jaccard(shingles(a/t, 2), shingles(b/t, 2)) > $x, 1 h} S//i->b GRACE 0 s",
    "S//i->b UNLESS {similar(a/t, b/t) >= $x AND a/l = b/l, 1 h} S//i->a GRACE 0 s",
    "S//i->a FOLLOWED BY {a/l = b/l, 1 h} S//i->b UNLESS {similar(b/t, c/t) > $x} S//i->c"
    " GRACE 0 s",
    "(S//i->a NEXT {similar(a/t, b/t) >= $x, 1 h} S//i->b) JOIN {a/l = c/l, 1 h} S//i->c GRACE 0 s",
)
"""Statements that are decided once for all thresholds."""

ASKED = "S//i->a NEXT {similar(a/t, b/t) >= $x AND similar(a/t, b/t) < $y, 1 h} S//i->b GRACE 0 s"
"""One that is decided once for each vector of them, as the first operand is handed on."""

APART = (
    "S//i->a NEXT {similar(a/t, b/t) >= $x OR a/l = b/l, 1 h} S//i->b GRACE 0 s",
    "S//i->a NEXT {similar(a/t, b/t) >= $x, $w} S//i->b GRACE 0 s",
    "S//i->a NEXT {similar(a/t, b/t) >= $x, 1 h} S//i->b UNLESS {similar(a/t, c/t) >= $y} S//i->c"
    " GRACE 0 s",
    "(S//i->a NOT FOLLOWED BY {similar(a/t, b/t) >= $x, 1 h} S//i->b) JOIN {, 1 h} S//i GRACE 0 s",
)
"""Statements that are decided for each choice of data by itself."""


@pytest.mark.parametrize(
    ("text", "are_together"), [(t, True) for t in (*TOGETHER, ASKED)] + [(t, False) for t in APART]
)
def test_thresholds_are_decided_together_or_apart(text: str, are_together: bool) -> None:
    [query] = xscl.parse(text, id="q")
    found = may_be_prepared(query)
    found = found and is_prepared(compile_query(query, 0, PatternCatalog(), {}))
    assert found is are_together


@pytest.mark.parametrize("first_sets", [1, 64])
def test_what_is_decided_is_what_the_oracle_decides(
    first_sets: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever words are ordered anew, and whatever is forgotten."""
    monkeypatch.setattr(textsets, "FIRST_SETS", first_sets)
    wrong: list[int] = []
    for seed in range(examples(4)):
        case = parse_case(decided_similar_case(RandomChooser(seed)))
        cut = random.Random(seed)
        batch_size, restart = cut.randint(1, 4), cut.randint(0, len(case.lines) - 1)
        limits = matching(cut.choice([TINY_MEMORY, DEFAULT_MEMORY_LIMITS]))
        if lines(
            run_engine(case, batch_size=batch_size, restart_after=restart, limits=limits)
        ) != lines(run_oracle(case)):
            wrong.append(seed)
    assert not wrong, "cases of decided_similar_case(RandomChooser(seed)) with these seeds"


@pytest.mark.parametrize("text", some(TOGETHER, 3))
def test_thresholds_come_and_go(text: str) -> None:
    """Each hears all from where it comes, whatever the others ask for."""
    [query] = xscl.parse(text, id="q")
    for seed in range(examples(1)):
        cut = random.Random(seed)
        documents = titles(cut, 40)
        engine = Engine([RegisteredQuery(query)], lateness_us=HOUR_US)
        there: dict[float, int] = {}
        gone: set[float] = set()
        found: list[str] = []
        for first in range(0, len(documents), 5):
            least = cut.choice([0.1, 0.25, 1 / 3, 0.5, 0.6, 0.8, 1.0]) if first else 0.8
            if least not in there:
                there[least] = documents[first].docid - 1
                assert engine.follow(SetChange(assigned=[("q", {"x": least}, there[least])]))
            elif len(there) > 2 and least not in gone:
                gone.add(least)
                assert engine.follow(SetChange(assigned=[("q", {"x": least}, None)]))
            found += matched(engine, documents, slice(first, first + 5))
        kept = [least for least in there if least not in gone]
        whole = RegisteredQuery(
            query,
            assignments=tuple({"x": least} for least in kept),
            assignment_points=tuple(there[least] for least in kept),
        )
        wanted = matched(Engine([whole], lateness_us=HOUR_US), documents, slice(None))
        assert wanted
        spelled = tuple(f'"parameters": {{"x": {least}}}' for least in kept)
        assert sorted(line for line in found if any(s in line for s in spelled)) == sorted(wanted)


def titles(random_: random.Random, count: int) -> list[Document]:
    found: list[Document] = []
    newest_us = FIRST_WATERMARK_US
    for docid in range(1, count + 1):
        text = escape(similar_text(RandomChooser(random_.randrange(1 << 30))))[:200]
        time_us = max(0, docid * HOUR_US // 8 - random_.randrange(HOUR_US // 4))
        xml = f"<i><l>{random_.choice('ab')}</l><t>{text}</t></i>".encode()
        found.append(Document(docid, "S", str(docid), time_us, time_us, time_us, newest_us, xml))
        newest_us = max(newest_us, time_us)
    return found


def matched(engine: Engine, documents: Sequence[Document], some: slice) -> list[str]:
    xml = {document.docid: document.xml for document in documents}
    witnesses = engine.evaluate(documents[some])
    step = engine.process(witnesses, lambda docids: {docid: xml[docid] for docid in docids})
    return [match.line for match in step.matches]


def test_the_lowest_threshold_below_another_operator_is_asked_for() -> None:
    """One box stands for all data there: its bar is that of the largest threshold."""
    text = """# nested
query q
    S//i->a NEXT {similar(a/t, b/t) >= $x, 1 h} S//i->b NEXT {a/l = c/l, 1 h} S//j->c GRACE 0 s
parameters q {"x": 0.5}
parameters q {"x": 0.2}
document 1 S 12:00  <i><l>x</l><t>storm off the harbour</t></i>
document 2 S 12:01  <i><l>y</l><t>fire in the harbour</t></i>
document 3 S 12:02  <j><l>x</l></j>
tick 4 2026-01-03T00:00
----
"""
    case = parse_case(text)
    expected = lines(run_oracle(case))
    assert len(expected) == 1
    assert lines(run_engine(case)) == expected
