"""The grammar of TextMate, by which VS Code colours, says what Pygments says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import grammars
from generators.xscl_queries import queries
from hypothesis import given, settings
from pygments.token import Token
from support.examples import examples
from support.textmate import scopes
from textmate import SCOPES

from xscl.highlight import XsclLexer

ROOT = Path(__file__).parents[2]
VSCODE = ROOT / "editors" / "vscode"
GRAMMAR = json.loads(grammars.TEXTMATE.read_text())

TEXTS = [
    *(path.read_text() for path in sorted(ROOT.glob("examples/**/*.xscl"))),
    *(path.read_text() for path in sorted(ROOT.glob("tests/cases/**/*.xscl"))),
    "SELECT DISJOINT\n\n  <a b='c'>{x/y[. = '<b>']}\n</a>\nFROM news//item->x (: a (: b\n :) c :)",
    "SELECT <a>it''s &amp; {{ $no</a>; news//b:item->x''[@*:id = 'a\nb''c'] -- 'no'",
    "SELECT (: no tag :) x FROM a//limit->LIMIT LIMIT 3 PER 1.5 days",
    "S->a JOIN {, 1 h} T LOSS 0.1 DELAY learned JOIN {, 1 h} U LOSS 0 DELAY cdf(1 s: 0.5)",
    "SELECT <a>{count(distinct x)}</a> FROM S->x WINDOW 1 h HAVING count(distinct x/b) > 1",
    "S->a[b = $who] FOLLOWED BY {a/x = b/y, $ within'} T//c->b",
]


def coloured(text: str) -> list[tuple[str, str]]:
    """Return each character that is seen, with what Pygments calls it."""
    return [
        (character, f"{SCOPES[kind]}.xscl" if kind in SCOPES else "")
        for _, kind, value in XsclLexer().get_tokens_unprocessed(text)
        for character in value
        if not character.isspace()
    ]


def by_the_grammar(text: str) -> list[tuple[str, str]]:
    """Return the same by the grammar, as an editor reads it."""
    found = scopes(GRAMMAR, text)
    return [each for each in zip(text, found, strict=True) if not each[0].isspace()]


def test_the_grammar_colours_all_examples_as_pygments_does() -> None:
    assert grammars.TEXTMATE.read_text() == grammars.textmate(), "run editors/grammars.py"
    assert len(TEXTS) >= 19
    for text in TEXTS:
        assert by_the_grammar(text) == coloured(text), text


@settings(max_examples=examples(50))
@given(queries())
def test_the_grammar_colours_any_query_as_pygments_does(text: str) -> None:
    assert by_the_grammar(text) == coloured(text)


def test_every_kind_of_pygments_has_a_scope_and_is_in_an_example() -> None:
    kinds = {kind for text in TEXTS for _, kind, _ in XsclLexer().get_tokens_unprocessed(text)}
    assert kinds - {Token.Text, Token.Text.Whitespace} == set(SCOPES)


def test_the_client_of_visual_studio_code_has_the_files_and_settings_that_it_names() -> None:
    package = json.loads((VSCODE / "package.json").read_text())
    given = package["contributes"]
    [language], [grammar] = given["languages"], given["grammars"]
    assert grammar["scopeName"] == GRAMMAR["scopeName"]
    assert (VSCODE / grammar["path"]).samefile(grammars.TEXTMATE)
    json.loads((VSCODE / language["configuration"]).read_text())
    script = (VSCODE / package["main"]).read_text()
    asked = re.findall(r'settings\.get\("(\w+)"\)', script)
    assert {f"xscl.{name}" for name in asked} == set(given["configuration"]["properties"])
    assert {*re.findall(r'require\("([\w-]+)', script)} == {"vscode", *package["dependencies"]}
