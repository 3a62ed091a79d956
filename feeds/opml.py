"""Lists of feeds in OPML 2.0: folders become streams, streams become folders."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from lxml import etree

from feeds.errors import Fault, FeedError
from feeds.feed import Feed, FeedOptions, feed_at
from feeds.tree import MarkupTree, read_tree

__all__ = ["OpmlList", "parse_opml", "render_opml"]

_RUN = re.compile(r"-{2,}")
_DEPTH_MAX = 50


@dataclass(frozen=True, slots=True)
class OpmlList:
    """The feeds of a list, and in words what of it could not be taken."""

    feeds: tuple[Feed, ...]
    problems: tuple[str, ...] = ()


def parse_opml(body: bytes, *, stream: str = "feeds") -> OpmlList:
    """Return the feeds in an OPML document; those outside any folder go to `stream`.

    A folder's name becomes a stream's name, with "-" for what a name cannot hold; a folder in
    a folder gives the inner name.  A feed listed twice is taken once, as it stands first.
    """
    tree = read_tree(body)
    if not isinstance(tree, MarkupTree) or etree.QName(tree.root).localname.lower() != "opml":
        raise FeedError(Fault.NOT_A_FEED, "", "this is not an OPML document")
    feeds: dict[str, Feed] = {}
    problems = list(tree.warnings)
    for outline, folder in _outlines(tree.root, stream, 0):
        try:
            feed = _feed(outline, folder)
        except FeedError as error:
            problems.append(str(error))
        else:
            feeds.setdefault(feed.url, feed)
    return OpmlList(tuple(feeds.values()), tuple(problems))


def _outlines(
    parent: etree._Element, stream: str, depth: int
) -> Iterator[tuple[etree._Element, str]]:
    for child in parent:
        if _attribute(child, "xmlUrl"):
            yield child, _category(child) or stream
        elif depth < _DEPTH_MAX:
            name = _attribute(child, "text") or _attribute(child, "title")
            is_folder = etree.QName(child).localname == "outline"
            inner = stream_name(name, stream) if is_folder else stream
            yield from _outlines(child, inner, depth + 1)


def _category(outline: etree._Element) -> str:
    """OPML 2.0 also writes the folder at the feed: category="/folder/inner,tag"."""
    path = _attribute(outline, "category").split(",")[0].strip("/")
    return stream_name(path.rpartition("/")[2], "")


def stream_name(name: str, default: str) -> str:
    """Return `name` as a stream's name, or `default` where nothing is left of it.

    >>> stream_name("World news & more", "feeds")
    'World-news-more'
    """
    kept = "".join(c if c.isalpha() or c.isdecimal() or c in "_.-" else "-" for c in name)
    found = _RUN.sub("-", kept).strip("-.")
    if not found:
        return default
    return found if found[0].isalpha() or found[0] == "_" else f"s{found}"


def _feed(outline: etree._Element, stream: str) -> Feed:
    title = _attribute(outline, "title") or _attribute(outline, "text")
    return feed_at(_attribute(outline, "xmlUrl"), stream, FeedOptions(title=title))


def _attribute(outline: etree._Element, name: str) -> str:
    """Return an attribute, whatever the case of its name: lists are written by hand, too."""
    value = outline.get(name)
    if value is None:
        folded = {str(key).lower(): str(text) for key, text in outline.attrib.items()}
        value = folded.get(name.lower(), "")
    return value.strip()


def render_opml(feeds: Iterable[Feed], titles: dict[str, str], *, title: str = "Feeds") -> bytes:
    """Return an OPML 2.0 document: one folder for each stream, no secret in it.

    `titles` has the feeds' own titles by URL; a title that the subscriber chose goes before.
    """
    root = etree.Element("opml", version="2.0")
    etree.SubElement(etree.SubElement(root, "head"), "title").text = title
    body = etree.SubElement(root, "body")
    for stream, members in _by_stream(feeds):
        folder = etree.SubElement(body, "outline", text=stream, title=stream)
        for feed in members:
            name = feed.options.title or titles.get(feed.url) or feed.url
            etree.SubElement(folder, "outline", type="rss", text=name, title=name, xmlUrl=feed.url)
    return etree.tostring(root, xml_declaration=True, encoding="utf-8", pretty_print=True)


def _by_stream(feeds: Iterable[Feed]) -> list[tuple[str, Sequence[Feed]]]:
    streams: dict[str, list[Feed]] = {}
    for feed in feeds:
        streams.setdefault(feed.stream, []).append(feed)
    return sorted(streams.items())
