"""Reading feeds: every dialect, every kind of damage, and what must not do harm."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from support.examples import examples
from support.feed_server import entry, rss

from feeds import FeedError, FeedItem, ParsedFeed, item_document, parse
from feeds.item import ItemStep
from feeds.text import plain

ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="en">'
    '<title type="html">A &amp;amp; B</title>'
    "<author><name>Editor</name></author>{}</feed>"
)


def read(document: str | bytes, **options: str) -> ParsedFeed:
    body = document.encode() if isinstance(document, str) else document
    found = parse(body, url="https://example.org/feeds/all", **options)
    assert isinstance(found, ParsedFeed), found
    return found


def only(document: str | bytes, **options: str) -> FeedItem:
    (item,) = read(document, **options).items
    return item


def test_an_rss_2_item_is_read_whole():
    item = only(
        rss(
            "<item><guid isPermaLink='false'>7</guid>"
            "<title>A <![CDATA[<b>bold</b> &amp; new]]></title>"
            "<link>/seven</link><author>ann@example.org (Ann)</author><category>x</category>"
            "<category>y</category><pubDate>Thu, 01 Jan 2026 00:00:00 +0100</pubDate>"
            "<description>&lt;p&gt;One&lt;/p&gt;&lt;p&gt;two&amp;nbsp;three&lt;/p&gt;</description>"
            "<enclosure url='a.mp3' type='audio/mpeg' length='9'/><comments>/7#c</comments></item>"
        )
    )
    assert item.id == "7"
    assert item.title == "A bold & new"
    assert item.links == ("https://example.org/seven",)
    assert item.authors == ("Ann",)
    assert item.categories == ("x", "y")
    assert item.published_us == 1_767_222_000_000_000
    assert item.summary == "One\ntwo three"
    assert item.enclosures[0].url == "https://example.org/feeds/a.mp3"
    assert item.comments == "https://example.org/7#c"


def test_rss_1_items_stand_beside_the_channel():
    item = only(
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
        'xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        '<channel rdf:about="c"><title>C</title></channel>'
        '<item rdf:about="urn:1"><title>T</title><link>https://example.org/1</link>'
        "<dc:creator>Ann</dc:creator><dc:subject>s</dc:subject>"
        "<dc:date>2026-01-01T00:00:00Z</dc:date></item></rdf:RDF>"
    )
    assert (item.id, item.title, item.authors, item.categories) == ("urn:1", "T", ("Ann",), ("s",))
    assert item.event_time_us == 1_767_225_600_000_000


def test_an_atom_entry_is_read_whole():
    found = read(
        ATOM.format(
            "<entry xml:base='/base/'><id>urn:1</id><title>T</title><link href='one'/>"
            "<link rel='enclosure' href='a.mp3' type='audio/mpeg'/><category term='c' label='C'/>"
            "<updated>2026-01-02T00:00:00Z</updated><published>2026-01-01T00:00:00Z</published>"
            "<summary type='html'>&lt;i&gt;s&lt;/i&gt;</summary>"
            "<content type='xhtml'><div xmlns='http://www.w3.org/1999/xhtml'><p>a</p><p>b</p></div>"
            "</content></entry>"
        )
    )
    (item,) = found.items
    assert (found.title, found.language, found.format) == ("A & B", "en", "atom10")
    assert item.links == ("https://example.org/base/one",)
    assert item.enclosures[0].url == "https://example.org/base/a.mp3"
    assert (item.summary, item.content, item.categories) == ("s", "a\nb", ("c",))
    assert item.authors == ("Editor",), "an entry without an author has its feed's"


def test_atom_0_3_is_read():
    item = only(
        '<feed version="0.3" xmlns="http://purl.org/atom/ns#"><title>T</title><entry><id>1</id>'
        '<title mode="escaped" type="text/html">&lt;b&gt;x&lt;/b&gt;</title>'
        "<issued>2026-01-01T00:00:00Z</issued><modified>2026-01-02T00:00:00Z</modified></entry></feed>"
    )
    assert (item.title, item.published_us) == ("x", 1_767_225_600_000_000)


def test_json_feed_is_read():
    document = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "J",
        "hubs": [{"type": "WebSub", "url": "https://hub.example/"}],
        "items": [
            {
                "id": 7,
                "url": "/7",
                "content_html": "<p>a</p>",
                "date_published": "2026-01-01T00:00:00Z",
                "authors": [{"name": "Ann"}],
                "tags": ["x"],
                "attachments": [{"url": "a.mp3", "mime_type": "audio/mpeg", "size_in_bytes": 9}],
            },
            "rubbish",
        ],
    }
    found = read(json.dumps(document))
    (item,) = found.items
    assert (item.id, item.link, item.content) == ("7", "https://example.org/7", "a")
    assert (item.authors, item.categories) == (("Ann",), ("x",))
    assert found.hints.hubs == ("https://hub.example/",)


def test_hints_say_when_to_come_back():
    hints = read(
        '<rss version="2.0" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/" '
        'xmlns:atom="http://www.w3.org/2005/Atom"><channel><title>T</title><ttl>30</ttl>'
        "<sy:updatePeriod>hourly</sy:updatePeriod><sy:updateFrequency>1</sy:updateFrequency>"
        "<skipHours><hour>0</hour><hour>24</hour><hour>7</hour></skipHours>"
        "<skipDays><day>Sunday</day></skipDays>"
        '<atom:link rel="hub" href="https://hub.example/"/><atom:link rel="self" href="/f"/>'
        "</channel></rss>"
    ).hints
    assert hints.ttl_s == 3_600
    assert hints.skip_hours == {0, 7}
    assert hints.skip_days == {6}
    assert (hints.hubs, hints.self_url) == (("https://hub.example/",), "https://example.org/f")


def test_extension_elements_are_kept_in_their_namespaces():
    document = (
        '<rss version="2.0" xmlns:media="http://search.yahoo.com/mrss/" xmlns:x="urn:unused" '
        'xmlns:slash="http://purl.org/rss/1.0/modules/slash/"><channel><title>T</title><item>'
        "<guid>1</guid><slash:comments>3</slash:comments>"
        '<media:content url="a.jpg"><media:title>&lt;T&gt;</media:title></media:content>'
        "</item></channel></rss>"
    )
    root = etree.fromstring(item_document(only(document), feed="https://example.org/feeds/all"))
    media, title = root[-1], root[-1][0]
    assert media.tag == "{http://search.yahoo.com/mrss/}content"
    assert (media.get("url"), title.text) == ("a.jpg", "<T>")
    assert root[-2].text == "3"
    assert "urn:unused" not in etree.tostring(root, encoding="unicode")


def test_the_raw_entry_can_be_asked_for():
    body = rss(entry(1)).encode()
    found = parse(body, raw=True)
    assert isinstance(found, ParsedFeed)
    assert etree.fromstring(found.items[0].raw).findtext("guid") == "urn:item:1"


@pytest.mark.parametrize(
    ("document", "title"),
    [
        (rss(entry(1, title="x")).replace(">x<", ">a & b<"), "a & b"),
        (rss(entry(1, title="x")).replace(">x<", ">caf&eacute;&nbsp;bar<"), "café bar"),
        ("\n\n junk " + rss(entry(1)), "Item 1"),
        (rss(entry(1, title="x")).replace(">x<", ">a\x08b&#8;c<"), "abc"),
        (rss(entry(1)).replace("</channel></rss>", ""), "Item 1"),
        (rss(entry(1)).replace('version="2.0"', "version=2.0"), "Item 1"),
        (rss(entry(1)).replace("<item>", "<item><dc:creator>Ann</dc:creator>"), "Item 1"),
    ],
    ids=["ampersand", "entities", "junk", "control", "cut off", "unquoted", "undeclared prefix"],
)
def test_damage_is_repaired_and_flagged(document: str, title: str):
    found = read(document)
    assert [item.title for item in found.items] == [title]
    assert found.step is not ItemStep.STRICT
    assert found.warnings


@pytest.mark.parametrize(
    ("encoding", "declared", "header"),
    [
        ("utf-8", "", ""),
        ("utf-8", "utf-8", "application/rss+xml"),
        ("utf-16", "utf-16", ""),
        ("utf-8-sig", "", "text/xml; charset=iso-8859-1"),
        ("windows-1252", "iso-8859-1", ""),
        ("windows-1252", "utf-8", ""),
        ("windows-1252", "", "application/xml; charset=windows-1252"),
        ("koi8-r", "koi8-r", ""),
        ("shift_jis", "Shift_JIS", ""),
        ("gb18030", "gb2312", ""),
    ],
)
def test_the_characters_come_out_whatever_the_labels_say(encoding: str, declared: str, header: str):
    text = {"koi8-r": "Привет", "shift_jis": "こんにちは", "gb18030": "你好世界"}.get(
        encoding, "naïve café"
    )
    declaration = f"<?xml version='1.0' encoding='{declared}'?>" if declared else ""
    document = declaration + rss(entry(1, title=text)).partition("?>")[2]
    assert only(document.encode(encoding), content_type=header).title == text


def test_lines_begin_where_blocks_do_and_scripts_are_left_out():
    markup = (
        "<h2>Parts<!-- > --></h2><TR><th>Qty</TH><td>1<br/>2</td></tr>a<p-x>b<SCRIPT>c</script >d"
    )
    assert plain(markup) == "Parts\nQty\n1\n2\nabd"


BOMB = (
    '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f"<!ENTITY {chr(98 + n)} '{('&' + chr(97 + n) + ';') * 10}'>" for n in range(9))
    + "]>"
)
HOSTILE = {
    "external entity": '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + "{a}",
    "external dtd": '<!DOCTYPE r SYSTEM "http://127.0.0.1:9/evil.dtd">' + "{a}",
    "parameter entity": '<!DOCTYPE r [<!ENTITY % a SYSTEM "file:///etc/passwd"> %a;]>' + "{a}",
    "billion laughs": BOMB + "{j}",
    "quadratic": "<!DOCTYPE r [<!ENTITY a '" + "a" * 50_000 + "'>]>" + "{many}",
    "depth": "{deep}",
    "attributes": "{attributes}",
    "open scripts": "{scripts}",
    "open brackets": "{brackets}",
    "many entries": "{entries}",
    "many prefixes": "{prefixes}",
    "numbers that Python does not read": "{numbers}",
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_feeds_do_no_harm(name: str):
    parts = {
        "{a}": rss(entry(1, title="T")).replace(">T<", ">&a;<"),
        "{j}": rss(entry(1, title="T")).replace(">T<", ">&j;<"),
        "{many}": rss(entry(1, title="T")).replace(">T<", f">{'&a;' * 5_000}<"),
        "{deep}": rss(f"<item><title>{'<a>' * 50_000}</title></item>"),
        "{attributes}": rss("<item " + " ".join(f"a{n}='1'" for n in range(20_000)) + "/>"),
        "{scripts}": rss(entry(1, description="<script" * 200_000)),
        "{brackets}": rss(entry(1, description="<a " * 300_000)),
        "{entries}": rss("<item><title>x</title></item>" * 50_000),
        "{numbers}": rss(entry(1, description=f"<a href='&#{'1' * 5_000};'>&#{'1' * 5_000};</a>")),
        "{prefixes}": rss("<item><title>x</title></item>", "<x:y>" * 1_000),
    }
    document = HOSTILE[name]
    for place, text in parts.items():
        document = document.replace(place, text.replace('<?xml version="1.0"?>', ""))
    started = time.process_time()
    found = parse(document.encode(), url="https://example.org/f")
    assert time.process_time() - started < 10
    if isinstance(found, ParsedFeed):
        assert len(found.items) <= 2_000
        documents = [item_document(item, feed="https://example.org/f") for item in found.items]
        assert sum(map(len, documents)) < 3 * len(document) + 2_000_000
        assert not any(b"root:" in each for each in documents)


@settings(max_examples=examples(50), deadline=None)
@given(st.binary(max_size=300), st.integers(0, 400), st.sampled_from(["", "text/xml; charset=x"]))
def test_whatever_the_bytes_a_feed_or_an_error_comes_out(noise: bytes, place: int, header: str):
    body = rss(entry(1, description="<p>x &amp; y</p>")).encode()
    found = parse(body[:place] + noise + body[place:], content_type=header)
    assert isinstance(found, ParsedFeed | FeedError)
    if isinstance(found, ParsedFeed):
        for item in found.items:
            etree.fromstring(item_document(item, feed="https://example.org/f"))


@settings(max_examples=examples(40), deadline=None)
@given(st.dictionaries(st.sampled_from(["id", "title", "url", "tags", "items"]), st.text()))
def test_json_that_is_no_feed_is_an_error(values: dict[str, str]):
    assert isinstance(parse(json.dumps(values).encode()), FeedError)


def test_a_compressed_file_is_not_a_feed():
    assert isinstance(parse(gzip.compress(rss(entry(1)).encode())), FeedError)


def test_each_real_file_is_a_feed(real_feeds: list[Path]):
    counts = [len(read(file.read_bytes()).items) for file in real_feeds]
    assert all(counts)
