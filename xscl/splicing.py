"""Writes constructed elements with copies of nodes in them, so that each keeps its namespace.

lxml cannot: a copy that is appended loses `xmlns=""`, and its prefixes are exchanged for those
above it, also where the copy declares another default.  So a copy is written by itself, where a
constructed element has a mark for it, and says `xmlns=""` if a default namespace would take it in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from lxml import etree

__all__ = ["Copy", "copied", "mark", "spliced"]

Copy = Any
"""A copy of a node: an element, or its text where nothing in it declares a namespace."""

_MARK = re.compile(r"<\?copy (\d+)\?>")
_NAME = re.compile(r"<[^ />]+")
_WITHOUT_REPETITION = etree.XMLParser(ns_clean=True, huge_tree=True, no_network=True)
"""Drops declarations that are in force already; what it reads has been read before."""


def mark(index: int) -> Any:
    """Return what holds the place of a copy in a constructed element."""
    return etree.ProcessingInstruction("copy", str(index))


def spliced(root: Any, copies: Sequence[Copy], kept_prefixes: Sequence[str]) -> str:
    """Return a constructed element as text, with the copies in the places of their marks.

    Prefixes that nothing uses are dropped, but those to be kept.
    """
    etree.cleanup_namespaces(root, keep_ns_prefixes=list(kept_prefixes))
    text = etree.tostring(root, encoding="unicode")
    defaults = [""] * len(copies)
    if " xmlns=" in text:
        defaults = _declare_defaults(root)
        text = etree.tostring(root, encoding="unicode")
    pieces = [copied(*each, kept_prefixes) for each in zip(copies, defaults, strict=True)]
    whole = _MARK.sub(lambda found: pieces[int(found[1])], text)
    if not pieces or " xmlns" not in text:
        return whole
    tree = etree.fromstring(whole, _WITHOUT_REPETITION)
    return etree.tostring(tree, encoding="unicode")


def copied(copy: Copy, default: str, kept_prefixes: Sequence[str]) -> str:
    """Return a copy as text that stands where a default namespace is in force."""
    if isinstance(copy, str):
        return _in_no_namespace(copy) if default else copy
    text = etree.tostring(copy, encoding="unicode")
    if " xmlns" in text and 'xmlns=""' not in text:  # which the clean-up would drop
        etree.cleanup_namespaces(copy, keep_ns_prefixes=list(kept_prefixes))
        text = etree.tostring(copy, encoding="unicode")
    if not default or None in copy.nsmap:
        return text
    return _in_no_namespace(text)


def _in_no_namespace(text: str) -> str:
    return _NAME.sub(lambda found: f'{found[0]} xmlns=""', text, count=1)


def _declare_defaults(root: Any) -> list[str]:
    """Have each element without a prefix say its namespace where another one is the default.

    Returns the default namespace in force at each mark.  lxml does not write `xmlns=""`, but it
    does write an attribute of that name.
    """
    at_marks: list[str] = []
    in_force = [""]
    declared: str | None = None
    for event, each in etree.iterwalk(root, events=("start-ns", "start", "end", "pi")):
        if event == "start-ns":
            prefix, uri = each
            declared = declared if prefix else uri
        elif event == "start":
            default = in_force[-1] if declared is None else declared
            declared = None
            if each.prefix is None and (etree.QName(each).namespace or "") != default:
                default = etree.QName(each).namespace or ""
                each.set("xmlns", default)
            in_force.append(default)
        elif event == "end":
            in_force.pop()
        else:
            at_marks.append(in_force[-1])
    return at_marks
