"""Cases of a query with one parameter over random items."""

from __future__ import annotations

import random
from collections.abc import Sequence

__all__ = ["case_of"]


def case_of(
    text: str, values: Sequence[object], seed: int, *, documents: int, prices: tuple[str, ...]
) -> str:
    """Return a case with an assignment for each value, over items with several texts and prices."""
    chance = random.Random(seed)

    def some(name: str, texts: tuple[str, ...]) -> str:
        chosen = chance.choices(texts, k=chance.choice((0, 1, 1, 2)))
        return "".join(f"<{name}>{each}</{name}>" for each in chosen)

    lines = ["lateness 5 s", "query q", f"    {text}"]
    spelled = (f'"{each}"' if isinstance(each, str) else f"{each!r}" for each in values)
    lines += [f'parameters q {{"x": {each}}}' for each in spelled]
    for number in range(1, documents + 1):
        own = some("p", prices) + some("t", ("a", "A", "a b", "xA", ""))
        own += some("e", ("<t>a</t>", "<t>A</t><p>5</p>", "<p>7</p>", "<t>a</t><t>a b</t><p>4</p>"))
        item = f"<i>{own}<l>{chance.randrange(2)}</l></i>"
        lines.append(f"document {number} S 00:00:{10 + number}  {item}")
    return "\n".join([*lines, "----", ""])
