"""Similarity is right: engines find what the oracle finds, whatever texts and thresholds are."""

from __future__ import annotations

import random
from functools import partial

import pytest
from generators.choosers import RandomChooser
from generators.similar_cases import similar_case
from support.examples import examples, size, some
from support.kernels import needs_kernels
from support.kit import Case, cases, check, parse_case
from support.runners import ENGINES, EngineName, lines, run_engine, run_oracle

from broker.matching.limits import MatchingLimits
from broker.matching.match import Match
from broker.pipeline.shards import Join
from joins.signature.limits import SignatureLimits

ALL = {name: text for name, text in cases() if name.startswith("similarity:")}


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_finds_what_a_case_expects(engine: EngineName) -> None:
    for text in some(ALL.values(), 3):
        check(text, partial(run_engine, engine=engine))


@pytest.mark.parametrize("name", some(ALL, 3))
def test_it_is_found_document_by_document_and_after_a_restart(name: str) -> None:
    check(ALL[name], partial(run_engine, batch_size=1, restart_after=2))


def test_shards_find_it_too() -> None:
    def in_shards(case: Case) -> list[Match]:
        join = Join(case.lateness_us, 3)
        return run_engine(case, batch_size=2, processors=lambda: join.processor(None))

    for text in some(ALL.values(), 2):
        check(text, in_shards)


@pytest.mark.parametrize("compiled_sets", [0, 5, 1_000])
def test_the_engine_finds_what_the_oracle_finds(compiled_sets: int) -> None:
    if compiled_sets < 1_000:
        needs_kernels()
    limits = MatchingLimits(join=SignatureLimits(compiled_sets=compiled_sets))
    wrong: list[int] = []
    for seed in range(examples(3)):
        case = parse_case(similar_case(RandomChooser(seed)))
        cut = random.Random(seed)
        batch_size, restart = cut.randint(1, 4), cut.randint(0, len(case.lines) - 1)
        if lines(
            run_engine(case, batch_size=batch_size, restart_after=restart, limits=limits)
        ) != lines(run_oracle(case)):
            wrong.append(seed)
    assert not wrong, "cases of similar_case(RandomChooser(seed)) with these seeds"


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_finds_what_the_oracle_finds(engine: EngineName) -> None:
    wrong: list[int] = []
    for seed in range(1_000, 1_000 + examples(1)):
        case = parse_case(similar_case(RandomChooser(seed)))
        if lines(run_engine(case, engine)) != lines(run_oracle(case)):
            wrong.append(seed)
    assert not wrong, "cases of similar_case(RandomChooser(seed)) with these seeds"


def test_long_texts_are_compared_as_short_ones() -> None:
    """A title of 500 words, and a body of thousands of which another one has a part."""
    random_ = random.Random(0)
    body = " ".join(f"w{random_.randrange(5_000)}" for _ in range(size(1_000, 20_000)))
    part = body[: len(body) // 50]
    title = " ".join(f"t{i}" for i in range(500))
    texts = [body, title, part, f"{title} more", f"{part[: len(part) // 2]} {title}", "the w1"]
    documents = "\n".join(
        f"document {i} S 12:{i:02}  <i><t>{text}</t></i>" for i, text in enumerate(texts, 1)
    )
    queries = "\n".join(
        f"query q{i}\n    S//i->a JOIN {{{predicate}, 1 h}} S//i->b"
        for i, predicate in enumerate(
            (
                "containment(shingles(a/t, 3), shingles(b/t, 3)) >= 0.45",
                "similar(a/t, b/t) >= 0.9",
                "overlap(words(b/t), words(a/t)) >= 100",
            )
        )
    )
    case = parse_case(f"# long\n{queries}\n\n{documents}\n----\n")
    expected = lines(run_oracle(case))
    assert expected
    assert lines(run_engine(case, batch_size=2)) == expected


def test_chains_and_runs_say_what_is_similar() -> None:
    """Their plain units do; what is asked of the elements of a run has no score of its own."""
    queries = [
        "S//i->a FOLLOWED BY {similar(a/t, b/t) >= 0.5, 1 h} S//i->b FOLLOWED BY"
        " {similar(a/t, c/t) >= 0.5, 1 h} S//i->c MATCH NEXT GRACE 10 min",
        "S//i->a FOLLOWED BY {similar(a/t, b/t) >= 0.5, 1 h} S//i->b NEXT {a/t != c/t, 1 h}"
        " S//i->c+ GRACE 10 min",
        "S//i->a FOLLOWED BY {similar(a/t, b/t) >= 0.5, 1 h} S//i->b+ FOLLOWED BY"
        " {similar(a/t, c/t) >= 0.5, 1 h} S//i->c MATCH NEXT GRACE 10 min",
        "S//i->a NEXT {similar(a/t, b/t) >= 0.2, 1 h} S//i->b+ {similar(prev(b/t), b/t) > 0, 1 h}"
        " NEXT {similar(a/t, c/t) > 0, 1 h} S//i->c GRACE 10 min",
    ]
    text = "\n".join(f"query q{i}\n    {query}" for i, query in enumerate(queries))
    titles = ["fire storm harbour", "storm fire harbour", "storm harbour", "storm harbour it is"]
    for i, title in enumerate(titles, 1):
        text += f"\ndocument {i} S 12:{i:02}  <i><t>{title}</t></i>"
    case = parse_case(f"# chains\n{text}\ntick 5 2026-01-03T00:00\n----\n")
    expected = run_oracle(case)
    assert {match.query for match in expected if match.similar} == {"q0", "q1", "q2", "q3"}
    assert lines(run_engine(case)) == lines(expected)
