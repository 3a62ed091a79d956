"""The functions of the language: their argument counts, and what a parameter in them must be."""

from __future__ import annotations

from collections.abc import Iterable

from xscl.habits import NO_NOW
from xscl.report import Report
from xscl.spelling import closest
from xscl.syntax import Expression, FunctionCall, StringLiteral

__all__ = [
    "AGGREGATES",
    "DERIVING_FUNCTIONS",
    "MEASURES",
    "NODE_FUNCTIONS",
    "ROW_AGGREGATES",
    "SEQUENCE_FUNCTIONS",
    "SETS",
    "STRING_TESTS",
    "TERM_FUNCTIONS",
    "VALUE_FUNCTIONS",
    "check_arity",
    "check_pattern",
    "check_sequence_arity",
    "parameter_type",
    "unknown_function",
]

_ARITIES: dict[str, tuple[int, int]] = {
    "string": (0, 1),
    "normalize-space": (0, 1),
    "lower-case": (1, 1),
    "upper-case": (1, 1),
    "translate": (3, 3),
    "substring": (2, 3),
    "substring-before": (2, 2),
    "substring-after": (2, 2),
    "concat": (2, 100),
    "replace": (3, 4),
    "tokenize": (2, 3),
    "host": (0, 1),
    "string-length": (0, 1),
    "contains": (2, 2),
    "starts-with": (2, 2),
    "ends-with": (2, 2),
    "matches": (2, 3),
    "not": (1, 1),
}

XPATH1_FUNCTIONS: dict[str, tuple[int, int]] = {
    "last": (0, 0),
    "position": (0, 0),
    "count": (1, 1),
    "id": (1, 1),
    "local-name": (0, 1),
    "namespace-uri": (0, 1),
    "name": (0, 1),
    "string": (0, 1),
    "concat": (2, 100),
    "starts-with": (2, 2),
    "contains": (2, 2),
    "substring-before": (2, 2),
    "substring-after": (2, 2),
    "substring": (2, 3),
    "string-length": (0, 1),
    "normalize-space": (0, 1),
    "translate": (3, 3),
    "boolean": (1, 1),
    "not": (1, 1),
    "true": (0, 0),
    "false": (0, 0),
    "lang": (1, 1),
    "number": (0, 1),
    "sum": (1, 1),
    "floor": (1, 1),
    "ceiling": (1, 1),
    "round": (1, 1),
}
"""The core library of XPath 1.0, each function with its least and greatest argument count."""

DERIVING_FUNCTIONS = frozenset(
    (
        "string",
        "normalize-space",
        "lower-case",
        "upper-case",
        "translate",
        "substring",
        "substring-before",
        "substring-after",
        "concat",
        "replace",
        "tokenize",
        "host",
    )
)
"""Section 5: what may be wrapped around a variable in an operator's predicate."""

VALUE_FUNCTIONS = DERIVING_FUNCTIONS | {"string-length"}
"""What a predicate of a step may compare beside functions that only XPath 2.0 has."""

NODE_FUNCTIONS = frozenset(
    {"string-length", "normalize-space", "lower-case", "upper-case", "replace", "tokenize", "host"}
)
"""Section 3: functions of paths that are shared."""

STRING_TESTS = frozenset({"contains", "starts-with", "ends-with", "matches"})

MEASURES = frozenset({"jaccard", "containment", "overlap", "similar"})
"""How much two sets have in common."""

SETS = frozenset({"words", "shingles", "tokenize"})
"""What makes a set of a text."""

AGGREGATES = frozenset({"first", "last", "count", "sum", "avg", "min", "max"})
"""What speaks of all elements of a repetition, or of all matches of a row."""

ROW_AGGREGATES = AGGREGATES | {"argmax", "argmin", "collect"}
"""Aggregates of WINDOW."""

_SEQUENCE_ARITIES: dict[str, tuple[int, int]] = {
    "time": (1, 1),
    "revision": (1, 1),
    "start": (0, 0),
    "end": (0, 0),
    "dur": (0, 0),
    "confidence": (0, 0),
    "prev": (1, 2),
    "first": (1, 1),
    "last": (1, 1),
    "count": (0, 1),
    "sum": (1, 1),
    "avg": (1, 1),
    "min": (1, 1),
    "max": (1, 1),
    "argmax": (2, 2),
    "argmin": (2, 2),
    "collect": (1, 1),
    "exists": (1, 1),
    "empty": (1, 1),
    "jaccard": (2, 2),
    "containment": (2, 2),
    "overlap": (2, 2),
    "similar": (2, 2),
    "words": (1, 1),
    "shingles": (2, 2),
}
SEQUENCE_FUNCTIONS = frozenset(_SEQUENCE_ARITIES)
"""What operators' predicates and clauses have besides the functions of section 5."""

TERM_FUNCTIONS = STRING_TESTS | {"exists", "empty"}
"""What may stand in an operator's predicate without a comparison."""

_ELSEWHERE = {
    "length": "string-length",
    "len": "string-length",
    "lower": "lower-case",
    "tolower": "lower-case",
    "upper": "upper-case",
    "toupper": "upper-case",
    "trim": "normalize-space",
    "strip": "normalize-space",
    "substr": "substring",
    "split": "tokenize",
    "hostname": "host",
    "domain": "host",
    "regexp": "matches",
    "like": "matches",
    "regex-replace": "replace",
    "regexp-replace": "replace",
    "regexp_replace": "replace",
    "sub": "replace",
}
"""What other languages call some of the functions."""

_CLOCKS = frozenset(
    {"now", "today", "current-datetime", "current-date", "current_timestamp", "getdate"}
)

_PATTERN_ARGUMENT = {"matches": 1, "replace": 1, "tokenize": 1}


def parameter_type(function: str, index: int) -> str:
    """Return the type of a parameter that is this argument of a function."""
    return "number" if function == "substring" and index > 0 else "string"


def check_arity(call: FunctionCall, report: Report) -> None:
    """Report a call with too few or too many arguments, in a predicate of a step."""
    _check_count(call, _ARITIES.get(call.name) or XPATH1_FUNCTIONS[call.name], report)


def check_sequence_arity(call: FunctionCall, report: Report) -> None:
    """Report a call with too few or too many arguments, in an operator's predicate or a clause."""
    _check_count(call, _SEQUENCE_ARITIES.get(call.name) or _ARITIES[call.name], report)


def _check_count(call: FunctionCall, allowed: tuple[int, int], report: Report) -> None:
    least, most = allowed
    count = len(call.arguments)
    if least <= count <= most:
        return
    wanted = (
        str(least) if least == most else f"{least} to {most}" if most < 100 else f"{least} or more"
    )
    report.error(
        "XS302",
        call.span,
        f"`{call.name}` takes {wanted} argument{'' if wanted == '1' else 's'}, not {count}",
        f"as in `{call.name}({', '.join('xyz'[:least])})`",
    )


def check_pattern(call: FunctionCall, report: Report) -> None:
    """Report a regular expression that is none."""
    index = _PATTERN_ARGUMENT.get(call.name)
    if index is None or index >= len(call.arguments):
        return
    pattern = call.arguments[index]
    if not isinstance(pattern, StringLiteral):
        return
    from xscl.patterns import FLAGS, PatternError, compile_pattern

    flags = _flags(call, index + (2 if call.name == "replace" else 1))
    unknown = sorted(set(flags.value) - FLAGS.keys()) if flags is not None else []
    if flags is not None and unknown:
        hint = "the flags are i (in any case), m (lines), s (a dot is any character), x (layout)"
        report.error("XS306", flags.span, f"there is no flag `{unknown[0]}`", hint)
        return
    try:
        compiled = compile_pattern(pattern.value, flags.value if flags is not None else "")
    except PatternError as error:
        message = f"not a regular expression of XPath: {error}"
        report.error("XS306", pattern.span, message, error.hint)
        return
    if call.name != "matches" and compiled.fits_nothing():
        report.error(
            "XS306",
            pattern.span,
            f"`{call.name}` needs an expression that does not match the empty string",
            "write `+` where `*` stands",
        )


def _flags(call: FunctionCall, index: int) -> StringLiteral | None:
    flags: Expression | None = call.arguments[index] if index < len(call.arguments) else None
    return flags if isinstance(flags, StringLiteral) else None


def unknown_function(call: FunctionCall, known: Iterable[str], report: Report) -> None:
    """Report a function that does not exist here."""
    names = {each: each for each in known}
    names |= {other: name for other, name in _ELSEWHERE.items() if name in names}
    meant = closest(call.name, names)
    hint = f"did you mean `{names[meant]}`?" if meant else None
    if call.name.lower() in _CLOCKS:
        hint = NO_NOW
    elif call.name in XPATH1_FUNCTIONS:
        hint = f"it stands in predicates of steps: `a[{call.name}(...)]`"
    elif call.name in SEQUENCE_FUNCTIONS:
        hint = "it stands between an operator's braces, and behind WHERE"
    elif hint is None:
        hint = f"of texts there are {', '.join(sorted(DERIVING_FUNCTIONS))}"
    report.error("XS301", call.name_span, f"there is no function `{call.name}` here", hint)
