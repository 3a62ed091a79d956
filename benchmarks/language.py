"""How fast queries are read: `python benchmarks/language.py`.

Prints queries a second of processor time for each part of the reader, over texts that are all
different (a text that was read before is not read again).  Beside it stand the parsers that were
tried for the job, on the texts that they can take; a library that is not installed is left out.
"""

from __future__ import annotations

import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Sequence

from xscl.layout import render
from xscl.lexer import tokenise
from xscl.parser import parse_file
from xscl.reader import check
from xscl.report import Report

TEMPLATES = (
    "S{n}//book->x1[./author->x2][./title->x3] FOLLOWED BY {{x2=x5 AND x3=x6, 30 days}}"
    " S//blog->x4[./author->x5][./title->x6]",
    "news//item->a FOLLOWED BY {{a/link = b/link AND a/feed != b/feed, {n} min}} news//item->b",
    "news//item[author = 'Ann {n}']",
    "news//item->a[author->who] JOIN {{lower-case(who) = lower-case(b/author) AND who != 'n{n}'"
    " OR host(a/link) = host(b/link), PT{n}H}} news//item->b",
    'SELECT <hit n="{n}" by="{{x5}}">{{x1/title}}{{x4}}</hit> FROM S//book->x1[author->x2]'
    " FOLLOWED BY {{x2 = x5, 30 days}} S//blog->x4[author->x5]",
)
PATHS = (
    "//book{n}[./author][./title = 'x']",
    "//item[author = 'Ann {n}' and not(category)]/link",
    "/rss/channel/item[{n}]",
)
ROUNDS = 5

LARK_GRAMMAR = r"""
    start: block (operator block)*
    operator: ("FOLLOWED" "BY" | "JOIN") "{" [predicate_] "," window "}"
    predicate_: comparison (("AND" | "OR") comparison)*
    window: NUMBER NAME | NAME
    comparison: side OPERATOR side
    side: NAME path? | STRING | NAME "(" side ")"
    block: NAME path
    path: (SLASH step)+
    step: ["@"] NAME ["->" NAME] predicate* | "." ["->" NAME] predicate*
    predicate: "[" step? path? (OPERATOR (STRING | NUMBER))? ["->" NAME] "]"
    SLASH: "//" | "/"
    OPERATOR: "=" | "!=" | "<" | ">"
    NAME: /[A-Za-z_](?:\w|-(?!>))*'*/
    STRING: /'[^']*'/
    NUMBER: /\d+/
    %ignore /\s+/
"""


def texts(templates: Sequence[str], count: int) -> list[str]:
    return [templates[n % len(templates)].format(n=n + 1) for n in range(count)]


def rate(work: Callable[[str], object], inputs: Iterable[list[str]]) -> float:
    """Return the median of texts a second over several rounds of different texts."""
    rates = []
    for batch in inputs:
        started = time.process_time()
        for text in batch:
            work(text)
        rates.append(len(batch) / (time.process_time() - started))
    return statistics.median(rates)


def rounds(templates: Sequence[str], count: int) -> list[list[str]]:
    everything = texts(templates, count * ROUNDS)
    return [everything[at : at + count] for at in range(0, len(everything), count)]


def line(name: str, value: float) -> None:
    print(f"{name:<58}{value:>12,.0f}")


def ours() -> None:
    print(f"{'queries a second':<58}{'':>12}")
    line("tokens", rate(lambda text: tokenise(text, Report(text)), rounds(TEMPLATES, 500)))
    line("+ syntax", rate(lambda text: parse_file(text, Report(text)), rounds(TEMPLATES, 500)))
    line("+ checks and normal form (xscl.parse)", rate(check, rounds(TEMPLATES, 500)))
    line("the same texts again (cached)", rate(check, [texts(TEMPLATES, 500)] * ROUNDS))
    line("fmt", rate(render, rounds(TEMPLATES, 500)))
    for template in TEMPLATES:
        shown = " ".join(template.split()).format(n=1)[:52]
        line(f"  {shown}", rate(check, rounds([f"(: {len(shown)} :) {template}"], 200)))


def alternatives() -> None:
    print(f"\n{'other parsers: syntax only, no spans kept, no recovery':<58}")
    if importlib.util.find_spec("lark"):
        import lark

        parser = lark.Lark(LARK_GRAMMAR, parser="earley" if "--earley" in sys.argv else "lalr")
        line("lark, joins of plain paths", rate(parser.parse, rounds(TEMPLATES[1:2], 200)))
    path = [f"S{each}" for each in PATHS]
    line("ours, paths", rate(lambda text: parse_file(text, Report(text)), rounds(path, 500)))
    import elementpath
    from lxml import etree

    line("elementpath, paths", rate(elementpath.XPath1Parser().parse, rounds(PATHS, 500)))
    line("libxml2 (compiled C), paths", rate(etree.XPath, rounds(PATHS, 500)))


if __name__ == "__main__":
    ours()
    alternatives()
