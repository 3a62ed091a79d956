from __future__ import annotations

from pathlib import Path

import pytest
from support import worked_example as paper
from support.goldens import check_golden, golden_files, golden_ids

import xscl
from broker.documents.document import FIRST_WATERMARK_US, Document
from broker.explain.relations import Relations, relations_of


@pytest.mark.parametrize("path", golden_files("witnesses"), ids=golden_ids)
def test_witnesses_prints_what_is_golden(path: Path, tmp_path: Path) -> None:
    check_golden(path, tmp_path)


def found(xml: bytes) -> Relations:
    queries = [xscl.parse(text, id=name)[0] for name, text in paper.QUERIES.items()]
    return relations_of(queries, Document(1, "S", "1", 0, 0, 0, FIRST_WATERMARK_US, xml))


def test_the_witnesses_of_d1_are_tables_b_and_c() -> None:
    relations = found(paper.D1)
    assert set(relations.r_bin) == {row[1:] for row in paper.R_BIN}
    assert set(relations.r_doc) == {row[1:] for row in paper.R_DOC}


def test_the_witnesses_of_d2_are_tables_d_and_e() -> None:
    relations = found(paper.D2)
    assert set(relations.r_bin) == paper.R_BIN_W
    assert set(relations.r_doc) == paper.R_DOC_W
