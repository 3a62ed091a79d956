"""Which entry is which, for feeds whose guids are good, bad, and bad from some day on."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from support.feed_server import Page, entry, rss

from feeds import FeedItem, feed_at
from feeds.identity import choose_policy, entries, news
from feeds.store import Seen

DAY = 86_400


def item(number: int, **fields: object) -> FeedItem:
    made = FeedItem(
        id=f"urn:{number}",
        title=f"T{number}",
        links=(f"https://example.org/{number}",),
        published_us=number,
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def test_the_ladder_goes_from_guid_to_link_to_content():
    found = entries([item(1), item(2, id=""), item(3, id="", links=())], "guid")
    assert [each.key for each in found][:2] == ["urn:1", "https://example.org/2"]
    assert found[2].key.startswith("content:")


def test_guids_that_are_all_the_same_lead_to_links_and_links_to_titles():
    assert choose_policy([item(n) for n in range(10)]) == "guid"
    same_guid = [item(n, id="0") for n in range(10)]
    assert choose_policy(same_guid) == "link"
    same_link = [replace(each, links=("https://example.org/",)) for each in same_guid]
    assert choose_policy(same_link) == "link and title"
    assert choose_policy([replace(each, title="") for each in same_link]) == "content"


def test_one_repeated_guid_among_many_does_not_change_the_policy():
    items = [item(n) for n in range(60)]
    assert choose_policy([*items, item(60, id="urn:59")]) == "guid"


def test_a_policy_never_goes_back_down():
    good = [item(n) for n in range(10)]
    assert choose_policy(good, "link") == "link"


def test_a_guid_that_moves_to_https_names_the_same_entry():
    (before,) = entries([item(1, id="http://example.org/1")], "guid")
    (after,) = entries([item(1, id="https://example.org/1")], "guid")
    assert before.key == after.key


def test_an_entry_listed_twice_is_taken_once_in_its_latest_form():
    old, new = item(1, updated_us=5, title="old"), item(1, updated_us=9, title="new")
    for order in ([old, new], [new, old]):
        (found,) = entries(order, "guid")
        assert found.item.title == "new"


@given(st.permutations(range(8)), st.integers(0, 8))
def test_order_and_shrinking_bring_no_news(order: list[int], size: int):
    seen = {each.key: Seen(each.content) for each in entries([item(n) for n in range(8)], "guid")}
    found = news(entries([item(n) for n in order[:size]], "guid"), seen)
    assert not found.new
    assert not found.revised


async def test_guids_that_go_bad_do_not_fire_old_entries_again(
    server, store, inbox, clock, poller_of
):
    links = {n: f"https://example.org/{n}" for n in range(4)}
    server.pages["/feed"] = [
        Page(rss(*(entry(n, link=links[n]) for n in range(3)))),
        Page(rss(*(entry(n, link=links[n], guid="same") for n in range(4)))),
        Page(rss(*(entry(n, link=links[n]) for n in range(4)))),
    ]
    store.add(feed_at(server.url(), "news"))
    for _ in range(3):
        await poller_of().check_due()
        clock.advance(2 * DAY)
    assert store.get(server.url()).state.identity == "link"
    titles = [xml.partition(b"<title>")[2].partition(b"<")[0] for _, _, _, xml in inbox.documents]
    assert titles == [b"Item 0", b"Item 1", b"Item 2", b"Item 3"]
