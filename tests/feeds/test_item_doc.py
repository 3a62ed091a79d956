"""docs/item.md says what the code does: its order of elements, its table, its example."""

from __future__ import annotations

import re
from pathlib import Path

from lxml import etree

from feeds import Enclosure, FeedItem, item_document
from feeds.atom import ATOM_ENTRY
from feeds.namespaces import CORE_ATOM, CORE_RSS, PREFIXES
from feeds.rss import RSS

DOC = (Path(__file__).parents[2] / "docs" / "item.md").read_text()
FULL = FeedItem(
    id="1",
    title="t",
    links=("https://example.org/1",),
    authors=("a",),
    categories=("c", "d"),
    published_us=1,
    updated_us=2,
    summary="s",
    content="x",
    enclosures=(Enclosure("https://example.org/a.mp3", "audio/mpeg", "9"),),
    language="en",
    comments="https://example.org/1#c",
    extensions=(b'<s:c xmlns:s="urn:s">3</s:c>',),
    mentions=("https://example.org/2",),
)


def rows(heading: str) -> list[list[str]]:
    """The cells of the table under a heading."""
    section = DOC.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("| `")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_the_elements_come_in_the_documented_order():
    root = etree.fromstring(item_document(FULL, feed="https://example.org/f", source="S"))
    written = list(dict.fromkeys(etree.QName(child).localname for child in root))
    documented = [cells[0].strip("`") for cells in rows("The elements")]
    assert written == [*documented, "c"]


def test_the_example_is_a_document_of_this_kind():
    example = re.search(r"```xml\n(.*?)```", DOC, re.DOTALL)
    assert example is not None
    root = etree.fromstring(example[1])
    order = [cells[0].strip("`") for cells in rows("The elements")]
    names = [child.tag for child in root if "}" not in child.tag]
    assert names == sorted(names, key=order.index)
    assert set(names) == set(order)


def named(cell: str) -> set[str]:
    """The elements that a cell of the table names, without attributes."""
    return set(re.findall(r"`([\w:]+)(?:/@\w+)?`", cell))


def spelled(tags: object, core: tuple[str, ...]) -> set[str]:
    """Expanded names as the table writes them, each core element once."""
    prefixes = {uri: prefix for prefix, uri in PREFIXES.items() if uri}
    names = set()
    for tag in tags:  # type: ignore[attr-defined]
        uri, _, local = tag.rpartition("}")
        names.add(local if uri[1:] in core else f"{prefixes[uri[1:]]}:{local}")
    return names


def test_the_table_names_each_element_that_the_code_reads():
    table = rows("What becomes what")
    rss = set().union(*(named(cells[1]) for cells in table))
    atom = set().union(*(named(cells[2]) for cells in table))
    implied = {"media:group", "dc:creator"}
    assert spelled(RSS, CORE_RSS) - implied == rss - implied - {"language"}
    assert spelled(ATOM_ENTRY, CORE_ATOM) - implied == atom - implied
