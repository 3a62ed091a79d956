"""Diagnostics for programs: JSON and SARIF 2.1.0."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from xscl.codes import CODES
from xscl.diagnostics import Diagnostic, locate
from xscl.path import Span

__all__ = ["as_dict", "to_json", "to_sarif"]

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def as_dict(diagnostic: Diagnostic) -> dict[str, Any]:
    """Return a diagnostic as plain values: lines and columns from 1, offsets from 0."""
    found: dict[str, Any] = {
        "code": diagnostic.code,
        "severity": diagnostic.severity.value,
        "path": diagnostic.path,
        "message": diagnostic.message,
        "span": _place(diagnostic, diagnostic.span),
    }
    if diagnostic.hint:
        found["hint"] = diagnostic.hint
    if diagnostic.related is not None:
        found["related"] = _place(diagnostic, diagnostic.related)
    return found


def _place(diagnostic: Diagnostic, span: Span) -> dict[str, int]:
    start, end = locate(diagnostic.source, span.start), locate(diagnostic.source, span.end)
    return {
        "start": span.start,
        "end": span.end,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": max(end.column, start.column + 1) if end.line == start.line else end.column,
    }


def to_json(diagnostics: Iterable[Diagnostic]) -> str:
    """Return the diagnostics as a JSON array."""
    return json.dumps([as_dict(each) for each in diagnostics], ensure_ascii=False, indent=2)


def to_sarif(diagnostics: Iterable[Diagnostic]) -> str:
    """Return the diagnostics as a SARIF log, as code hosts and editors read it."""
    found = list(diagnostics)
    used = sorted({each.code for each in found})
    driver = {
        "name": "xscl",
        "rules": [
            {
                "id": code,
                "shortDescription": {"text": CODES[code]},
                "help": {"text": f"docs/diagnostics.md explains {code} with examples."},
            }
            for code in used
        ],
    }
    results = [_result(each, used.index(each.code)) for each in found]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return json.dumps(log, ensure_ascii=False, indent=2)


def _result(diagnostic: Diagnostic, rule: int) -> dict[str, Any]:
    message = diagnostic.message
    if diagnostic.hint:
        message += f" ({diagnostic.hint})"
    result: dict[str, Any] = {
        "ruleId": diagnostic.code,
        "ruleIndex": rule,
        "level": diagnostic.severity.value,
        "message": {"text": message},
        "locations": [_location(diagnostic, diagnostic.span)],
    }
    if diagnostic.related is not None:
        result["relatedLocations"] = [_location(diagnostic, diagnostic.related)]
    return result


def _location(diagnostic: Diagnostic, span: Span) -> dict[str, Any]:
    place = _place(diagnostic, span)
    return {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(diagnostic.path)},
            "region": {
                "startLine": place["line"],
                "startColumn": place["column"],
                "endLine": place["end_line"],
                "endColumn": place["end_column"],
                "charOffset": place["start"],
                "charLength": max(1, place["end"] - place["start"]),
            },
        }
    }


def _uri(path: str | None) -> str:
    """Return a file as a URI reference: relative to where the check ran, or absolute."""
    if path is None or path == "<stdin>":
        return "stdin"
    file = Path(path)
    return file.as_uri() if file.is_absolute() else quote(file.as_posix())
