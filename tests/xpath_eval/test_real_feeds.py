"""On feed files as they were served, bindings are those of the oracle."""

from __future__ import annotations

import pytest
from oracle.paths import bindings
from oracle.tree import is_well_formed, parse_tree
from support.recorded_data import feed_files
from support.registered import register

import xscl
from xpath_eval.parsing import XmlError

PATTERNS = """
    S//item->i[title->t][contains(title, 'a')];
    S//item[.//category]->i[link->l][2];
    S/rss/channel/*:link->l;
    S//atom:entry->e[atom:author/atom:name->n][atom:link/@href->h];
    S//atom:entry[atom:link[@rel = 'alternate']/@href]->e;
    S//*[@isPermaLink = 'true']->g;
    S//item[not(author)][position() < 3]->i[pubDate->d];
    S//channel[item[media:content]]/item/dc:creator->c;
    S//item[string-length(title) > 40 or starts-with(link, 'https')]->i;
"""


def _documents() -> list[tuple[str, bytes]]:
    documents = [(path.name, path.read_bytes()) for path in feed_files()]
    return [(name, xml) for name, xml in documents if len(xml) < 60_000][:15]


def test_bindings_on_real_feeds_are_right() -> None:
    blocks = [query.blocks[0] for query in xscl.parse(PATTERNS)]
    registered, evaluator = register(blocks)
    found = 0
    for name, xml in _documents():
        if not is_well_formed(xml):
            with pytest.raises(XmlError):
                evaluator.evaluate("S", xml)
            continue
        witnesses = evaluator.evaluate("S", xml)
        tree = parse_tree(xml)
        for block, one in zip(blocks, registered, strict=True):
            expected = {
                frozenset((v, node.number) for v, node in assignment if v in block.variables)
                for assignment in bindings(block.path, tree, {})
            }
            assert one.bindings(witnesses) == expected, (name, block)
            found += len(expected)
    assert found > 100
