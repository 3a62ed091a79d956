"""Writes what other highlighters know of XSCL, from the rules of `xscl.highlight`.

    python editors/grammars.py

`broker/web/assets/xscl.js` has the rules as data, for the page's editor;
`editors/vscode/syntaxes/xscl.tmLanguage.json` is a grammar of TextMate (`textmate.py`).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from pygments.token import STANDARD_TYPES
from textmate import grammar

from xscl.highlight import XsclLexer

ROOT = Path(__file__).parent.parent
RULES = ROOT / "broker" / "web" / "assets" / "xscl.js"
TEXTMATE = ROOT / "editors" / "vscode" / "syntaxes" / "xscl.tmLanguage.json"

_BARE = frozenset("\"':<>@#&%=,;!~ ")
"""What Unicode mode does not let be escaped."""

HEAD = """\
// How XSCL is highlighted: the rules of xscl/highlight.py.  Made by editors/grammars.py.
// By state: [regular expression, its flags, kinds of its groups or of all of it, states].
// States are entered in turn: a name, or how many are left; "#push" enters the same once more.
"""


def rules() -> dict[str, list[list[Any]]]:
    """Return the rules by state, with regular expressions of JavaScript."""
    return {
        state: [
            [*_expression(match.__self__), _kinds(action), _states(then)]
            for match, action, then in found
        ]
        for state, found in XsclLexer()._tokens.items()
    }


def _expression(compiled: re.Pattern[str]) -> tuple[str, str]:
    source, flags = compiled.pattern, "muy"
    if source.startswith("(?i)"):
        source, flags = source.removeprefix("(?i)"), "imuy"
    source = source.replace(r"[^\W\d]", r"[\p{L}\p{Nl}\p{No}_]")
    source = re.sub(r"\(\?i:([^()]*)\)", lambda found: f"(?:{_any_case(found[1])})", source)
    return _escaped(source), flags


def _any_case(text: str) -> str:
    return re.sub(r"[A-Z]", lambda found: f"[{found[0]}{found[0].lower()}]", text)


def _escaped(source: str) -> str:
    r"""Return an expression as Unicode mode has it: `\w` has all letters, `-` in a set is bare."""
    made, in_set, at = [], False, 0
    while at < len(source):
        part = source[at : at + 2] if source[at] == "\\" else source[at]
        at += len(part)
        if part == r"\w":
            made.append(r"\p{L}\p{N}_" if in_set else r"[\p{L}\p{N}_]")
        elif part[0] == "\\" and part[1] in _BARE:
            made.append(part[1])
        elif part == r"\-" and not in_set:
            made.append("-")
        elif part == "-" and in_set and source[at] == "]":
            made.append(r"\-")
        elif part == "[" and in_set:
            made.append(r"\[")
        elif part == "]" and not in_set:
            made.append(r"\]")
        elif part == "}" and not in_set and not re.search(r"\{\d*,?\d*$", source[: at - 1]):
            made.append(r"\}")
        elif part == "{" and not in_set and not re.match(r"\d+,?\d*\}", source[at:]):
            made.append(r"\{")
        else:
            in_set = part == "[" or (in_set and part != "]")
            made.append(part)
    return "".join(made)


def _kinds(action: Any) -> str | list[str]:
    """Return the class, as Pygments names it in HTML, of what a rule matches, or of its groups."""
    if action in STANDARD_TYPES:
        return STANDARD_TYPES[action]
    (groups,) = (cell.cell_contents for cell in action.__closure__)
    return [STANDARD_TYPES[each] for each in groups]


def _states(then: Any) -> list[str | int]:
    if then is None:
        return []
    if isinstance(then, int):
        return [then]
    return [then] if isinstance(then, str) else list(then)


def script() -> str:
    """Return the rules as a module of JavaScript."""
    states = ",\n".join(
        f"  {json.dumps(name)}: [\n"
        + "".join(f"    {json.dumps(rule, ensure_ascii=False)},\n" for rule in found)
        + "  ]"
        for name, found in rules().items()
    )
    return f"{HEAD}export const RULES = {{\n{states},\n}};\n"


def textmate() -> str:
    """Return the grammar of TextMate."""
    return f"{json.dumps(grammar(), ensure_ascii=False, indent=1)}\n"


if __name__ == "__main__":
    TEXTMATE.write_text(textmate())
    RULES.write_text(script())
