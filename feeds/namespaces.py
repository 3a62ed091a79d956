"""The namespaces of feeds: which hold the core, and which prefix usually means which."""

from __future__ import annotations

__all__ = [
    "ATOM",
    "CONTENT",
    "CORE_ATOM",
    "CORE_RSS",
    "DC",
    "DCTERMS",
    "ITUNES",
    "MEDIA",
    "PREFIXES",
    "RDF",
    "SYNDICATION",
    "XML",
]

XML = "http://www.w3.org/XML/1998/namespace"
ATOM = "http://www.w3.org/2005/Atom"
ATOM_03 = "http://purl.org/atom/ns#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
CONTENT = "http://purl.org/rss/1.0/modules/content/"
DC = "http://purl.org/dc/elements/1.1/"
DCTERMS = "http://purl.org/dc/terms/"
ITUNES = "http://www.itunes.com/dtds/podcast-1.0.dtd"
MEDIA = "http://search.yahoo.com/mrss/"
SYNDICATION = "http://purl.org/rss/1.0/modules/syndication/"

CORE_RSS = (
    "",
    "http://purl.org/rss/1.0/",
    "http://my.netscape.com/rdf/simple/0.9/",
    "http://channel.netscape.com/rdf/simple/0.9/",
    "http://backend.userland.com/rss2",
    "http://backend.userland.com/rss",
    "http://blogs.law.harvard.edu/tech/rss",
    "http://cyber.law.harvard.edu/rss/rss.html",
)
"""Where the elements of RSS itself have been put, by specification or by habit."""

CORE_ATOM = (ATOM, ATOM_03, "https://www.w3.org/2005/Atom", "http://www.w3.org/2005/Atom/")

PREFIXES = {
    "atom": ATOM,
    "content": CONTENT,
    "dc": DC,
    "dcterms": DCTERMS,
    "georss": "http://www.georss.org/georss",
    "itunes": ITUNES,
    "media": MEDIA,
    "podcast": "https://podcastindex.org/namespace/1.0",
    "rdf": RDF,
    "rss": "",
    "slash": "http://purl.org/rss/1.0/modules/slash/",
    "sy": SYNDICATION,
    "thr": "http://purl.org/syndication/thread/1.0",
    "wfw": "http://wellformedweb.org/CommentAPI/",
    "xhtml": "http://www.w3.org/1999/xhtml",
    "xml": XML,
    "yt": "http://www.youtube.com/xml/schemas/2015",
}
"""What a prefix means in a feed that forgot to declare it."""
