"""Conditions of blocks with numbers and words that are written out, and documents for them."""

from __future__ import annotations

import random

from broker.documents.document import FIRST_WATERMARK_US, Document
from support.budget_runs import MINUTE_US

NUMBERS = ("0", "-0.0", "1", "2.5", "3", "4", "7", "'3'", "'x'", "1000")
WORDS = ("a", "b", "ab", "ba", "", "c", "abc", "'")
EXPRESSIONS = ("a", "^A", "b$", "[bc]+", "a|c", "(a|B)c?", ".", "^$", "b.")
CONDITIONS = (
    "[p < %n]",
    "[p <= %n]",
    "[p > %n]",
    "[p >= %n]",
    "[p = %m]",
    "[w != %w]",
    "[contains(w, %w)]",
    "[starts-with(w, %w)]",
    "[ends-with(w, %w)]",
    "[matches(w, %e)]",
    "[matches(w, %e, 'i')][p > %n]",
    "[p < %n][contains(w, %w)]",
    "[p > %n and p < %n]",
    "[p < %n or contains(w, %w)]",
    "[w = %w or contains(w, %w)]",
    "[contains(w, %w) or w = %w or starts-with(k, %w)]",
    "[ends-with(upper-case(w), %w) or matches(upper-case(w), %e)]",
    "[lower-case(w) = %w]",
    "[not(contains(w, %w))]",
    "[p < %n][not(w = %w or ends-with(w, %w))]",
    "[contains(w, %w) and not(matches(upper-case(w), %e))]",
    "[string-length(w) != %m]",
    "[not(p < %n)]",
    "[p < %n][2]",
    "[2][p < %n]",
    "[@n < %n]",
    "[c/p < %n]",
    "[c[p < %n]/w != %w]",
    "[.//p > %n]",
    "[p->v < %n]",
    "[count(p) < %n]",
    "[%n >= sum(p)]",
    "[number(p) != %n]",
    "[p * 2 - 1 <= %n]",
    "[number(p) = %m or count(w) = %m]",
    "[not(sum(p) >= %n)]",
    "[not(number(p) = %m)]",
    "[@n[. * 2 > %n]]",
    "[c[contains(w, %w)]/p]",
    "[c[p < %n][w = 'c']]",
    "[c[count(p) > %n]]",
    "[p[. != %m]]",
    "[c[p = %m and contains(w, %w)]]",
    "[.//w[. = %w]]",
    "[c[p < %n][1]/w]",
    "[not(c[contains(w, %w)])]",
    "[c[contains(w, %w) or p[. = %w]]]",
    "[p != %m]",
    "[. != %w]",
    "[p > @n * %m]",
    "[p <= %m - @n]",
    "[p * %m = @n + count(w)]",
    "[%m div @n >= p]",
    "[sum(p) - %m * @n < (count(w) - 1) div k]",
    "[%m div @n <= count(w) div k]",
    "[string(w) = %w]",
    "[concat(w, k) != %w]",
    "[contains(concat(w, p), %w)]",
    "[not(string(p) = %m)]",
    "[w = concat(%w, 'b')]",
    "[p < %n or substring(w, 2) = %w]",
    "[c[starts-with(concat(w, p), %w)]/p]",
    "[boolean(p != %m)]",
    "[w = %w and p < %n or contains(w, %w)]",
    "[not(w = %w and p > %n)]",
    "[not(p < %n) or w = %w]",
    "[p and not(contains(w, %w)) or p = %m]",
    "[w != %w and not(@n > %n or k) or count(w) > %n]",
    "[p > @n * %m and w = %w or p < %n]",
    "[p != @n * %m]",
    "[p mod %m >= count(w) mod %m]",
    "[not(@n * 2 != p * %m)]",
    "[sum(p) div (@n - %m) > count(w) * %m - p]",
)
"""With numbers, numbers that are no strings, and words."""


def condition(chance: random.Random) -> str:
    """Return a condition with constants."""
    text = chance.choice(CONDITIONS)
    signs = {"%n": NUMBERS, "%m": NUMBERS[:7], "%w": WORDS, "%e": EXPRESSIONS}
    for sign, constants in signs.items():
        while sign in text:
            constant = chance.choice(constants)
            text = text.replace(sign, f'"{constant}"' if sign in ("%w", "%e") else constant, 1)
    return text


def item(chance: random.Random) -> str:
    """Return an item of several prices, words and keys, some of which are no numbers."""
    prices = [chance.choice(["0", "1", " 2 ", "3", "3.0", "5", "x", "", "NaN", "INF", "-1e0"])]
    prices *= chance.choice([0, 1, 1, 1])
    prices += [str(chance.randrange(6))] * chance.randrange(2)
    inner = "".join(f"<p>{each}</p>" for each in prices)
    words = "".join(
        f"<w>{chance.choice(['a', 'b', 'abc', 'cab', ''])}</w>" for _ in "ab"[: chance.randrange(3)]
    )
    deeper = f"<c>{inner}<w>c</w></c>" if chance.random() < 0.2 else ""
    name, key = chance.choice("iiij"), chance.randrange(3)
    return f"<{name} n='{chance.randrange(5)}'><k>{key}</k>{inner}{words}{deeper}</{name}>"


def documents(seed: int, count: int = 40) -> list[Document]:
    """Return documents of some items, some of them late."""
    chance, watermark_us, found = random.Random(seed), FIRST_WATERMARK_US, []
    for docid in range(1, count + 1):
        items = "".join(item(chance) for _ in range(chance.choice([1, 1, 1, 2, 4])))
        xml = f"<r><w>{chance.choice('aq')}</w>{items}</r>"
        time_us = (docid + chance.randint(-2, 2)) * MINUTE_US
        times = (time_us, time_us, time_us, watermark_us)
        found.append(Document(docid, "S", str(docid), *times, xml.encode()))
        watermark_us = max(watermark_us, time_us)
    return found
