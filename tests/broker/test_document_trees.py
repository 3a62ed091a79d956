"""A document behind matches: its text, as match lines have it."""

from __future__ import annotations

import json

import pytest

from broker.matching.rendering.trees import DocumentTree

TEXTS = ["", "plain", "é€𝄞", "\x7f\x80\u2028", "a\\b", "\t", "a\nb", 'say "so"', "&amp;", "&#13;"]


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
@pytest.mark.parametrize("shape", ["<a>%s</a>", '<a b="c">%s</a>', "<a b='c'>%s</a>"])
def test_a_text_is_spelled_as_json_spells_it(shape: str, text: str) -> None:
    tree = DocumentTree((shape % text).encode())
    assert f'"{tree.spelled}"' == json.dumps(tree.text, ensure_ascii=False)
    assert tree.is_verbatim is (shape != "<a b='c'>%s</a>" and text not in ("", "&#13;"))
