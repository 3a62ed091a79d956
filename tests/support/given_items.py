"""Cases of queries with one parameter each over random items."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["case_of", "case_of_all"]


Given = Sequence[object]
"""The values of a parameter, an assignment for each."""


def case_of(text: str, values: Given, seed: int, **settings: Any) -> str:
    """Return what `case_of_all` does of one query, `q`."""
    return case_of_all({"q": (text, values)}, seed, **settings)


def case_of_all(
    queries: Mapping[str, tuple[str, Given]],
    seed: int,
    *,
    documents: int,
    prices: tuple[str, ...],
    items: int = 1,
) -> str:
    """Return a case of queries by name over items with several texts and prices.

    Several `items` of a document stand in an element.
    """
    chance = random.Random(seed)

    def some(name: str, texts: tuple[str, ...]) -> str:
        chosen = chance.choices(texts, k=chance.choice((0, 1, 1, 2)))
        return "".join(f"<{name}>{each}</{name}>" for each in chosen)

    lines = ["lateness 5 s"]
    for name, (text, values) in queries.items():
        spelled = (f'"{each}"' if isinstance(each, str) else f"{each!r}" for each in values)
        lines += [f"query {name}", f"    {text}"]
        lines += [f'parameters {name} {{"x": {each}}}' for each in spelled]

    def item() -> str:
        own = some("p", prices) + some("t", ("a", "A", "a b", "xA", ""))
        own += some("e", ("<t>a</t>", "<t>A</t><p>5</p>", "<p>7</p>", "<t>a</t><t>a b</t><p>4</p>"))
        return f"<i>{own}<l>{chance.randrange(2)}</l></i>"

    for number in range(1, documents + 1):
        xml = item()
        if items > 1:
            xml += "".join(item() for _ in range(chance.randrange(items)))
            xml = f"<f n='{chance.choice('aA')}' xml:lang='{chance.choice('ab')}'>{xml}</f>"
        lines.append(f"document {number} S 00:00:{10 + number}  {xml}")
    return "\n".join([*lines, "----", ""])
