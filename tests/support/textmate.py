"""Reads a text by a grammar of TextMate, as editors do: line by line, the first rule that fits.

Of the rules that fit farthest left, the end of what is open goes before its patterns, and these in
their order.  It knows what grammars of `editors/textmate.py` have: `match`, `begin` and `end`,
scopes of a whole rule or of its groups, `include` of the repository.  Editors read expressions by
Oniguruma; those of this grammar mean the same to Python.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Any

__all__ = ["scopes"]

Rule = dict[str, Any]

compiled = functools.cache(re.compile)


def scopes(grammar: Rule, text: str) -> list[str]:
    """Return the innermost scope of each character, "" of those that have none."""
    found = [""] * len(text)
    open_rules: list[Rule] = [{"patterns": grammar["patterns"]}]
    start = 0
    for line in re.split("(?<=\n)", text):
        _read(grammar, line, open_rules, found, start)
        start += len(line)
    return found


def _read(grammar: Rule, line: str, open_rules: list[Rule], found: list[str], start: int) -> None:
    at = 0
    while at < len(line):
        rule = open_rules[-1]
        candidates = [("end", rule)] if "end" in rule else []
        candidates += [
            ("begin" if "begin" in each else "match", each)
            for each in _flat(grammar, rule["patterns"])
        ]
        fits = [
            (match.start(), place, kind, each, match)
            for place, (kind, each) in enumerate(candidates)
            if (match := compiled(each[kind]).search(line, at))
        ]
        inside = rule.get("name", "")
        if not fits:
            found[start + at : start + len(line)] = [inside] * (len(line) - at)
            return
        _, _, kind, each, match = min(fits, key=lambda fit: fit[:2])
        found[start + at : start + match.start()] = [inside] * (match.start() - at)
        whole = each.get("name", "" if kind == "end" else inside)
        found[start + match.start() : start + match.end()] = [whole] * len(match[0])
        for group, captured in _captures(each, kind).items():
            first, last = match.span(int(group))
            found[start + first : start + last] = [captured["name"]] * (last - first)
        if kind == "begin":
            open_rules.append(each)
        elif kind == "end":
            open_rules.pop()
        at = match.end()


def _captures(rule: Rule, kind: str) -> dict[str, Rule]:
    return rule.get("captures" if kind == "match" else f"{kind}Captures", {})


def _flat(grammar: Rule, patterns: list[Rule]) -> Iterator[Rule]:
    for each in patterns:
        if "include" in each:
            named = grammar["repository"][each["include"].removeprefix("#")]
            yield from _flat(grammar, named["patterns"])
        else:
            yield each
