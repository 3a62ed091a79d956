"""Workloads of stage 1: documents, and queries on them."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa

import xscl
from xpath_eval.catalog import PatternCatalog
from xpath_eval.witnesses import DOCUMENT_SCHEMA
from xscl.treepattern import tree_pattern

__all__ = [
    "DATA",
    "FORMS",
    "auction_paths",
    "auction_site",
    "batch_of",
    "nitf_catalog",
    "nitf_documents",
    "nitf_paths",
    "real_items",
    "register",
    "rss_items",
    "word_query",
]

DATA = Path(os.environ.get("XSCL_SHARED", Path(__file__).parents[2] / "shared")) / "data"
WORDS = [f"word{i}" for i in range(5_000)]
Form = Callable[[random.Random, int], str]


def rss_items(count: int) -> list[bytes]:
    """Return items of 8 to 20 elements, like those of RSS feeds."""
    random_ = random.Random(1)
    names = ("title", "link", "guid", "pubDate", "description", "author", "comments")

    def item() -> bytes:
        content = "".join(f"<{n}>{' '.join(random_.choices(WORDS, k=6))}</{n}>" for n in names)
        categories = random_.randint(0, 12)
        content += "".join(
            f"<category>{random_.choice(WORDS)}</category>" for _ in range(categories)
        )
        return f"<item>{content}</item>".encode()

    return [item() for _ in range(count)]


def register(catalog: PatternCatalog, text: str) -> None:
    """Ask for all variables of a query's first block, and for the edges from its root to them."""
    (query,) = xscl.parse(text)
    block = query.blocks[0]
    pattern = tree_pattern(block, block.variables)
    variables = catalog.add(pattern)
    root = variables[pattern.node_of(block.root)]
    others = [v for v in variables if v > root]
    catalog.want([(root, v) for v in others] or [(root, root)], others)


def mixed_query(random_: random.Random, number: int) -> str:
    """Return a query unlike any other: by what it binds, by a constant, or by both."""
    fields = ("title", "link", "guid", "pubDate", "author", "category")
    first, second = random_.sample(fields, 2)
    return random_.choice(
        (
            f"S//item[{first} = '{WORDS[number % 5000]} {number}']->x[{second}->a]",
            f"S/item[author = 'author {number}']->x[link->l][{first}->a]",
            f"S//item->x[{first}->a][{second}->b][guid = '{number}']",
        )
    )


def word_query(random_: random.Random, number: int) -> str:
    return f"S//item[contains(title, '{random_.choice(WORDS)} {WORDS[number % 5000]}')]->x"


def number_query(random_: random.Random, number: int) -> str:
    return f"S//item[price < {number}][.//category]->x"


FORMS: dict[str, Form] = {"constants": mixed_query, "contains": word_query, "<": number_query}


def batch_of(documents: Sequence[bytes]) -> pa.RecordBatch:
    rows = [
        {
            "docid": i, "depth": 0, "match_id": "", "stream": "S", "key": str(i),
            "start_us": i, "end_us": i, "watermark_us": 0, "xml": xml,
        }
        for i, xml in enumerate(documents, 1)
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(rows, DOCUMENT_SCHEMA)


def real_items(count: int) -> list[bytes]:
    path = DATA / "news-2026.docs.jsonl.gz"
    if not path.exists():
        return []
    with gzip.open(path, "rt") as lines:
        return [json.loads(line)["xml"].encode() for line in itertools.islice(lines, count)]


def nitf_documents() -> list[bytes]:
    path = DATA / "nitf" / "nitf.docs.jsonl.gz"
    if not path.exists():
        return []
    with gzip.open(path, "rt") as lines:
        return [json.loads(line)["xml"].encode() for line in lines]


def nitf_paths(kind: str, count: int) -> list[str]:
    """Return so many different paths of a kind: recorded ones, then made of parts of them."""
    with gzip.open(DATA / "nitf" / f"paths-{kind}.txt.gz", "rt") as lines:
        recorded = [line.strip() for line in lines]
    random_, paths = random.Random(7), dict.fromkeys(recorded[:count])
    steps = [re.findall(r"//?[^/\[]+(?:\[[^\]]*\])*", path) for path in recorded]
    while len(paths) < count:
        begin, end = random_.choice(steps), random_.choice(steps)
        kept, left_out = random_.randint(1, len(begin)), random_.randint(1, len(end))
        paths.setdefault("".join(begin[:kept] + end[left_out:]))
    return list(paths)


def nitf_catalog(kind: str, count: int) -> tuple[PatternCatalog, list[str], list[int]]:
    """Return the first paths of a kind, registered, and the variable that each asks for."""
    paths = nitf_paths(kind, count)
    catalog, roots = PatternCatalog(), []
    for path in paths:
        (query,) = xscl.parse(f"S{path}")
        block = query.blocks[0]
        pattern = tree_pattern(block, ())
        roots.append(catalog.add(pattern)[pattern.node_of(block.root)])
        catalog.want([(roots[-1], roots[-1])], ())
    return catalog, paths, roots


def auction_site(random_: random.Random, octets: int) -> bytes:
    """Return a document in the manner of XMark: a site of regions, items, people and auctions."""

    def text() -> str:
        words = " ".join(random_.choices(WORDS, k=random_.randint(3, 12)))
        keyword, bold = random_.choice(WORDS), random_.choice(WORDS)
        return f"{words} <keyword>{keyword}</keyword> <bold>{bold}</bold>"

    def item(i: int) -> str:
        mails = "".join(
            f"<mail><from>{random_.choice(WORDS)}</from><date>{i}</date><text>{text()}</text></mail>"
            for _ in range(random_.randint(0, 3))
        )
        listed = "".join(
            f"<listitem><text>{text()}</text></listitem>" for _ in range(random_.randint(1, 4))
        )
        return (
            f"<item id='i{i}'><location>x</location><name>{random_.choice(WORDS)}</name>"
            f"<description><parlist>{listed}</parlist></description><mailbox>{mails}</mailbox></item>"
        )

    regions: dict[str, list[str]] = {name: [] for name in ("africa", "asia", "europe", "namerica")}
    size = 0
    while size < octets:
        regions[random_.choice(list(regions))].append(one := item(size))
        size += len(one)
    body = "".join(f"<{name}>{''.join(items)}</{name}>" for name, items in regions.items())
    return f"<site><regions>{body}</regions></site>".encode()


def auction_paths(random_: random.Random, count: int) -> list[str]:
    """Return random paths of depth 2 to 6 with `*` and `//` on such a site."""
    names = (
        "site", "regions", "africa", "asia", "europe", "item", "location", "name", "description",
        "parlist", "listitem", "text", "keyword", "bold", "mailbox", "mail", "from", "date",
    )  # fmt: skip
    return [
        "".join(
            random_.choice(("/", "/", "/", "//")) + random_.choice((*names, "*", "*"))
            for _ in range(random_.randint(2, 6))
        )
        for _ in range(count)
    ]
