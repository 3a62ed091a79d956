"""The oracle is right: it finds what the cases, written by hand from the semantics, expect."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from kit import Case, cases, check, parse_case

import oracle
from broker.match import Match

ALL = dict(cases())


def run_oracle(case: Case) -> Sequence[Match]:
    return oracle.matches(
        case.queries,
        oracle.number_documents(case.lines),
        lateness_us=case.lateness_us,
        assignments=case.assignments,
        registered=case.registered,
    )


@pytest.mark.parametrize("name", ALL)
def test_the_oracle_finds_what_a_case_expects(name: str) -> None:
    check(ALL[name], run_oracle)


@pytest.mark.parametrize("name", ALL)
def test_documents_get_the_numbers_that_a_case_gives_them(name: str) -> None:
    case = parse_case(ALL[name])
    accepted = [number for number in case.numbers if number is not None]
    documents = oracle.number_documents(case.lines)
    assert [document.docid for document in documents] == accepted
