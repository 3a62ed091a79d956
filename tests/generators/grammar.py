"""Reads a grammar in EBNF and makes random texts that it accepts."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Grammar"]

_TOKEN = re.compile(
    r"""\(\*.*?\*\)|\s+|(?P<literal>"[^"]*"|'[^']*')|(?P<regex>/(?:\\.|[^/\n\\])+/(?=\s|\)))
    |(?P<name>\w+)(?P<define>\s*::=)?|(?P<mark>[()?*+|])""",
    re.VERBOSE | re.DOTALL,
)


@dataclass
class Node:
    kind: str  # choice, sequence, repeat, literal, regex, name
    text: str = ""
    children: list[Node] = field(default_factory=list)
    least: int = 1
    most: int = 1


class Grammar:
    """The rules of a grammar.  `samples` has texts for rules that are regular expressions."""

    def __init__(self, text: str, samples: Mapping[str, list[str]]) -> None:
        self.samples = samples
        self.tokens = [
            (found.lastgroup or "", found)
            for found in _TOKEN.finditer(text)
            if found.lastgroup is not None
        ]
        self.rules: dict[str, Node] = {}
        self.place = 0
        while self.place < len(self.tokens):
            name = self.tokens[self.place][1]["name"]
            self.place += 1
            self.rules[name] = self._choice()
        self.costs = self._costs()

    def regular(self) -> set[str]:
        """Return the rules that are one regular expression."""
        return {name for name, node in self.rules.items() if node.kind == "regex"}

    def references(self) -> set[str]:
        """Return the rules that some rule uses."""
        found: set[str] = set()
        stack = list(self.rules.values())
        while stack:
            node = stack.pop()
            stack += node.children
            if node.kind == "name":
                found.add(node.text)
        return found

    # -- reading -------------------------------------------------------------------------------

    def _peek(self) -> tuple[str, re.Match[str]] | None:
        if self.place == len(self.tokens) or self.tokens[self.place][1]["define"]:
            return None
        return self.tokens[self.place]

    def _mark(self, marks: str) -> str:
        token = self._peek()
        if token is None or token[1]["mark"] is None or token[1]["mark"] not in marks:
            return ""
        self.place += 1
        return token[1]["mark"]

    def _choice(self) -> Node:
        branches = [self._sequence()]
        while self._mark("|"):
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Node("choice", children=branches)

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while (part := self._part()) is not None:
            parts.append(part)
        return parts[0] if len(parts) == 1 else Node("sequence", children=parts)

    def _part(self) -> Node | None:
        token = self._peek()
        if token is None:
            return None
        if token[1]["mark"]:
            if not self._mark("("):
                return None
            node = self._choice()
            assert self._mark(")")
        else:
            self.place += 1
            kind = "name" if token[1]["name"] else token[0]
            node = Node(kind, token[1][0] if kind == "name" else token[1][0][1:-1])
        mark = self._mark("?*+")
        if mark:
            least, most = {"?": (0, 1), "*": (0, 3), "+": (1, 3)}[mark]
            return Node("repeat", children=[node], least=least, most=most)
        return node

    # -- making texts --------------------------------------------------------------------------

    def _costs(self) -> dict[str, int]:
        """Return the depth of the shallowest text of each rule."""
        costs = dict.fromkeys(self.rules, 1000)
        for _ in self.rules:
            for name, node in self.rules.items():
                costs[name] = min(costs[name], 1 + self._cost(node, costs))
        return costs

    def _cost(self, node: Node, costs: Mapping[str, int]) -> int:
        if node.kind == "name":
            return costs[node.text]
        if node.kind == "repeat" and node.least == 0:
            return 0
        found = [self._cost(each, costs) for each in node.children]
        if not found:
            return 0
        return min(found) if node.kind == "choice" else max(found)

    def make(self, rule: str, chance: random.Random, depth: int = 25) -> str:
        """Return a random text of a rule; tokens are separated by spaces."""
        return " ".join(self._make(Node("name", rule), chance, depth)).strip()

    def _make(self, node: Node, chance: random.Random, depth: int) -> list[str]:
        if node.kind == "literal":
            return [node.text]
        if node.kind == "name":
            return self._rule(node.text, chance, depth - 1)
        if node.kind == "choice":
            cheap = [n for n in node.children if self._cost(n, self.costs) < depth]
            least = min(node.children, key=lambda n: self._cost(n, self.costs))
            return self._make(chance.choice(cheap or [least]), chance, depth)
        if node.kind == "repeat":
            affordable = self._cost(node.children[0], self.costs) < depth
            most = node.most if affordable else node.least
            times = chance.choice([node.least, chance.randint(node.least, most)])
            return [t for _ in range(times) for t in self._make(node.children[0], chance, depth)]
        return [t for each in node.children for t in self._make(each, chance, depth)]

    def _rule(self, name: str, chance: random.Random, depth: int) -> list[str]:
        if name in self.samples:
            return [chance.choice(self.samples[name])]
        made = self._make(self.rules[name], chance, depth)
        if name == "element":  # white space counts inside
            return ["".join(made)]
        return made
