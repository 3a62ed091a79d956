"""The plan of RUMOR: which m-rules make one of several operators, and what they change."""

from __future__ import annotations

import io
import json
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import xscl
from broker.cli import main
from broker.explain.plan import ABSENT, plan_of
from broker.matching.mrules import SWITCHED, MRule
from broker.pipeline.lookback.replay import LATENESS_US, replay

FIRST = "S//i[kind = 'a']->x[t->t] FOLLOWED BY {t = u, 1 h} S//i->y[t->u]"
OTHER_STRING = "S//i[kind = 'b']->x[t->t] FOLLOWED BY {t = u, 1 h} S//i->y[t->u]"
OTHER_WINDOW = "S//i[kind = 'a']->x[t->t] FOLLOWED BY {t = u, 2 h} S//i->y[t->u]"
OTHER_STREAM = "S//i[kind = 'a']->x[t->t] FOLLOWED BY {t = u, 1 h} F//j->y[t->u]"
NESTED = (
    "(S//i->x[t->t] FOLLOWED BY {t = u, 1 h} S//i->y[t->u]) FOLLOWED BY {u = w, 1 h} F//j[t->w]"
)
NESTED_WIDER = NESTED.replace("1 h", "2 h", 1)
DECIDED = "S//i->x NEXT {x/t = y/t, 1 h} F//j->y GRACE 0 s"
REPEATED = "S//i->x FOLLOWED BY {x/t = y/t, 3 h} S//i->y+ {y/t = prev(y/t)} MATCH NEXT GRACE 0 s"
WITHOUT_VALUES = "S//i FOLLOWED BY {, 30 min} S//i"
NOR_VALUES = "S//i FOLLOWED BY {, 30 min} F//j"
ALL = (
    *(FIRST, FIRST, OTHER_STRING, OTHER_WINDOW, OTHER_STREAM, NESTED, NESTED_WIDER),
    *(DECIDED, DECIDED, REPEATED, REPEATED, WITHOUT_VALUES, NOR_VALUES),
)


def queries(texts: Sequence[str]) -> list[xscl.Query]:
    return [xscl.parse(text, id=f"q{i}")[0] for i, text in enumerate(texts)]


def fired(*texts: str, without: Collection[MRule] = ()) -> set[MRule]:
    """Return the rules that make m-ops other than passes over documents."""
    plan = plan_of(queries(texts), lateness_us=LATENESS_US, without=without)
    return {each.rule for op in plan.ops if op.kind != "patterns" for each in op.fired}


@pytest.mark.parametrize(
    ("rule", "texts"),
    [
        (MRule.S_SIGMA, (FIRST, OTHER_STRING)),
        (MRule.S_JOIN, (FIRST, OTHER_WINDOW)),
        (MRule.S_SEQ, (FIRST, FIRST)),
        (MRule.S_SEQ, (DECIDED, DECIDED)),
        (MRule.S_MU, (REPEATED, REPEATED)),
        (MRule.C_JOIN, (FIRST, OTHER_STREAM)),
        (MRule.C_SEQ, (NESTED, NESTED_WIDER)),
        (MRule.C_SIGMA, (NESTED, NESTED_WIDER)),
        (MRule.DEFAULT, (WITHOUT_VALUES, NOR_VALUES)),
    ],
)
def test_a_rule_fires_for_operators_that_differ_as_it_allows(
    rule: MRule, texts: tuple[str, str]
) -> None:
    assert rule in fired(*texts)
    assert rule not in fired(texts[0])


@pytest.mark.parametrize(
    ("texts", "without", "told"),
    [
        ((FIRST, OTHER_STRING), (), "2 choices of strings"),
        ((f"{FIRST} WITHIN 5 min", f"{FIRST} WITHIN 6 min"), (), "2 choices of bounds"),
        ((f"{FIRST} WHERE y/p < 5", f"{FIRST} WHERE y/p < 6"), (), "2 choices of bounds"),
        ((FIRST, OTHER_WINDOW), (), "the widest of 2 windows is joined"),
        ((NESTED, NESTED_WIDER), (), "in one stream, of the widest of 2 windows"),
        # Without what is decided for several each is registered at a document of its own.
        ((FIRST, FIRST), (MRule.S_MU,), "2 registration points"),
    ],
)
def test_a_plan_names_what_is_shared(
    texts: tuple[str, str], without: tuple[MRule, ...], told: str
) -> None:
    plan = plan_of(queries(texts), lateness_us=LATENESS_US, without=without)
    assert any(told in fired.saves for op in plan.ops for fired in op.fired)


def test_chains_that_read_all_documents_of_their_streams_have_a_plan() -> None:
    strategies = ("STRICT", "PARTITION", "NEXT", "ANY")
    texts = [REPEATED.replace("MATCH NEXT", f"SAME (//k) MATCH {each}") for each in strategies]
    found = plan_of(queries(texts), lateness_us=LATENESS_US)
    assert {op.reads for op in found.ops} == {("S",)}


def test_every_rule_fires_or_says_why_it_never_does() -> None:
    assert fired(*ALL) | set(ABSENT) == set(MRule)


@pytest.mark.parametrize("rule", SWITCHED)
def test_a_rule_that_is_left_out_does_not_fire(rule: MRule) -> None:
    assert rule in fired(*ALL)
    assert rule not in fired(*ALL, without=[rule])


def document_lines() -> list[dict[str, str]]:
    """Return documents of two streams, ten minutes apart, of three titles and two kinds."""
    lines = []
    for n in range(24):
        stream, name = ("F", "j") if n % 4 == 3 else ("S", "i")
        xml = f"<{name}><kind>{'ab'[n % 2]}</kind><t>{n % 3}</t></{name}>"
        time = f"2026-01-01T{n // 6:02}:{n % 6}0:00Z"
        lines.append({"stream": stream, "time": time, "xml": xml})
    return lines


def replayed(path: Path, without: Collection[MRule]) -> list[str]:
    out = io.StringIO()
    replay(queries(ALL), [path], out, spark=False, without=without)
    return out.getvalue().splitlines()


def test_rules_that_are_left_out_agree_with_all_of_them(tmp_path: Path) -> None:
    path = tmp_path / "documents.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in document_lines()))
    whole = replayed(path, ())
    assert len({json.loads(line)["query"] for line in whole}) == len(ALL)
    for without in [*((rule,) for rule in SWITCHED), SWITCHED]:
        assert replayed(path, without) == whole, without


def test_the_plan_is_printed_as_text_json_and_dot(tmp_path: Path) -> None:
    for number, text in enumerate((FIRST, OTHER_WINDOW)):
        (tmp_path / f"q{number}.xscl").write_text(text)
    asked = ["explain", str(tmp_path), "--plan"]
    shown = CliRunner().invoke(main, asked).stdout
    assert "join on S: q0, q1\n   s_⋈     the widest of 2 windows is joined" in shown
    data = json.loads(CliRunner().invoke(main, [*asked, "--format", "json"]).stdout)
    assert [op["kind"] for op in data["m_ops"]] == ["patterns", "join"]
    assert "s_join" in [each["rule"] for each in data["m_ops"][1]["rules"]]
    dot = CliRunner().invoke(main, [*asked, "--format", "dot"]).stdout
    assert dot.startswith("digraph {")
    assert 'label="join\\ns_⋈' in dot
