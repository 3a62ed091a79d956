"""What a regular expression needs a text to contain.

So that an expression is run where it may fit, and not on each text.  It is read as XPath's syntax
has it; where anything is read that this knows nothing of, nothing is said.  What is said of an
expression that `xscl.patterns` refuses does not matter: it fits no text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from xscl.patterns import without_space

__all__ = ["required_literals"]

Literals = frozenset[str]
"""Texts of which one is there; none if nothing is known."""

_UNKNOWN: Literals = frozenset()
_TOKEN = re.compile(
    r"""(?P<group>\((?:\?:)?) | (?P<end>\)) | (?P<bar>\|)
    | (?P<quantifier>[?*+]\?? | \{(?P<least>\d+)(?:,\d*)?\}\??)
    | \\(?P<control>[nrt]) | (?P<escape>\\[^\w\s]) | (?P<plain>[^.^$?*+{()\[\]|\\])
    | [.^$] | \\[dDsSwWiIcC] | \\[pP]\{[^{}]*\} | \[(?:[^\[\]\\] | \\.)+\]""",
    re.VERBOSE | re.DOTALL,
)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}


def required_literals(pattern: str, flags: str = "") -> frozenset[str]:
    r"""Return texts of which each text that an expression fits contains one; none if unknown.

    With flag i they are lower case ASCII, and contained by the text's `str.casefold`.

    >>> sorted(required_literals(r"^(storm|flood)s? in"))
    ['flood', 'storm']
    """
    if "x" in flags:
        pattern = without_space(pattern)
    groups = [_OpenGroup()]
    at = 0
    for token in _TOKEN.finditer(pattern):
        if token.start() != at:
            return _UNKNOWN
        at = token.end()
        group = groups[-1]
        match token.lastgroup:
            case "group":
                groups.append(_OpenGroup())
            case "end":
                groups.pop()
                if not groups:
                    return _UNKNOWN
                groups[-1].atoms.append(group.required())
            case "bar":
                group.end_alternative()
            case "quantifier":
                if not group.atoms:
                    return _UNKNOWN
                if token[0][0] in "?*" or (token["least"] and not int(token["least"])):
                    group.atoms[-1] = _UNKNOWN
                else:
                    group.atoms.append(_UNKNOWN)
            case "plain" | "escape" | "control":
                letter = _CONTROLS[token[0][1]] if token["control"] else token[0][-1]
                if "i" in flags:
                    group.atoms.append(letter.lower() if letter.isascii() else _UNKNOWN)
                else:
                    group.atoms.append(letter)
            case _:
                group.atoms.append(_UNKNOWN)
    return groups[0].required() if at == len(pattern) and len(groups) == 1 else _UNKNOWN


@dataclass(slots=True)
class _OpenGroup:
    """The alternatives of a group, of which the last one is read.

    Its atoms are letters, and what is known of anything else that stands among them.
    """

    alternatives: list[Literals] = field(default_factory=list)
    atoms: list[str | Literals] = field(default_factory=list)

    def end_alternative(self) -> None:
        choices, run = [_UNKNOWN], ""
        for atom in [*self.atoms, _UNKNOWN]:
            if isinstance(atom, str):
                run += atom
                continue
            choices += [frozenset([run]) if run else _UNKNOWN, atom]
            run = ""
        self.alternatives.append(max(choices, key=_selectivity))
        self.atoms.clear()

    def required(self) -> Literals:
        self.end_alternative()
        return _UNKNOWN.union(*self.alternatives) if all(self.alternatives) else _UNKNOWN


def _selectivity(literals: Literals) -> tuple[int, int]:
    """Return a number that is larger for what fewer texts have."""
    return min(map(len, literals), default=0), -len(literals)
