"""What holds of every text: reading and writing agree, and nothing makes the reader fail."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from generators.xscl_queries import commented, mutations, queries
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

import xscl
from xscl.diagnostics import Diagnostic, render_diagnostics
from xscl.lexer import tokenise
from xscl.messages import to_json, to_sarif
from xscl.query import Operator, Query
from xscl.reader import check
from xscl.report import Report

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.xscl"))


TOKENS = ["S//a", *"[]{}(),;=", "->", "AS", "x", "'y'", "AND", "JOIN", "FROM", "<a>", "1", "h"]


def read(text: str) -> list[Diagnostic]:
    """Read a text whatever it is; check that the result is what readers rely on."""
    found, diagnostics = check(text)
    assert found or diagnostics
    for each in diagnostics:
        assert 0 <= each.span.start <= each.span.end <= len(text) + 1
        assert each.message
    render_diagnostics(diagnostics, color=True)
    json.loads(to_json(diagnostics))
    json.loads(to_sarif(diagnostics))
    assert all(isinstance(query, Query) for query in found)
    if not any(each.is_error for each in diagnostics):
        rendered = xscl.render(text)
        assert xscl.render(rendered) == rendered
        assert check(rendered)[0] == found
    return diagnostics


@settings(max_examples=examples(12))
@given(queries())
def test_generated_queries_have_no_errors(text: str) -> None:
    assert [str(each) for each in read(text) if each.is_error] == []


@settings(max_examples=examples(12))
@given(queries())
def test_parsing_what_was_rendered_gives_the_same_query(text: str) -> None:
    [query] = xscl.parse(text, id="q")
    rendered = xscl.render(text)
    assert xscl.parse(rendered, id="q") == [query]
    assert xscl.parse(query.text, id="q") == [query]
    assert rendered == query.text + "\n"
    assert xscl.render(rendered) == rendered


@settings(max_examples=examples(12))
@given(queries(), st.data())
def test_formatting_keeps_comments_and_is_idempotent(text: str, data: st.DataObject) -> None:
    tokens, _ = tokenise(text, Report(text))
    places = [0, *(token.end for token in tokens if token.kind != "parameter")]
    with_comments, comments = data.draw(commented(text, places))
    once = xscl.render(with_comments)
    _, kept = tokenise(once, Report(once))
    assert [each.text for each in kept] == comments
    assert xscl.render(once) == once
    assert xscl.parse(once, id="q") == xscl.parse(text, id="q")


@settings(max_examples=examples(12))
@given(queries())
def test_a_query_is_a_value(text: str) -> None:
    [query] = xscl.parse(text)
    assert pickle.loads(pickle.dumps(query)) == query
    assert hash(query) == hash(xscl.parse(text)[0])


@settings(max_examples=examples(12))
@given(queries())
def test_the_normal_form_keeps_its_promises(text: str) -> None:
    [query] = xscl.parse(text)
    names = [each.name for each in query.variables]
    assert len(set(names)) == len(names)
    assert {v.name for v in query.variables if v.block == 0} == set(query.blocks[0].variables)
    for block in query.blocks:
        assert block.root == block.path.steps[-1].variable
        bound = [name for step in block.path.steps for name in step.variables()]
        assert tuple(bound) == block.variables
    if isinstance(query.root, Operator):
        assert list(query.root.blocks()) == list(range(len(query.blocks)))
    assert all(operator.disjuncts for operator in query.operators())


@settings(max_examples=examples(40))
@given(mutations(queries()))
def test_mutated_queries_give_a_query_or_diagnostics(text: str) -> None:
    read(text)


@settings(max_examples=examples(40))
@given(st.text(alphabet=st.characters(), max_size=80))
def test_random_characters_give_a_query_or_diagnostics(text: str) -> None:
    read(text)


@given(st.binary(max_size=60))
def test_random_bytes_give_a_query_or_diagnostics(data: bytes) -> None:
    read(data.decode("utf-8", errors="replace"))


@given(
    st.lists(
        st.sampled_from(
            [
                "S//a",
                "[",
                "]",
                "{",
                "}",
                "(",
                ")",
                ",",
                ";",
                "->",
                "AS",
                "x",
                "=",
                "'y'",
                "AND",
                "JOIN",
                "FROM",
                "<a>",
                "1",
                "h",
            ]
        )
    )
)
def test_random_tokens_give_a_query_or_diagnostics(tokens: list[str]) -> None:
    read(" ".join(tokens))


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.stem)
def test_the_corpus_gives_queries_or_diagnostics(path: Path) -> None:
    text = path.read_bytes().decode("utf-8", errors="surrogateescape")
    read(text)
    for cut in range(0, len(text), max(1, len(text) // 25)):
        read(text[:cut])
        read(text[cut:])
        read(text[:cut] + text[cut + 1 :])


@settings(max_examples=examples(20))
@given(mutations(st.sampled_from([p.read_bytes().decode(errors="replace") for p in CORPUS])))
def test_mutations_of_the_corpus_give_queries_or_diagnostics(text: str) -> None:
    read(text)
