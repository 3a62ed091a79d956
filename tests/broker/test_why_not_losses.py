"""Why-not of statements with LOSS: the variant that documents are of, and its factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from generators.choosers import RandomChooser
from generators.loss_cases import loss_case
from oracle import number_documents
from support.examples import examples
from support.kit import parse_case
from support.runners import run_engine

import xscl
from broker.documents.document import Document, DocumentLine
from broker.whynot import Surroundings, why_not
from broker.whynot.reason import Reason

SECOND_US = 1_000_000
TWO = """S//a[k->x] FOLLOWED BY {x = y, 20 s} S//b[k->y] LOSS 0.1 DELAY uniform(0 s, 10 s)
    FOLLOWED BY {y = z, 20 s} S//c[k->z] WITHIN 20 s CONFIDENCE 0.06 GRACE 0 s"""
LEARNS = """S//a[k->x] FOLLOWED BY {x = y, 20 s} S//b[k->y] LOSS 0.5 DELAY learned
    FOLLOWED BY {y = z, 20 s} S//c[k->z] GRACE 0 s"""


def documents(*given: tuple[str, int]) -> list[Document]:
    lines = [
        DocumentLine("S", f"<{kind}><k>1</k></{kind}>".encode(), at * SECOND_US, at * SECOND_US)
        for kind, at in given
    ]
    return [*number_documents(lines)]


def asked(text: str, named: Sequence[Document], among: Sequence[Document] | None) -> Reason:
    [query] = xscl.parse(text, id="q")
    around = None if among is None else Surroundings(among)
    return why_not(query, named, lateness_us=0, around=around)


def confidence(reason: Reason) -> Reason:
    return next(each for each in reason.parts if each.kind == "confidence")


def test_it_names_the_variant_and_its_factors() -> None:
    found = documents(("a", 0), ("a", 4), ("c", 9), ("x", 99))
    reason = asked(TWO, [found[0], found[2]], found)
    assert reason.holds
    assert reason.text == "q matches: the variant without block 1 (S)"
    sure = confidence(reason)
    assert sure.text == "confidence 0.09, 0.06 is asked"
    assert sure.parts[0].text == (
        "block 1 (S) came and was lost within 9 seconds"
        " (LOSS 0.1 DELAY uniform(0 seconds, 10 seconds)): 0.09"
    )
    reason = asked(TWO, [found[1], found[2]], found)
    assert not reason.holds
    assert confidence(reason).text == "confidence 0.05, 0.06 is asked"


def test_a_document_that_is_there_is_not_lost() -> None:
    found = documents(("a", 0), ("b", 3), ("c", 9), ("x", 99))
    reason = asked(TWO, [found[0], found[2]], found)
    assert not reason.holds
    assert [each.text for each in reason.failures()] == [
        "cancelled by document 2 (S 2, 1970-01-01T00:00:03Z)"
    ]
    whole = asked(TWO, found[:3], found)
    assert whole.holds
    assert whole.text == "q matches: the variant that lacks nothing"


def test_too_few_documents_are_counted() -> None:
    found = documents(("a", 0), ("x", 99))
    reason = asked(TWO, found[:1], found)
    assert (reason.kind, reason.hint) == ("documents", "name 2 or 3 documents")


def test_what_is_learned_is_what_was_known_then() -> None:
    groups = [
        each for n in range(32) for each in (("a", 60 * n), ("b", 60 * n + 2), ("c", 60 * n + 5))
    ]
    found = documents(("a", -60), ("c", -50), *groups, ("a", 2_000), ("c", 2_009), ("x", 9_000))
    late = asked(LEARNS, found[-3:-1], found)
    assert confidence(late).text == "confidence 0.5, more than 0 is asked"
    early = asked(LEARNS, found[:2], found)
    assert not early.holds
    assert "fewer than 30 complete" in confidence(early).text


def test_it_says_yes_of_every_match_with_its_confidence() -> None:
    wrong: list[tuple[int, object]] = []
    for seed in range(5_000, 5_000 + examples(3)):
        case = parse_case(loss_case(RandomChooser(seed)))
        query = next(each for each in case.queries if each.id == "q")
        by_docid = {each.docid: each for each in number_documents(case.lines)}
        for match in [each for each in run_engine(case) if each.query == "q"][:2]:
            if query.parameters or query.learns:
                continue
            reason = why_not(
                query,
                [by_docid[each.docid] for each in match.documents],
                lateness_us=case.lateness_us,
                registration_point=case.registered.get("q", 0),
                around=Surroundings([*by_docid.values()]),
            )
            if not reason.holds or confidence(reason).facts["confidence"] != match.confidence:
                wrong.append((seed, reason.as_data()))
    assert not wrong, "cases of loss_case(RandomChooser(seed)) with these seeds"


def test_it_says_how_sure_published_documents_are() -> None:
    outside = documents(("d", 9), ("d", 12))
    known = replace(
        documents(("p", 8))[0],
        stream="P",
        key="m",
        depth=1,
        match_id="m",
        confidence=Fraction(1, 4),
    )
    reader = "P//p[k->x] JOIN {x = y, 20 s} S//d[k->y]"
    reason = asked(f"{reader} CONFIDENCE 0.3", [known, outside[0]], None)
    assert not reason.holds
    assert confidence(reason).text == "confidence 0.25, 0.3 is asked"
    assert confidence(reason).parts[0].text == "P m was published with the confidence 0.25"
    assert asked(f"{reader} CONFIDENCE 0.25", [known, outside[0]], None).holds
    assert asked(reader, [known, outside[0]], None).holds
