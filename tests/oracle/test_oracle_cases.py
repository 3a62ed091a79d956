"""The oracle is right: it finds what the cases, written by hand from the semantics, expect."""

from __future__ import annotations

import pytest
from support.kit import cases, check, parse_case
from support.runners import run_oracle

import oracle

ALL = dict(cases())


@pytest.mark.parametrize("name", ALL)
def test_the_oracle_finds_what_a_case_expects(name: str) -> None:
    check(ALL[name], run_oracle)


@pytest.mark.parametrize("name", ALL)
def test_documents_get_the_numbers_that_a_case_gives_them(name: str) -> None:
    case = parse_case(ALL[name])
    accepted = [number for number in case.numbers if number is not None]
    documents = oracle.number_documents(case.lines)
    assert [document.docid for document in documents] == accepted
