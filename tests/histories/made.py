"""Random histories of equalities of texts that functions make of several values, or of data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from generators.choosers import RandomChooser

from histories.coming import ComingAndGoing

__all__ = ["made_history"]

STATEMENTS = (
    "S//{n}->a FOLLOWED BY {{{made}, {w}}} S//b->b",
    "S//{n}->a JOIN {{{made}, {w}}} S//{n}->b",
    "S//{n}{asks}->a JOIN {{{made}, {w}}} S//b->b",
    "S//{n}->a JOIN {{{made} OR a/k = b/k, {w}}} S//b->b",
    "S//{n}->a JOIN {{{made} OR {other}, {w}}} S//b->b",
    "S//{n}->a JOIN {{{made} AND a/p < b/p, {w}}} S//b->b",
    "S//a->a JOIN {{{made}, {w}}} (S//b->b | S//c->b)",
    "S//a->a JOIN S//b->b WITHIN {w} WHERE {made}",
    "(S//a->a JOIN {{, 6 s}} S//c->d) FOLLOWED BY {{concat(d/k, {one}) = {two}, {w}}} S//b->b",
    "(S//a->a JOIN {{{made}, {w}}} S//b->b) FOLLOWED BY {{b/k = d/k, 9 s}} S//c->d",
    "(S//a->a JOIN {{{made}, {w}}} S//b->b) NEXT {{b/k = d/k, 9 s}} S//c->d GRACE 1 s",
    "S//c->d FOLLOWED BY {{, 9 s}} (S//a->a JOIN {{{made}, {w}}} S//b->b)",
    "(S//a->a NOT FOLLOWED BY {{, 2 s}} S//c) JOIN {{{made}, {w}}} S//b->b GRACE 1 s",
    "(S//a->a JOIN {{{made}, {w}}} S//b->b) FOLLOWED BY {{b/k = d/k, 9 s}} S//c->d+ GRACE 1 s",
    "S//{n}->a JOIN {{{made}, {w}}} S//b->b LIMIT 1 PER 4 s GRACE 1 s",
    "S//a->a FOLLOWED BY {{{made}, {w}}} S//b->b UNLESS {{d/k = b/k}} S//c->d GRACE 1 s",
)

FUNCTIONS = (
    "concat({0}, {given})",
    "concat({given}, {0})",
    "concat({0}, {1})",
    "concat({0}, ' ', {1}, {given})",
    "replace({0}, {given}, 'q')",
    "substring-before({0}, {given})",
    "translate({0}, {given}, '')",
    "normalize-space(concat({0}, {1}))",
    "tokenize({0}, {given})",
    "tokenize(concat({0}, {1}), {given})",
    "{0}",
    "{0}",
)

KEYS = ("p", "q", "pq", "pp", "", "qp")


def made_history(seed: int) -> str:
    """Return the history of a seed as text."""
    return _Made(RandomChooser(seed)).text()


class _Made(ComingAndGoing):
    def statement(self) -> str:
        one, two, three, four = (self._text(variable) for variable in "abab")
        return self.choose.choice(STATEMENTS).format(
            n=self.choose.choice("ab*"),
            asks=self.choose.choice(("[k = $x]", "[not(k = $x)]", "[contains(k, $x)]", "[p > 1]")),
            w=self.choose.choice(("5 s", "9 s", "$w")),
            made=f"{one} = {two}",
            other=f"{three} = {four}",
            one=one,
            two=two,
        )

    def _text(self, variable: str) -> str:
        given = self.choose.choice(("$x", "$y", "'p'"))
        paths = [f"{variable}/{self.choose.choice('kkl')}" for _ in range(2)]
        return self.choose.choice(FUNCTIONS).format(*paths, given=given)

    def values(self, statement: str) -> Mapping[str, Any]:
        keys = {
            name: self.choose.choice(("p", "q", "pq")) for name in "xy" if f"${name}" in statement
        }
        if "$w" not in statement:
            return keys
        return {**keys, "w": self.choose.choice(("2 s", "6 s", "40 s"))}

    def document(self) -> str:
        name, p = self.choose.choice("aabbc"), self.choose.choice("12")
        paths = ["k"] * self.choose.choice((1, 1, 2)) + ["l"] * self.choose.choice((0, 1, 1, 2))
        values = "".join(f"<{path}>{self.choose.choice(KEYS)}</{path}>" for path in paths)
        return f"<{name}><p>{p}</p>{values}</{name}>"
