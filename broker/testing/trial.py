"""Runs a case: its documents through an engine in their own time, without a broker or a clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lxml import etree

from broker.documents.document import CLOCK, LAST_US, Document, tick
from broker.documents.recorded import number_lines
from broker.matching.engine import Engine, RegisteredQuery
from broker.matching.match import Match
from broker.registry.parameters import spell_parameters
from broker.testing.casefile import Case, CaseFile, ExpectedMatch
from broker.whynot import why_not
from broker.whynot.reason import Reason

__all__ = ["CaseMatch", "Difference", "Pair", "Trial", "run_case"]


@dataclass(frozen=True, slots=True)
class CaseMatch:
    """A match that a case has, by its documents as a case file writes them."""

    match: Match
    documents: str

    def values(self, name: str) -> list[str]:
        """Return what a variable is in the witnesses, each value once, in their order."""
        nodes = [witness[name] for witness in self.match.witnesses if name in witness]
        return list(dict.fromkeys(node.value or "" for node in nodes))


@dataclass(frozen=True, slots=True)
class Difference:
    """Something of a match that is not as expected: what, as it should be, and as it is."""

    name: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True)
class Pair:
    """An expected match, the one found for it, or one of the two alone.

    `why_not` says of a missing one what keeps its documents from matching.
    """

    expected: ExpectedMatch | None
    found: CaseMatch | None
    differences: tuple[Difference, ...] = ()
    why_not: Reason | None = None

    @property
    def holds(self) -> bool:
        """Whether it was expected, and is there as expected."""
        return self.expected is not None and self.found is not None and not self.differences


@dataclass(frozen=True, slots=True)
class Trial:
    """What came of a case; `pairs` are in the order of the file, then what was not expected."""

    case: Case
    pairs: tuple[Pair, ...]

    @property
    def passed(self) -> bool:
        """Whether the case has the matches that it expects, and no other."""
        return all(pair.holds for pair in self.pairs)


def run_case(file: CaseFile, case: Case) -> Trial:
    """Run a case's documents through its queries, and compare.

    Behind the last document the clock ticks later than everything, as at the end of a replay.
    """
    is_ordered = any(query.is_ordered for query in file.queries)
    lines = [*case.documents, *([tick(LAST_US)] if is_ordered else [])]
    documents = list(number_lines((f"{file.path}:{case.line}", line) for line in lines))
    engine = Engine(
        [
            RegisteredQuery(query, assignments=tuple(case.assignments.get(query.id, ())))
            for query in file.queries
        ],
        lateness_us=case.lateness_us,
    )
    xml = {document.docid: document.xml for document in documents}
    step = engine.process(
        engine.evaluate(documents), lambda ids: {docid: xml[docid] for docid in ids}
    )
    matches = [Match.read(found.line) for found in step.matches]
    names = _Names({match.id: match for match in matches})
    found = [CaseMatch(match, names.of(match)) for match in matches]
    there = [each for each in (*documents, *step.published) if each.stream != CLOCK]
    by_name = {names.document(each.key): each for each in there}
    return Trial(case, tuple(_Comparison(case, found, by_name).pairs()))


@dataclass(frozen=True, slots=True)
class _Names:
    """What case files call documents: their key, or what is behind a published one."""

    matches: Mapping[str, Match]

    def of(self, match: Match) -> str:
        """Return the documents of a match."""
        return " ".join(self.document(document.key) for document in match.documents)

    def document(self, key: str) -> str:
        """Return the name of the document with that key; a published one has its match's id."""
        behind = self.matches.get(key)
        return f"({self.of(behind)})" if behind is not None else key


@dataclass
class _Comparison:
    """Expected and found matches, brought together."""

    case: Case
    found: Sequence[CaseMatch]
    documents: Mapping[str, Document]
    taken: set[int] = field(default_factory=set)

    def pairs(self) -> Iterator[Pair]:
        """Yield what was expected with what fits best, and then what was not expected."""
        chosen = {id(each): self._best(each, is_exact=True) for each in self.case.expected}
        for expected in self.case.expected:
            found = chosen[id(expected)] or self._best(expected, is_exact=False)
            if found is None:
                yield Pair(expected, None, why_not=self._why_not(expected))
            else:
                yield Pair(expected, found, tuple(_differences(expected, found)))
        for i, found in enumerate(self.found):
            if i not in self.taken:
                yield Pair(None, found)

    def _best(self, expected: ExpectedMatch, *, is_exact: bool) -> CaseMatch | None:
        for i, found in enumerate(self.found):
            is_it = (found.match.query, found.documents) == (expected.query.id, expected.documents)
            if (
                is_it
                and i not in self.taken
                and not (is_exact and any(_differences(expected, found)))
            ):
                self.taken.add(i)
                return found
        return None

    def _why_not(self, expected: ExpectedMatch) -> Reason | None:
        """Return what keeps the documents apart, under the assignment that comes furthest."""
        query = expected.query
        documents = [self.documents.get(name) for name in _operands(expected.documents)]
        assignments: Sequence[Mapping[str, object] | None] = self.case.assignments.get(
            query.id, [None]
        )
        if expected.parameters is not None:
            assignments = [expected.parameters]
        if None in documents:
            return None  # it rests on a published document that is not there either
        reasons = [
            why_not(
                query,
                [document for document in documents if document is not None],
                lateness_us=self.case.lateness_us,
                parameters=each,
            )
            for each in assignments
        ]
        return max(reasons, key=lambda reason: reason.progress)


def _operands(documents: str) -> list[str]:
    """Return the names that stand in a row; what is in parentheses is one.

    >>> _operands("(a b) c")
    ['(a b)', 'c']
    """
    found, depth = [""], 0
    for character in documents:
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == " " and not depth:
            found.append("")
        else:
            found[-1] += character
    return found


def _differences(expected: ExpectedMatch, found: CaseMatch) -> Iterator[Difference]:
    for name, value in expected.variables.items():
        values = found.values(name)
        if value not in (" ".join(each.split()) for each in values):
            yield Difference(name, value, " | ".join(values) or "(not compared)")
    if expected.parameters is not None:
        wanted = spell_parameters(expected.query, expected.parameters)
        given = spell_parameters(expected.query, found.match.parameters)
        if wanted != given:
            yield Difference("parameters", wanted, given)
    if expected.output is not None and _canonical(expected.output) != _canonical(
        found.match.output
    ):
        yield Difference("output", expected.output, found.match.output)


def _canonical(xml: str) -> str:
    """Return XML so that layout, the order of attributes and the kind of quotes do not count."""
    text: str = etree.canonicalize(xml, strip_text=True)
    return text
