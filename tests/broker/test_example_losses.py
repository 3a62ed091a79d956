"""The examples of LOSS do what is said beside them."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.verbs import xscl

EXAMPLES = Path(__file__).parents[2] / "examples" / "losses"


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.test")), ids=lambda path: path.stem)
def test_an_example_does_what_is_said_beside_it(path: Path) -> None:
    result = xscl("test", str(path))
    assert result.exit_code == 0, result.output
    assert ", 0 failed" in result.output
