"""What `/metrics` says of itself is what the documentation says."""

from __future__ import annotations

import re
from pathlib import Path

from broker.operations.helptexts import HELP

OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"


def test_each_figure_has_the_words_of_the_documentation() -> None:
    rows = re.findall(
        r"^\| `xscl_(\w+)(?:{[^}]*})?` \| (.*) \|$", OPERATIONS.read_text(), re.MULTILINE
    )
    said = {name: re.sub(r"\[([^\]]*)\]\([^)]*\)|`", r"\1", text) for name, text in rows}
    assert dict(HELP) == said
