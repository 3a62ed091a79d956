"""From bytes to characters: byte order mark, HTTP header, XML declaration, then a guess.

A label is believed only if the bytes really decode by it.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass

from charset_normalizer import from_bytes

__all__ = ["Decoded", "decode", "label_in_declaration", "label_in_header"]

_HEADER = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_DECLARATION = re.compile(
    rb"^[\s\xef\xbb\xbf]*<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([\w.:-]{1,40})[\"']"
)
_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_STARTS = ((b"<\0?\0", "utf-16-le"), (b"\0<\0?", "utf-16-be"))
_REALLY = {
    # What the label says and what the bytes are, as the WHATWG encoding standard has it.
    "iso-8859-1": "windows-1252",
    "iso8859-1": "windows-1252",
    "latin-1": "windows-1252",
    "latin1": "windows-1252",
    "us-ascii": "windows-1252",
    "ascii": "windows-1252",
    "iso-8859-9": "windows-1254",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "ks_c_5601-1987": "cp949",
    "euc-kr": "cp949",
    "shift_jis": "cp932",
    "x-sjis": "cp932",
}
_GUESS_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Decoded:
    """The characters, the encoding that gave them, and what was wrong on the way there."""

    text: str
    encoding: str
    warnings: tuple[str, ...] = ()


def label_in_header(content_type: str) -> str:
    """Return the charset that a Content-Type header names, lower case, or ""."""
    found = _HEADER.search(content_type)
    return found[1].lower() if found else ""


def label_in_declaration(body: bytes) -> str:
    """Return the encoding that an XML declaration names, lower case, or ""."""
    found = _DECLARATION.match(body[:400])
    return found[1].decode().lower() if found else ""


def decode(body: bytes, content_type: str = "") -> Decoded:
    """Return the text of `body`; what nothing fits is decoded with replacement characters.

    >>> decode("<?xml version='1.0' encoding='utf-8'?><a>é</a>".encode("latin-1")).encoding
    'windows-1252'
    """
    warnings: list[str] = []
    for origin, label in _labels(body, content_type):
        text = _try(body, label)
        if text is not None:
            return Decoded(text, label, tuple(warnings))
        if label:
            warnings.append(f"the {origin} says {label}, but the bytes are something else")
    label = _guess(body)
    warnings.append(f"the encoding was guessed: {label}")
    return Decoded(body.decode(label, "replace"), label, tuple(warnings))


def _labels(body: bytes, content_type: str) -> Iterator[tuple[str, str]]:
    for mark, label in _MARKS:
        if body.startswith(mark):
            yield "byte order mark", label
            break
    for start, label in _STARTS:
        if body.startswith(start):
            yield "start of the document", label
    header, declaration = label_in_header(content_type), label_in_declaration(body)
    if header:
        yield "HTTP header", _REALLY.get(header, header)
    if declaration:
        yield "XML declaration", _REALLY.get(declaration, declaration)
    if "utf-8" not in (header, declaration):
        yield "default", "utf-8"


def _try(body: bytes, label: str) -> str | None:
    try:
        return body.decode(label)
    except (UnicodeError, LookupError):
        return None


def _guess(body: bytes) -> str:
    """Return an encoding by the look of the bytes; a few accents among ASCII are western.

    A detector is only asked where there is enough to detect: it names exotic encodings for a
    handful of bytes.
    """
    sample = body[:_GUESS_BYTES]
    beyond_ascii = sum(byte > 127 for byte in sample)
    best = from_bytes(sample).best() if beyond_ascii > len(sample) // 8 else None
    if best is None or best.encoding in ("ascii", "utf_8"):
        return "windows-1252"
    return best.encoding
