"""What one stratum hands on to the next: tuples of inner operators, and published documents."""

from __future__ import annotations

from oracle import number_documents
from support.kit import Case, document
from support.runners import engine_of

import xscl
from broker.matching.engine import StepResult
from joins.memory.instance import Instance

LINES = [document("S", minute, f"<i><t>{t}</t></i>") for minute, t in enumerate("xyxxy")]


def case_of(**texts: str) -> Case:
    queries = [xscl.parse(text, id=name)[0] for name, text in texts.items()]
    return Case(queries=queries, lines=LINES)


def remembered(case: Case) -> list[Instance]:
    """Return what an engine remembers of a case's documents, and of what is made of them."""
    engine = engine_of(case, "signatures")
    documents = number_documents(case.lines)
    xml = {each.docid: each.xml for each in documents}
    engine.process(engine.evaluate(documents), lambda docids: xml)
    numbers = range(1, engine.processor.next_instance)
    return list(engine.processor.instances(set(numbers)).values())


def test_a_tuple_stands_at_its_newest_document_and_knows_the_smallest_number() -> None:
    """Who reads a tuple with a registration point of its own asks for the smallest number."""
    inner = "(S//i->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b)"
    found = remembered(case_of(q=f"{inner} FOLLOWED BY {{b/t = c/t, 1 h}} S//i->c"))
    tuples = [each for each in found if len(each.leaves) > 1]
    places = {each.instance: each.docid for each in found}
    assert sorted((each.docid_min, each.docid) for each in tuples) == [
        (1, 3),
        (1, 4),
        (2, 5),
        (3, 4),
    ]
    for each in tuples:
        numbers = [places[leaf] for leaf in each.leaves]
        assert (each.docid_min, each.docid) == (min(numbers), max(numbers))


def test_what_has_been_published_is_not_published_again() -> None:
    """A restart, and a registration that looks back, find what is published already."""
    publisher = "SELECT * FROM S//i->a FOLLOWED BY {a/t = b/t, 1 h} S//i->b PUBLISH P"
    case = case_of(p=publisher, reader="P//t->u FOLLOWED BY {u = v, 1 h} P//t->v")
    documents = number_documents(case.lines)
    xml = {each.docid: each.xml for each in documents}

    def run(known: list[int]) -> StepResult:
        engine = engine_of(case, "signatures")
        published = [each for i, each in enumerate(first.published) if i in known] if known else []
        return engine.process(engine.evaluate(documents), lambda docids: xml, published)

    first = run([])
    assert len(first.published) == 4
    again = run([0, 2])
    assert [each.key for each in again.published] == [first.published[i].key for i in (1, 3)]
    assert again.matches == first.matches
