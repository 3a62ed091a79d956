"""The prefixes of a statement: every query knows some, and it declares others."""

from __future__ import annotations

from collections.abc import Sequence

from xscl.path import Span
from xscl.report import Report
from xscl.spelling import closest
from xscl.statement import NamespaceDeclaration

__all__ = ["KNOWN_PREFIXES", "Namespaces", "declare_hint"]

KNOWN_PREFIXES = {
    "atom": "http://www.w3.org/2005/Atom",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "georss": "http://www.georss.org/georss",
    "itunes": "http://www.itunes.com/dtds/podcast-1.0.dtd",
    "media": "http://search.yahoo.com/mrss/",
    "podcast": "https://podcastindex.org/namespace/1.0",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rss1": "http://purl.org/rss/1.0/",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "wfw": "http://wellformedweb.org/CommentAPI/",
    "xml": "http://www.w3.org/XML/1998/namespace",
}
"""What these prefixes mean without a declaration; a query may declare them anew, except `xml`."""

_NEAR = 0.75
"""The least likeness of a misspelt prefix: `yt` is no `sy`."""


def declare_hint(prefix: str) -> str:
    """Return what to write where a prefix is not known."""
    return f"declare it first: `DECLARE NAMESPACE {prefix} = 'http://...';`"


class Namespaces:
    """Looks up prefixes.  `default` is the namespace of unprefixed element names."""

    def __init__(self, declarations: Sequence[NamespaceDeclaration], report: Report) -> None:
        self.report = report
        self.default: str | None = None
        self.declared: dict[str, str] = {}
        seen: dict[str, Span] = {}
        for each in declarations:
            self._declare(each, seen)

    def _declare(self, declaration: NamespaceDeclaration, seen: dict[str, Span]) -> None:
        prefix, span = declaration.prefix, declaration.span
        if prefix in seen:
            what = f"the prefix `{prefix}`" if prefix else "the default element namespace"
            self.report.error(
                "XS207", span, f"{what} is declared twice", "keep one of them", seen[prefix]
            )
        elif prefix in ("xml", "xmlns") or ":" in prefix or (prefix and not declaration.uri):
            self.report.error("XS207", span, f"the prefix `{prefix}` cannot be declared like this")
        seen[prefix] = span
        if prefix:
            self.declared[prefix] = declaration.uri
        else:
            self.default = declaration.uri or None

    def uri(self, prefix: str, span: Span) -> str:
        """Return what a prefix stands for; report one that stands for nothing."""
        found = self.declared.get(prefix) or KNOWN_PREFIXES.get(prefix)
        if found is None:
            meant = closest(prefix, KNOWN_PREFIXES.keys() | self.declared.keys(), _NEAR)
            hint = declare_hint(prefix)
            if meant is not None:
                hint = f"did you mean `{meant}`?"
            self.report.error("XS205", span, f"the prefix `{prefix}` is not known", hint)
        return found or f"unknown:{prefix}"

    def pairs(self) -> tuple[tuple[str, str], ...]:
        """Return the declared prefixes with their URIs, the default one under `""`."""
        default = (("", self.default),) if self.default else ()
        return tuple(sorted((*default, *self.declared.items())))
