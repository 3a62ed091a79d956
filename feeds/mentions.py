"""The pages that an item's text links to: what plain text loses of HTML."""

from __future__ import annotations

import re
from collections.abc import Iterable

from feeds.text import unescaped

__all__ = ["MENTIONS_MAX", "hrefs", "mentions"]

MENTIONS_MAX = 100
"""More links than this are a directory, not a text that speaks of something."""

# No part can run past the next "<" or ">", so the search is linear in its input.  Both cases
# are spelled: a pattern that ignores case is slower.
_HREF = re.compile(
    r"""<[aA]\s[^<>]*?\b(?:href|HREF|Href)\s*=\s*(?:"([^"<>]*)"|'([^'<>]*)'|([^\s"'<>]+))"""
)


def hrefs(markup: str) -> list[str]:
    """Return what the `<a>` elements of an HTML fragment point to, in order, as written.

    >>> hrefs('<p>See <a class="x" href="/a?b=1&amp;c=2">this</a> and <A HREF=b>that</A>.</p>')
    ['/a?b=1&c=2', 'b']
    """
    targets = [double or single or bare for double, single, bare in _HREF.findall(markup)]
    return [unescaped(each).strip() for each in targets]


def mentions(targets: Iterable[str], own: Iterable[str]) -> tuple[str, ...]:
    """Return the web pages among `targets`, each once, without the item's own.

    >>> mentions(["https://a.example/", "mailto:ann@a.example", "#top", "http://b.example/x",
    ...           "https://a.example/"], own=["http://b.example/x"])
    ('https://a.example/',)
    """
    pages = dict.fromkeys(url for url in targets if url.startswith(("http://", "https://")))
    for url in own:
        pages.pop(url, None)
    return tuple(pages)[:MENTIONS_MAX]
