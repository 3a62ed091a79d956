"""An Atom feed of a subscription's matches, or of the documents that a query publishes.

An entry reads well in a feed reader and can be joined again by another broker: it has title,
links, authors, the joined values as categories, and HTML for people.  The output itself stands
in `xscl:output` as text; as elements, its `item`s would be entries to common feed parsers.

Ids and times depend on the matches alone: the same feed gives the same bytes and the same ETag.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from html import escape

from lxml import etree

from broker.delivery.letter import duration, is_web, plain
from broker.delivery.summary import Summary, SummaryPart, read_part, summarise
from broker.documents.document import Document, render_time
from broker.pipeline.matchlog import CommittedMatch

__all__ = ["etag", "matches_feed", "stream_feed"]

_ATOM = "http://www.w3.org/2005/Atom"
_XSCL = "urn:xscl:output"


def matches_feed(title: str, url: str, matches: Sequence[CommittedMatch]) -> bytes:
    """Return the feed of these matches, newest first."""
    feed = _feed(title, url, "urn:xscl:" + _digest(url), (m.committed_us for m in matches))
    for match in matches:
        feed.append(_match_entry(match))
    return _rendered(feed)


def stream_feed(stream: str, url: str, documents: Sequence[Document]) -> bytes:
    """Return the feed of a published stream's documents, newest first."""
    feed = _feed(stream, url, "urn:xscl:" + _digest(url), (d.end_us for d in documents))
    for document in documents:
        part = read_part(document.xml)
        title = part.title or f"{stream} {document.key}"
        entry = _entry(title, document.match_id, document.end_us)
        _describe(entry, [part], document.xml.decode())
        fields = "".join(f"<p>{escape(name)}: {escape(text)}</p>" for name, text in part.fields)
        _add(entry, "content", _part_html(part) + fields, type="html")
        feed.append(entry)
    return _rendered(feed)


def etag(body: bytes) -> str:
    """Return the strong validator of a body, without quotes."""
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def _match_entry(match: CommittedMatch) -> etree._Element:
    summary = summarise(match)
    entry = _entry(summary.headline, match.id, match.committed_us)
    _describe(entry, summary.parts, summary.output)
    for _, value in summary.joined:
        _add(entry, "category", term=value)
    _add(entry, "content", _match_html(summary), type="html")
    return entry


def _describe(entry: etree._Element, parts: Sequence[SummaryPart], output: str) -> None:
    # Feed readers open the alternate link: the newest document's.
    links = [part.link for part in reversed(parts) if is_web(part.link)]
    for number, link in enumerate(dict.fromkeys(links)):
        _add(entry, "link", rel="related" if number else "alternate", href=link)
    for name in dict.fromkeys(part.author for part in parts if part.author):
        _add(etree.SubElement(entry, f"{{{_ATOM}}}author"), "name", name)
    etree.SubElement(entry, f"{{{_XSCL}}}output").text = output


def _match_html(summary: Summary) -> str:
    lines = [_part_html(part) for part in summary.parts]
    if summary.joined:
        values = ", ".join(value for _, value in summary.joined)
        lines.append(f"<p>Joined by {escape(values)}; {duration(summary.apart)} apart</p>")
    return "".join(lines)


def _part_html(part: SummaryPart) -> str:
    title = escape(part.title)
    if is_web(part.link):
        title = f'<a href="{escape(part.link)}">{title or escape(part.link)}</a>'
    text = f"<p>{escape(plain(part.html))}</p>" if part.html else ""
    return f"<p>{title} {escape(part.source)}</p>{text}"


def _feed(title: str, url: str, id_: str, times_us: Iterable[int]) -> etree._Element:
    feed = etree.fromstring(f'<feed xmlns="{_ATOM}" xmlns:xscl="{_XSCL}"/>')
    _add(feed, "id", id_)
    _add(feed, "title", title)
    _add(feed, "updated", render_time(max(times_us, default=0)))
    _add(feed, "link", rel="self", href=url)
    author = etree.SubElement(feed, f"{{{_ATOM}}}author")
    _add(author, "name", "XSCL broker")
    return feed


def _entry(title: str, id_: str, updated_us: int) -> etree._Element:
    entry = etree.Element(f"{{{_ATOM}}}entry")
    _add(entry, "id", f"urn:xscl:match:{id_}")
    _add(entry, "title", title)
    _add(entry, "updated", render_time(updated_us))
    return entry


def _add(parent: etree._Element, name: str, text: str = "", **attributes: str) -> None:
    child = etree.SubElement(parent, f"{{{_ATOM}}}{name}", attributes)
    child.text = text or None


def _rendered(feed: etree._Element) -> bytes:
    return etree.tostring(feed, xml_declaration=True, encoding="utf-8")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
