"""LOSS: from syntax to the probability and the delay of a block."""

from __future__ import annotations

from itertools import pairwise

from xscl.conditions import ParameterUse
from xscl.path import Parameter
from xscl.query import Delay, Loss
from xscl.report import Report
from xscl.sequence import INFINITE_US, Window
from xscl.syntax import DurationSyntax, LossSyntax, ParameterRef

__all__ = ["build_loss"]

_WANTED = {
    "uniform": "`uniform(0 s, 9 s)` has the least delay and the longest",
    "exp": "`exp(9 s)` has the mean delay, longer than zero",
    "cdf": "`cdf(1 s: 0.5, 9 s: 1)` has delays in order, each with the share that has come by then",
}


def build_loss(syntax: LossSyntax, uses: list[ParameterUse], report: Report) -> Loss | None:
    """Return how a block is lost; report what cannot be."""
    errors = report.errors
    probability = syntax.probability
    if isinstance(probability, ParameterRef):
        report.error(
            "XS605",
            probability.span,
            "how often a document is lost is the same for all subscriptions",
            "write a number, as in `LOSS 0.1`",
        )
    elif not 0 <= probability.value < 1:
        report.error(
            "XS909",
            probability.span,
            "a probability of loss is 0 or more and less than 1",
            "`LOSS 0.1` says that one in ten is lost",
        )
    if not _is_delay(syntax):
        why, hint = _wrong_delay(syntax)
        report.error("XS910", syntax.span, f"this is no delay: {why}", hint)
    if report.errors > errors or isinstance(probability, ParameterRef):
        return None
    lengths = tuple(_length(each, uses) for each in syntax.lengths)
    shares = tuple(each.value for each in syntax.numbers)
    return Loss(probability.value, Delay(syntax.delay, lengths, shares), syntax.span)


def _length(syntax: DurationSyntax, uses: list[ParameterUse]) -> Window | Parameter:
    if syntax.parameter is not None:
        uses.append(ParameterUse(syntax.parameter, "duration", syntax.span))
        return Parameter(syntax.parameter)
    assert syntax.length_us is not None
    return Window(syntax.length_us)


def _is_delay(syntax: LossSyntax) -> bool:
    """Whether a delay has what its kind needs; parameters are taken as they come."""
    lengths = [each.length_us for each in syntax.lengths if each.length_us is not None]
    shares = [each.value for each in syntax.numbers]
    if any(each >= INFINITE_US for each in lengths) or not _is_rising(lengths):
        return False
    if syntax.delay == "uniform":
        return len(syntax.lengths) == 2
    if syntax.delay == "exp":
        return len(syntax.lengths) == 1 and 0 not in lengths
    return _is_rising(shares) and all(0 <= each <= 1 for each in shares)


def _wrong_delay(syntax: LossSyntax) -> tuple[str, str]:
    """Return what is wrong with a delay, and what to write."""
    hint = _WANTED[syntax.delay]
    lengths = [each.length_us for each in syntax.lengths]
    if any(each is not None and each >= INFINITE_US for each in lengths):
        return f"`{syntax.delay}` with a delay that never ends", hint
    if syntax.delay == "uniform":
        if len(lengths) != 2:
            given = f"{len(lengths)} duration{'' if len(lengths) == 1 else 's'}"
            return f"`uniform` has two durations, and {given} given here", hint
        return "of `uniform` the second duration is longer than the first", hint
    if syntax.delay == "exp":
        return "`exp` has one duration, longer than zero", hint
    return "of `cdf` durations and shares rise, and a share is at most 1", hint


def _is_rising(numbers: list[int] | list[float]) -> bool:
    return all(one < other for one, other in pairwise(numbers))
