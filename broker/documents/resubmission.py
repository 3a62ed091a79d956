"""Documents that could not be evaluated, given to ingest once more.

What is given is a new document: the same XML with the same event time, under a key that says which
document it is again.  That key is what makes a repeated request harmless: ingest recognises it.
"""

from __future__ import annotations

from broker.documents.document import Document, DocumentLine

__all__ = ["resubmission"]


def resubmission(document: Document) -> DocumentLine:
    """Return the line that gives a stored document to ingest again.

    >>> line = resubmission(Document(7, "S", "a", 5, 5, 9, 0, b"<v/>"))
    >>> line.key, line.time_us
    ('a@7', 5)
    """
    return DocumentLine(
        stream=document.stream,
        xml=document.xml,
        time_us=document.end_us if document.claimed_us is None else document.claimed_us,
        key=f"{document.key}@{document.docid}",
    )
