"""What came of cases: as text, as JSON, as JUnit XML, and as the case file would have to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from xml.etree import ElementTree

from broker.registry.parameters import spell_parameters
from broker.testing.casefile import CaseFile
from broker.testing.trial import CaseMatch, Pair, Trial
from broker.whynot.text import render_reason

__all__ = ["accepted", "as_data", "as_junit", "render_trial", "uncoloured"]

_GREEN, _RED, _BOLD, _RESET = "\x1b[32m", "\x1b[31m", "\x1b[1m", "\x1b[0m"


def render_trial(file: CaseFile, trial: Trial) -> str:
    """Return what came of a case as text with colours: a line, and below it what differs."""
    case = trial.case
    mark = f"{_GREEN}ok  {_RESET}" if trial.passed else f"{_BOLD}{_RED}FAIL{_RESET}"
    lines = [f"{mark}  {file.path}:{case.line}  {case.name}"]
    for pair in () if trial.passed else trial.pairs:
        lines += [f"      {line}" for line in _pair(file, pair)]
    return "\n".join(lines) + "\n"


def _pair(file: CaseFile, pair: Pair) -> Iterator[str]:
    head = _head(file, pair)
    if pair.found is None:
        yield f"{_RED}- {head}{_RESET}"
        yield from (f"      {line}" for line in _why_not(pair))
    elif pair.expected is None:
        yield f"{_GREEN}+ {head}{_RESET}"
        yield from (f"{_GREEN}+     {line}{_RESET}" for line in _values(pair.found))
    else:
        yield f"  {head}"
        for one in pair.differences:
            yield from (f"{_RED}-     {line}{_RESET}" for line in _said(one.name, one.expected))
            yield from (f"{_GREEN}+     {line}{_RESET}" for line in _said(one.name, one.found))


def _head(file: CaseFile, pair: Pair) -> str:
    if pair.expected is not None:
        query, documents = pair.expected.query.id, pair.expected.documents
    else:
        assert pair.found is not None
        query, documents = pair.found.match.query, pair.found.documents
    return f"match {documents}" if len(file.queries) == 1 else f"match {query}: {documents}"


def _why_not(pair: Pair) -> list[str]:
    if pair.why_not is None:
        return ["a document that it joins was not published"]
    if pair.why_not.holds:
        return ["these documents match, but not once more than the lines above say"]
    return render_reason(pair.why_not).splitlines()


def _values(found: CaseMatch) -> Iterator[str]:
    """Yield what the first witness of a match has, as a case file says it."""
    for name, node in found.match.witnesses[0].items():
        yield f"{name} = {' '.join((node.value or '').split())}"


def _said(name: str, value: str) -> list[str]:
    if name in ("output", "parameters"):
        first, *more = value.splitlines() or [""]
        return [f"{name} {first}", *(f"    {line}" for line in more)]
    return [f"{name} = {value}"]


def as_data(file: CaseFile, trial: Trial) -> dict[str, Any]:
    """Return what came of a case as plain values."""
    return {
        "file": str(file.path),
        "line": trial.case.line,
        "case": trial.case.name,
        "passed": trial.passed,
        "matches": [_pair_data(pair) for pair in trial.pairs],
    }


def _pair_data(pair: Pair) -> dict[str, Any]:
    query = pair.expected.query.id if pair.expected else pair.found and pair.found.match.query
    data: dict[str, Any] = {
        "query": query,
        "documents": pair.expected.documents
        if pair.expected
        else pair.found and pair.found.documents,
        "expected": pair.expected is not None,
        "found": pair.found is not None,
        "differences": [
            {"name": one.name, "expected": one.expected, "found": one.found}
            for one in pair.differences
        ],
    }
    if pair.why_not is not None:
        data["why_not"] = pair.why_not.as_data()
    return data


def as_junit(results: Sequence[tuple[CaseFile, Sequence[Trial]]]) -> str:
    """Return what came of files as JUnit XML, which CI servers read."""
    root = ElementTree.Element("testsuites", name="xscl test")
    for file, trials in results:
        failures = sum(not trial.passed for trial in trials)
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=str(file.path),
            tests=str(len(trials)),
            failures=str(failures),
            errors="0",
        )
        for trial in trials:
            place = {"file": str(file.path), "line": str(trial.case.line)}
            named = {"name": trial.case.name, "classname": file.path.stem, **place}
            element = ElementTree.SubElement(suite, "testcase", named)
            if not trial.passed:
                failure = ElementTree.SubElement(element, "failure", message="matches differ")
                failure.text = uncoloured(render_trial(file, trial))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode") + "\n"


def uncoloured(text: str) -> str:
    """Return a text without the colours of `render_trial`."""
    for code in (_GREEN, _RED, _BOLD, _RESET):
        text = text.replace(code, "")
    return text


def accepted(file: CaseFile, trials: Sequence[Trial]) -> str:
    """Return the case file with what was found as what is expected, in cases that failed.

    Of a match that was expected, the same is said as before; comments between the matches of such
    a case are lost.
    """
    lines = file.source.splitlines()
    for trial in sorted(trials, key=lambda trial: trial.case.line, reverse=True):
        if not trial.passed:
            first, last = trial.case.first_line, trial.case.last_line
            indent = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
            lines[first - 1 : last] = [f"{indent}{line}" for line in _expectations(file, trial)]
    return "\n".join(lines) + "\n"


def _expectations(file: CaseFile, trial: Trial) -> Iterator[str]:
    found = [pair for pair in trial.pairs if pair.found is not None]
    if not found:
        yield "no match"
    for pair in found:
        yield _head(file, pair)
        for name, value in _details(pair):
            yield from (f"    {line}" for line in _said(name, value))


def _details(pair: Pair) -> Iterator[tuple[str, str]]:
    """Yield what was said of an expected match, as it was found."""
    expected, found = pair.expected, pair.found
    if expected is None or found is None:
        return
    for name, value in expected.variables.items():
        values = [" ".join(each.split()) for each in found.values(name)]
        if values:
            yield name, value if value in values else values[0]
    if expected.parameters is not None:
        yield "parameters", spell_parameters(expected.query, found.match.parameters)
    if expected.output is not None:
        is_other = any(one.name == "output" for one in pair.differences)
        yield "output", found.match.output if is_other else expected.output
