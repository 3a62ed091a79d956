"""The plan of RUMOR for a set of queries: m-ops, and the m-rules that made them.

It is read off the set of queries as the engine has it (`broker.matching.queries`), not made beside
it: an m-op is what the engine evaluates once, a pass over documents, a template, a decision, or the
rows of a block.  A rule has fired where an m-op does the work of several operators.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from broker.explain.templatetext import counted
from broker.matching.mrules import MRule, point_of, unshared
from broker.matching.queries.queryset import InForce, QuerySet
from broker.matching.queries.registration import RegisteredQuery, publishers_first
from broker.matching.uses import Use
from templates.chaindecision import DecidedChains
from templates.clause import Clause
from templates.queryclass import QueryClass
from templates.rundecision import DecidedRuns
from xscl.query import Query

__all__ = [
    "ABSENT",
    "Fired",
    "MOp",
    "QueryPlan",
    "plan_in_force",
    "plan_of",
    "plan_read",
    "render_plan",
]

ABSENT = {
    MRule.S_ALPHA: "an aggregate is computed over the matches of its own statement",
    MRule.C_ALPHA: "the same: rows of WINDOW belong to one statement",
    MRule.C_MU: "repetitions share where they are equal (s_μ), not by their first units",
    MRule.C_PI: "what SELECT builds is built once for each match, whoever has subscribed",
}
"""The rules that never fire, and why."""

_HOUR_US = 3_600_000_000
_STAND_INS: dict[str, Any] = {"duration": _HOUR_US, "number": 0.0}


@dataclass(frozen=True, slots=True)
class Fired:
    """A rule that made one of several: `saves` says what, in words, `operators` how many."""

    rule: MRule
    operators: int
    saves: str

    def as_data(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "rule": self.rule.plain,
            "symbol": self.rule.symbol,
            "operators": self.operators,
            "saves": self.saves,
        }


@dataclass(frozen=True, slots=True)
class MOp:
    """What is evaluated once for some operators of some queries.

    `reads` are the streams whose documents it is about, `below` the numbers of the m-ops whose
    tuples it takes.
    """

    number: int
    kind: str
    reads: tuple[str, ...]
    operators: int
    queries: tuple[str, ...]
    fired: tuple[Fired, ...]
    below: tuple[int, ...] = ()

    def as_data(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "number": self.number,
            "kind": self.kind,
            "reads": list(self.reads),
            "operators": self.operators,
            "queries": list(self.queries),
            "rules": [each.as_data() for each in self.fired],
            "below": list(self.below),
        }


@dataclass(frozen=True, slots=True)
class QueryPlan:
    """The m-ops of a set of queries, passes over documents first; `without` are rules left out."""

    ops: tuple[MOp, ...]
    without: tuple[MRule, ...] = ()

    def fired(self) -> set[MRule]:
        """Return the rules that have fired."""
        return {fired.rule for op in self.ops for fired in op.fired}

    def of_query(self, query_id: str) -> QueryPlan:
        """Return the m-ops that work for a query, by the numbers that they have here."""
        return QueryPlan(tuple(op for op in self.ops if query_id in op.queries), self.without)

    def as_data(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "operators": sum(op.operators for op in self.ops),
            "m_ops": [op.as_data() for op in self.ops],
            "without": [rule.plain for rule in self.without],
            "never": {rule.plain: reason for rule, reason in ABSENT.items()},
        }


def plan_of(
    queries: Sequence[Query], *, lateness_us: int, without: Collection[MRule] = ()
) -> QueryPlan:
    """Return the plan of queries that are registered together, each with one assignment."""
    classes = _Classes()
    found = QuerySet(classes, lateness_us=lateness_us, without=without)
    registered = [_registered(query, point_of(i, without)) for i, query in enumerate(queries)]
    for each in publishers_first(registered):
        found.add(each)
    return plan_in_force(found.in_force(), without)


def plan_in_force(found: InForce, without: Collection[MRule] = ()) -> QueryPlan:
    """Return the plan of what is evaluated."""
    passes = tuple(_passes(found))
    ops = (*passes, *_operators(found.uses, len(passes) + 1, without))
    return QueryPlan(ops, tuple(rule for rule in MRule if rule in without))


def plan_read(data: Mapping[str, Any]) -> QueryPlan:
    """Return the plan that `QueryPlan.as_data` gave as plain values."""
    rules = {rule.plain: rule for rule in MRule}
    ops = tuple(
        MOp(
            op["number"],
            op["kind"],
            tuple(op["reads"]),
            op["operators"],
            tuple(op["queries"]),
            tuple(
                Fired(rules[each["rule"]], each["operators"], each["saves"]) for each in op["rules"]
            ),
            tuple(op["below"]),
        )
        for op in data["m_ops"]
    )
    return QueryPlan(ops, tuple(rules[name] for name in data["without"]))


def _registered(query: Query, point: int) -> RegisteredQuery:
    values = {name: _STAND_INS.get(kind, f"${name}") for name, kind in query.parameters}
    return RegisteredQuery(query, point, assignments=(values,) if values else ())


class _Classes:
    """Numbers classes, and evaluates none."""

    def __init__(self) -> None:
        self._numbers: dict[QueryClass, int] = {}

    def add(
        self,
        query_class: QueryClass,
        window_us: int,
        point: int,
        least: Sequence[float],
        holder: int,
        times: int,
    ) -> int:
        """Return the number of a class."""
        return self._numbers.setdefault(query_class, len(self._numbers) + 1)

    def remove(
        self,
        number: int,
        window_us: int,
        point: int,
        least: Sequence[float],
        holder: int,
        times: int,
    ) -> None:
        """Forget nothing."""

    def give(
        self, number: int, window_us: int, point: int, said: Sequence[str], times: int
    ) -> None:
        """Decide nothing."""

    def take_back(
        self, number: int, window_us: int, point: int, said: Sequence[str], times: int
    ) -> None:
        """Decide nothing."""

    def retain(self, number: int, retention_us: int, times: int) -> None:
        """Keep nothing."""

    def release(self, number: int, retention_us: int, times: int) -> None:
        """Release nothing."""


def _passes(found: InForce) -> Iterator[MOp]:
    """Yield the m-ops that find patterns: one automaton for all of a stream."""
    readers: dict[str, list[str]] = defaultdict(list)
    for use in found.uses:
        for stream in _streams([use]):
            readers[stream].append(use.topic.query.id)
    streams = (definition.stream for _, definition in found.definitions)
    patterns = Counter(stream for stream in streams if not stream.startswith("#"))
    for number, (stream, count) in enumerate(patterns.items(), 1):
        fired: tuple[Fired, ...] = ()
        uses = len(readers[stream])
        if count > 1 or uses > 1:
            saves = f"one pass over a document finds {counted(count, 'pattern', 's')}"
            saves += f" for {counted(uses, 'operator', 's')}"
            fired = (Fired(MRule.S_SIGMA, max(count, uses), saves),)
        queries = tuple(dict.fromkeys(readers[stream]))
        yield MOp(number, "patterns", (stream,), count, queries, fired)


def _operators(uses: Sequence[Use], first: int, without: Collection[MRule]) -> Iterator[MOp]:
    """Yield the m-ops of templates, blocks and decisions, which are numbered from `first` on."""
    by_class: dict[int, list[Use]] = defaultdict(list)
    for use in uses:
        by_class[use.query_class].append(use)
    by_target: dict[Any, list[list[Use]]] = defaultdict(list)
    for number in sorted(by_class):
        use = by_class[number][0]
        query_class = unshared(use.clause.query_class, use, without)
        by_target[_target(query_class)].append(by_class[number])
    made: dict[Clause, int] = {}
    for number, alike in enumerate(by_target.values(), first):
        made |= {use.clause: number for some in alike for use in some}
    for number, ((kind, target), alike) in enumerate(by_target.items(), first):
        own = [use for some in alike for use in some]
        fired: list[Fired] = []
        if len(alike) > 1:
            fired.append(_across(kind, target, len(alike)))
        fired += _within(kind, alike)
        queries = tuple(dict.fromkeys(use.topic.query.id for use in own))
        taken = (each.below for use in own for each in use.clause.sources)
        below = {made[each] for each in taken if each is not None and each in made} - {number}
        streams = tuple(sorted(_streams(own)))
        yield MOp(number, kind, streams, len(own), queries, tuple(fired), tuple(sorted(below)))


def _target(query_class: QueryClass) -> tuple[str, Any]:
    decided = query_class.decided
    if isinstance(decided, DecidedRuns | DecidedChains):
        return "repetition", decided.decision
    if decided is not None:
        return decided.decision.kind.value or "decision", decided.decision
    if not query_class.template.has_right:
        return "block", query_class
    return "join", query_class.template


def _across(kind: str, target: Any, classes: int) -> Fired:
    if kind == "join" and target.value_joins:
        saves = f"one conjunctive query joins for {classes:,} query classes, whose inputs differ"
        return Fired(MRule.C_JOIN, classes, saves)
    return Fired(MRule.DEFAULT, classes, f"{classes:,} alike are evaluated one after the other")


def _within(kind: str, by_class: Sequence[Sequence[Use]]) -> Iterator[Fired]:
    """Yield the rules that made one of the uses of each class."""
    rule = {"join": MRule.S_JOIN, "repetition": MRule.S_MU}.get(kind, MRule.S_SEQ)
    common = [use for uses in by_class for use in uses if use.clause.is_common]
    own = [[use for use in uses if not use.clause.is_common] for uses in by_class]
    several = [uses for uses in own if len(uses) > 1]
    strings = [len({use.asked.equal for use in uses}) for uses in several]
    if kind in ("join", "block") and (asked := sum(each for each in strings if each > 1)):
        saves = f"{asked:,} choices of strings are looked up by their hashes"
        yield Fired(MRule.S_SIGMA, asked, saves)
    bounds = [len({use.asked.bounds for use in uses}) for uses in several]
    if kind in ("join", "block") and (asked := sum(each for each in bounds if each > 1)):
        saves = f"{asked:,} choices of bounds are looked up in sorted lists"
        yield Fired(MRule.S_SIGMA, asked, saves)
    windows = [len({use.window_us for use in uses}) for uses in several]
    if kind == "join" and (differing := sum(each for each in windows if each > 1)):
        saves = f"the widest of {differing:,} windows is joined, and tuples go to who asks for them"
        yield Fired(rule, differing, saves)
    points = [len({use.topic.registration_point for use in uses}) for uses in several]
    if kind in ("join", "block") and (differing := sum(each for each in points if each > 1)):
        saves = f"{differing:,} registration points: tuples go to who was there before them"
        yield Fired(MRule.S_SIGMA, differing, saves)
    if equal := sum(map(_equal, several)):
        is_sequence = kind == "join" and not _is_symmetric(several)
        one = MRule.S_SEQ if is_sequence else rule
        yield Fired(one, equal, f"{counted(equal, 'operator', 's')} less: others are the very same")
    if len(common) > 1:
        lengths = len({use.window_us for use in common})
        widest = f", of the widest of {lengths:,} windows" if lengths > 1 else ""
        saves = f"{len(common):,} hand on their tuples in one stream{widest}, each with whose it is"
        yield Fired(MRule.C_SEQ, len(common), saves)
        if groups := len(common) - len({use.asked.equal for use in common}):
            saves = f"strings are asked for {counted(groups, 'time', 's')} less of a tuple of it"
            yield Fired(MRule.C_SIGMA, groups, saves)


def _equal(uses: Sequence[Use]) -> int:
    """Return how many uses another query has, too, with the same window and box."""
    asked = {(use.topic.query.id, use.window_us, use.asked) for use in uses}
    return len(asked) - len({each[1:] for each in asked})


def _is_symmetric(several: Sequence[Sequence[Use]]) -> bool:
    return all(use.clause.query_class.is_symmetric for uses in several for use in uses)


def _streams(uses: Iterable[Use]) -> set[str]:
    """Return the streams that uses read; STRICT and PARTITION read all documents of theirs."""
    found: set[str] = set()
    for use in uses:
        streams = [block.stream for block in use.topic.query.blocks]
        for block in use.clause.blocks:
            found.update(streams[block : block + 1] or streams)
    return found


def render_plan(plan: QueryPlan) -> str:
    """Return a plan as text for people."""
    operators = sum(op.operators for op in plan.ops)
    lines = [f"{counted(len(plan.ops), 'm-op', 's')} for {counted(operators, 'operator', 's')}"]
    for op in plan.ops:
        queries = ", ".join(op.queries[:4]) + (", ..." if len(op.queries) > 4 else "")
        lines += ["", f"{op.number}  {op.kind} on {', '.join(op.reads)}: {queries}"]
        lines += [f"   {fired.rule.symbol:<8}{fired.saves}" for fired in op.fired]
    if plan.without:
        lines += ["", f"left out: {', '.join(rule.symbol for rule in plan.without)}"]
    lines += ["", "never fired:"]
    lines += [f"   {rule.symbol:<8}{reason}" for rule, reason in ABSENT.items()]
    return "\n".join(lines) + "\n"
