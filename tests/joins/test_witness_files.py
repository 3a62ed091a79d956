"""Witnesses that are written and read again, here or where variables have other numbers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from broker.documents.document import Document
from broker.documents.segment import documents_as_rows
from joins.files.variablenames import AskedNames, VariableNames
from joins.files.witnessfile import WitnessFileError, encode_witnesses, read_header, read_witnesses
from xpath_eval.catalog import EvaluationPlan, Numbering, PatternCatalog
from xpath_eval.prefilters import Missing
from xpath_eval.stage import evaluate_batches
from xpath_eval.witnesses import WITNESS_SCHEMA
from xscl import parse
from xscl.treepattern import tree_pattern

DOCUMENTS = [
    "<i><a>Ann</a><b>1</b></i>",
    "<i><a>Bob</a><a>Cy</a></i>",
    "<broken",
    "<i><b>2</b></i>",
    "<other/>",
    "<i><a>Ann</a><b>3</b></i>",
]


def plan_of(*paths: str, numbering: Numbering | None = None) -> EvaluationPlan:
    """Return a plan that asks for the root, `x`, and all its children, `y`, of each path."""
    catalog = PatternCatalog(numbering or Numbering())
    for path in paths:
        (query,) = parse(path, id="q")
        pattern = tree_pattern(query.blocks[0], {"x", "y"})
        x, y = catalog.add(pattern)
        catalog.want([(x, y), (y, y)], [y])
    return catalog.plan()


def witnesses_of(plan: EvaluationPlan) -> pa.Table:
    documents = [
        Document(n, "S", str(n), n, n, n, n - 1, xml.encode()) for n, xml in enumerate(DOCUMENTS, 1)
    ]
    return pa.Table.from_batches(
        evaluate_batches(plan, [documents_as_rows(documents)]), WITNESS_SCHEMA
    )


def write(path: Path, plan: EvaluationPlan) -> pa.Table:
    witnesses = witnesses_of(plan)
    content = encode_witnesses(witnesses, VariableNames().of(plan), {"by": "a test"})
    path.write_bytes(b"".join(content))
    return witnesses


def numbers_of(plan: EvaluationPlan) -> dict[bytes, int]:
    return {name: number for number, name in VariableNames().of(plan).items()}


def relations(witnesses: pa.Table) -> list[tuple[object, ...]]:
    """Return each document's R_bin and R_doc, whatever its shape is called."""
    shapes: dict[str, list[tuple[int, ...]]] = {}
    found: list[tuple[object, ...]] = []
    for row in witnesses.to_pylist():
        if row["edges"] is not None:
            shapes[row["shape"]] = [tuple(edge.values()) for edge in row["edges"]]
        edges = {
            (v1, v2, row["nodes"][n1], row["nodes"][n2], row["values"][n2])
            for v1, v2, n1, n2 in (shapes[row["shape"]] if row["shape"] else ())
        }
        found.append((row["docid"], row["error"], sorted(edges, key=repr)))
    return found


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    plan = plan_of("S//i->x[./a->y]", "S//i->x[./b->y]")
    written = write(tmp_path / "w", plan)
    read = read_witnesses(tmp_path / "w", numbers_of(plan))
    assert read.to_pylist() == written.to_pylist()
    header = read_header(tmp_path / "w")
    assert (header.first_docid, header.last_docid, header.end_max_us) == (1, 6, 6)
    assert header.facts == {"by": "a test"}


def test_variables_are_read_as_they_are_numbered_here(tmp_path: Path) -> None:
    write(tmp_path / "w", plan_of("S//i->x[./a->y]", "S//i->x[./b->y]"))
    here = plan_of("T//z->x[./a->y]", "S//i->x[./b->y]", "S//i->x[./a->y]")
    read = read_witnesses(tmp_path / "w", numbers_of(here))
    assert relations(read) == relations(witnesses_of(here))


def test_what_nobody_asks_for_any_more_is_left_out(tmp_path: Path) -> None:
    write(tmp_path / "w", plan_of("S//i->x[./a->y]", "S//i->x[./b->y]"))
    here = plan_of("S//i->x[./b->y]")
    read = read_witnesses(tmp_path / "w", numbers_of(here))
    assert relations(read) == relations(witnesses_of(here))


def test_a_shape_that_no_row_spells_out_is_refused() -> None:
    plan = plan_of("S//i->x[./a->y]")
    later = witnesses_of(plan).slice(5)
    with pytest.raises(KeyError, match="no row spells out"):
        encode_witnesses(later, VariableNames().of(plan), {})


@pytest.mark.parametrize("kept", [0, 10, 30, 400, -10, -1])
def test_a_torn_file_is_noticed(tmp_path: Path, kept: int) -> None:
    plan = plan_of("S//i->x[./a->y]")
    write(tmp_path / "w", plan)
    (tmp_path / "w").write_bytes((tmp_path / "w").read_bytes()[:kept])
    with pytest.raises(WitnessFileError):
        read_witnesses(tmp_path / "w", numbers_of(plan))


@pytest.mark.parametrize("place", [0, 9, 40, -20])
def test_a_damaged_file_is_noticed(tmp_path: Path, place: int) -> None:
    plan = plan_of("S//i->x[./a->y]")
    write(tmp_path / "w", plan)
    content = bytearray((tmp_path / "w").read_bytes())
    content[place] ^= 1
    (tmp_path / "w").write_bytes(content)
    with pytest.raises(WitnessFileError):
        read_witnesses(tmp_path / "w", numbers_of(plan))


def test_a_plan_that_asks_for_less_misses_nothing_of_one_that_asked_for_more() -> None:
    more = plan_of("T//z->x[./a->y]", "S//i->x[./a->y]", "S//i->x[./b->y]")
    less = plan_of("S//i->x[./b->y]")
    asked = AskedNames.read(AskedNames.of(more, VariableNames()).written())
    assert asked.id == AskedNames.of(more, VariableNames()).id
    assert asked.missing(less, VariableNames()) == Missing(set(), set(), {})


def test_what_a_plan_asks_for_beyond_another_is_named() -> None:
    more = plan_of("S//i->x[./a->y]", "S//i->x[./b->y]")
    missing = AskedNames.of(plan_of("S//i->x[./a->y]"), VariableNames()).missing(
        more, VariableNames()
    )
    *_, b = more.valued
    assert missing.valued == {b}
    assert {d for _, d in missing.edges} == {b}
