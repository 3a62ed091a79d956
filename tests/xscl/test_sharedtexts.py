"""Texts that many values have in common are found for as long as somebody holds them."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from xscl import sharedtexts


class SlowName(str):
    """A name of which other threads have their turn whenever it is looked up."""

    __slots__ = ()

    def __hash__(self) -> int:
        time.sleep(0)
        return super().__hash__()


def test_a_text_is_found_whoever_else_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sharedtexts, "name_of", SlowName)

    def hold(_: int) -> bool:
        texts = sharedtexts.held(["<a/>"])
        return sharedtexts.shared_text(SlowName("<a/>")) == texts[0].text

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(hold, range(200)))
