from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from broker.settings.config import (
    FeedSettings,
    Settings,
    SettingsError,
    find_settings,
    load_settings,
    parse_settings,
)
from broker.settings.feeds import configured_feeds
from feeds import FeedOptions
from joins.engines import DEFAULT_ENGINE, ENGINES

FILE = Path("/etc/broker/xscl.toml")
FEED = '[[feeds]]\nurl = "https://one.example/feed"\nstream = "news"\n'


def test_settings_left_out_have_their_defaults() -> None:
    settings = parse_settings("", FILE)
    assert settings.lateness == timedelta(days=1)
    assert settings.http.host == "127.0.0.1"
    assert dataclasses.replace(settings, data=Path("xscl-data")) == load_settings(None)


def test_the_data_stand_beside_the_settings_from_wherever_a_verb_is_called() -> None:
    assert parse_settings("", FILE).data == FILE.parent / "xscl-data"


def test_every_kind_of_setting_is_read() -> None:
    text = """
    data = "state"
    allow_networks = ["127.0.0.0/8"]
    lateness = "6 h"
    [http]
    port = 0
    [smtp]
    host = "mail.example"
    sender = "broker@mail.example"
    security = "starttls"
    [webhooks]
    allow_http = true
    [[feeds]]
    url = "https://one.example/feed"
    stream = "news"
    [[feeds]]
    url = "https://two.example/feed"
    stream = "news"
    every = "PT5M"
    """
    settings = parse_settings(text, FILE)
    assert settings.data == Path("/etc/broker/state")
    assert settings.lateness == timedelta(hours=6)
    assert settings.http.port == 0
    assert settings.smtp is not None
    assert settings.smtp.security == "starttls"
    assert settings.webhooks.allow_http
    assert settings.allow_networks == ("127.0.0.0/8",)
    assert settings.feeds[1] == FeedSettings(
        "https://two.example/feed", "news", timedelta(minutes=5)
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lateness = 3", "xscl.toml:1: lateness: must be a duration"),
        ('lateness = "3 moons"', "xscl.toml:1: lateness: `moons` is not a unit of time"),
        ('\nlatenes = "1 d"', "xscl.toml:2: latenes: unknown setting; did you mean 'lateness'?"),
        ("[http]\nhost = 'a'\nprot = 1", "xscl.toml:3: http.prot: unknown setting; did you mean"),
        ("[http]\nport = 'x'", "xscl.toml:2: http.port: must be a whole number, not 'x'"),
        ("[http]\nport = true", "xscl.toml:2: http.port: must be a whole number"),
        ("[http]\npublic_url = 'broker.example'", "xscl.toml:1: http: 'public_url' must begin"),
        ("[http]\npublic_url = 'https://bücher.example'", "write a domain as xn--..."),
        (f"[http]\npublic_url = 'https://{'b' * 500}'", "has at most 500 characters"),
        ("[smtp]\nhost = 'a'", "xscl.toml:1: smtp: 'sender' must be set"),
        ("engine = 'turbo'", "xscl.toml:1: engine: 'turbo' is not one of 'signatures'"),
        (
            "\nengine = 'mmqjp'",
            "xscl.toml:2: engine: a broker joins with 'signatures'; 'mmqjp' is for",
        ),
        ("feeds = 1", "feeds: must be an array"),
        ("allow_networks = ['home']", "xscl.toml:1: allow_networks: 'home' does not appear to be"),
        (FEED + "backlog = 'some'", "xscl.toml:4: feeds[1].backlog: 'some' is not one of 'all'"),
        (FEED + "backlog = 'since'", "xscl.toml:1: feeds[1]: 'since' must be set where"),
        (FEED + "backlog = 'new'\nsince = 2026-01-01", "'since' cannot be set where"),
        (FEED + "since = 'May'", "xscl.toml:4: feeds[1].since: must be a time such as 2026-"),
        (FEED + "every = '0 s'", "'every' must be longer than nothing"),
        (FEED.replace('"news"', "'bad stream'"), "feeds[1]: 'bad stream' cannot be the name of"),
        (FEED + "headers = [{ name = 'X' }]", "xscl.toml:4: feeds[1].headers[1]: one of 'value'"),
        (FEED + "headers = [{ name = 'X', env = 'A', file = 'b' }]", "one of 'value', 'env' and"),
        (FEED + "headers = [{ name = 'X Y', env = 'A' }]", "'X Y' is not the name of a header"),
        ("[http\n", "not TOML"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        parse_settings(text, FILE)
    assert message in str(error.value)


def test_a_mistake_in_the_second_feed_is_found_there() -> None:
    text = '[[feeds]]\nurl = "a"\nstream = "s"\n[[feeds]]\nurl = "b"\nstreem = "s"\n'
    with pytest.raises(SettingsError, match=r"xscl.toml:6: feeds\[2\]\.streem: .* 'stream'"):
        parse_settings(text, FILE)


def test_a_feed_without_a_stream_is_named_by_its_header() -> None:
    text = '[[feeds]]\nurl = "a"\nstream = "s"\n\n[[feeds]]\nurl = "b"\n'
    with pytest.raises(SettingsError, match=r"xscl.toml:5: feeds\[2\]: 'stream' must be set"):
        parse_settings(text, FILE)


def test_the_nearest_settings_file_above_is_found(tmp_path: Path) -> None:
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    (tmp_path / "xscl.toml").touch()
    assert find_settings(inner) == tmp_path / "xscl.toml"


def test_the_smtp_password_comes_from_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "secret").write_text("from the file\n")
    text = '[smtp]\nhost = "h"\nsender = "a@b.example"\npassword_file = "secret"'
    smtp = parse_settings(text, tmp_path / "xscl.toml").smtp
    assert smtp is not None
    monkeypatch.delenv("XSCL_SMTP_PASSWORD", raising=False)
    assert smtp.password() == "from the file"
    monkeypatch.setenv("XSCL_SMTP_PASSWORD", "from the environment")
    assert smtp.password() == "from the environment"


@pytest.mark.parametrize("engine", sorted({*ENGINES} - {DEFAULT_ENGINE}))
def test_an_engine_for_reference_is_refused_with_a_hint(engine: str) -> None:
    with pytest.raises(SettingsError, match=f"`xscl replay --engine {engine}`"):
        parse_settings(f"engine = '{engine}'", FILE)


def test_the_engine_of_the_settings_is_the_default_one() -> None:
    # The settings do not import the engines, to be read in a few milliseconds.
    assert get_args(get_type_hints(Settings)["engine"]) == (DEFAULT_ENGINE,)
    assert Settings().engine == DEFAULT_ENGINE


def test_a_feed_has_all_the_options_of_the_poller() -> None:
    text = """
    every = "PT5M"
    title = "One"
    item = "raw"
    on_update = "new document"
    since = 2026-01-01
    proxy = "http://proxy.example:3128"
    robots = true
    """
    (feed,) = configured_feeds(parse_settings(FEED + text, FILE).feeds)
    new_year_us = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000
    assert feed.options == FeedOptions(
        interval_s=300.0,
        item="raw",
        on_update="new document",
        backlog="since",
        since_us=new_year_us,
        proxy="http://proxy.example:3128",
        robots=True,
        title="One",
    )


def test_a_feed_that_says_no_more_than_where_it_is_has_the_defaults_of_the_poller() -> None:
    (feed,) = configured_feeds(parse_settings(FEED, FILE).feeds)
    assert feed.options == FeedOptions()
    assert feed.options.interval_s is None


def test_the_secrets_of_a_feed_come_from_the_settings_the_environment_or_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("from the file\n")
    monkeypatch.setenv("ONE_TOKEN", "from the environment")
    text = """
    headers = [
        { name = "A", value = "from the settings" },
        { name = "B", env = "ONE_TOKEN" },
        { name = "C", file = "token" },
    ]
    """
    settings = parse_settings(FEED + text, tmp_path / "xscl.toml")
    (feed,) = configured_feeds(settings.feeds)
    assert feed.secrets.headers == (
        ("A", "from the settings"),
        ("B", "from the environment"),
        ("C", "from the file"),
    )
    assert "from the" not in f"{settings!r} {feed!r}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('headers = [{ name = "A", env = "NOWHERE" }]', "the environment variable NOWHERE is not"),
        ('headers = [{ name = "A", file = "nowhere" }]', "nowhere: cannot be read"),
    ],
)
def test_a_secret_that_cannot_be_had_is_named(text: str, message: str) -> None:
    with pytest.raises(SettingsError, match=rf"feeds\[1\]\.headers: .*{message}"):
        configured_feeds(parse_settings(FEED + text, FILE).feeds)


def test_a_feed_without_an_address_is_named() -> None:
    with pytest.raises(SettingsError, match=r"feeds\[2\]: 'ftp://one.example/' is not an http"):
        configured_feeds(
            [FeedSettings("http://a.example", "s"), FeedSettings("ftp://one.example/", "s")]
        )
