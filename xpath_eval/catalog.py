"""The tree patterns of all queries as one tree of definitions.

Every node of every pattern has a **variable**: an integer that names its definition, the chain of
steps and filters that leads to it from the document node of its stream.  Equal definitions are
one variable, whatever a query calls it (Hong 2009, section 6.3).  So prefixes are
shared by all query blocks, and the number of variables grows with the different things that
queries ask for, not with the number of queries.

A node with prefilters is one variable whatever constants it is asked for with (`xscl.prefilters`).
These are counted beside it, and a plan has what they come to.

What the join needs of them is asked for by pairs: the edge (v, d) says that the nodes of `d`
below each node of `v` are wanted, by number; `v` is `d` or stands above it in the tree.  All is
counted, so `remove` undoes `add` exactly: without patterns the catalog is as new.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from operator import itemgetter
from threading import Lock
from typing import NamedTuple, TypeVar

from xpath_eval.prefilters import Admission, Constants
from xscl.pattern import (
    DOCUMENT,
    PatternNode,
    Prefilter,
    TreePattern,
    TuplePattern,
    VariablePair,
)

__all__ = ["ANY_STREAM", "Definition", "EvaluationPlan", "Numbering", "PatternCatalog"]

ANY_STREAM = "*"

_NODES_KEPT = 16_384
"""Nodes of patterns whose steps are known without a look at what they ask."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Definition:
    """One variable: the variable above it and the step that leads here.

    A stream's document node has no step; its `parent` is -1.
    """

    parent: int
    stream: str
    step: PatternNode | None


@dataclass(frozen=True)
class EvaluationPlan:
    """What an evaluator needs to know, as a value that can be sent to workers.

    `edges` are the pairs of variables that are wanted, `valued` the variables whose string values
    are compared by some query, `admitted` what the prefilters of variables let through.  Equal
    plans have equal versions.  A catalog knows the digest of its definitions as it goes along; for
    a plan made by hand it is worked out.
    """

    definitions: tuple[tuple[int, Definition], ...]
    edges: tuple[VariablePair, ...]
    valued: frozenset[int]
    definitions_digest: int | None = field(default=None, compare=False, repr=False)
    admitted: tuple[tuple[int, Admission], ...] = ()

    @cached_property
    def version(self) -> str:
        """A hash of all that the plan says."""
        digest = self.definitions_digest
        if digest is None:
            digest = sum(_digest(v, d) for v, d in self.definitions) % _DIGESTS
        admitted = [
            (v, each.prefilter, each.bound, each.least, each.digest) for v, each in self.admitted
        ]
        text = repr((digest, self.edges, sorted(self.valued), admitted))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


_DIGESTS = 1 << 128


def _digest(variable: int, definition: Definition, spelled: str | None = None) -> int:
    """Return a hash of one definition; those of a plan are added up, so that order is nothing.

    `spelled` is the `repr` of its step.
    """
    step = spelled or repr(definition.step)
    text = f"({variable}, {definition.parent}, {definition.stream!r}, {step})"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=16).digest(), "big")


class _Step(NamedTuple):
    """A step by its number: `bare` is the node without its place and what a query calls it."""

    number: int
    bare: PatternNode
    spelled: str


class Numbering:
    """The numbers of variables: a definition has one for as long as this lives, in any catalog.

    Catalogs that share a numbering understand one another's plans and witnesses, whatever came and
    went in each.  A number is kept for every definition that was ever asked for: some 200 bytes,
    and a step for all definitions that have an equal one.
    """

    def __init__(self) -> None:
        self._numbers: dict[tuple[object, ...], int] = {}
        self._tuples: dict[str, int] = {}
        self._next = 0
        self._steps: dict[tuple[object, ...], _Step] = {}
        # Nodes that many patterns have are one object, which is kept so that no other has its id.
        self.by_node: dict[int, tuple[PatternNode, _Step]] = {}
        self._lock = Lock()

    def number(self, key: tuple[object, ...]) -> int:
        """Return the number of a definition; a node's is larger than that of the node above it."""
        with self._lock:
            number = self._numbers.get(key)
            if number is None:
                number = self._numbers[key] = self._next
                self._next += 1
        return number

    def tuples(self, pattern: TuplePattern) -> tuple[int, ...]:
        """Return the numbers of the root and of each term of tuples; those of a stream are one."""
        with self._lock:
            first = self._tuples.get(pattern.stream)
            if first is None:
                first = self._tuples[pattern.stream] = self._next
                self._next += 1 + len(pattern.terms)
        return tuple(range(first, first + 1 + len(pattern.terms)))

    def step(self, node: PatternNode) -> _Step:
        """Return what a node has in common with all that have an equal step."""
        known = self.by_node.get(id(node))
        if known is not None:
            return known[1]
        step = self._step(node)
        if len(self.by_node) >= _NODES_KEPT:
            self.by_node.clear()
        self.by_node[id(node)] = node, step
        return step

    def _step(self, node: PatternNode) -> _Step:
        asked = node.step_definition
        step = self._steps.get(asked)
        if step is None:
            bare = replace(node, parent=DOCUMENT, terms=(), tests=(), admitted=())
            with self._lock:
                own = _Step(len(self._steps), bare, repr(bare))
                step = self._steps.setdefault(asked, own)
        return step


@dataclass(slots=True)
class _TupleVariables:
    """The variables of the tuples of a stream, and how often they are used."""

    pattern: TuplePattern
    variables: tuple[int, ...]
    uses: int = 0


@dataclass
class PatternCatalog:
    """All definitions in use, with how often each is used.

    Tuples that operators hand on have variables and no definitions: they are not looked for in
    documents.
    """

    numbering: Numbering = field(default_factory=Numbering)
    definitions: dict[int, Definition] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    _ids: dict[tuple[object, ...], int] = field(default_factory=dict)
    _tuples: dict[str, _TupleVariables] = field(default_factory=dict)
    # A `Counter` takes three times as long to count one.
    _uses: dict[int, int] = field(default_factory=partial(defaultdict, int))
    _edges: dict[VariablePair, int] = field(default_factory=partial(defaultdict, int))
    _valued: dict[int, int] = field(default_factory=partial(defaultdict, int))
    _admitted: dict[tuple[int, Prefilter], Constants] = field(default_factory=dict)
    _digest: int = 0
    _plan: EvaluationPlan | None = None

    def add(self, pattern: TreePattern | TuplePattern) -> tuple[int, ...]:
        """Return the variable of each node of a pattern, in the pattern's order."""
        if isinstance(pattern, TuplePattern):
            return self._add_tuples(pattern)
        root = self._use(DOCUMENT, pattern.stream, None)
        variables: list[int] = []
        ids, uses, names, by_node = self._ids, self._uses, self.names, self.numbering.by_node
        for node in pattern.nodes:
            parent = root if node.parent == DOCUMENT else variables[node.parent]
            of_node = by_node.get(id(node))
            step = self.numbering.step(node) if of_node is None else of_node[1]
            known = ids.get((parent, step.number))
            if known is None:
                variable = self._use(parent, pattern.stream, step)
            else:
                variable = known
                uses[variable] += 1
            variables.append(variable)
            if node.terms and variable not in names:
                names[variable] = node.terms[0]
            if node.admitted:
                self._admit(variable, node)
        return tuple(variables)

    def _admit(self, variable: int, node: PatternNode) -> None:
        """Count the constants of a node with prefilters."""
        for prefilter, constant in node.admitted:
            constants = self._admitted.get((variable, prefilter))
            if constants is None:
                constants = self._admitted[variable, prefilter] = Constants.of(prefilter)
            if constants.add(constant):
                self._plan = None

    def _add_tuples(self, pattern: TuplePattern) -> tuple[int, ...]:
        held = self._tuples.get(pattern.stream)
        if held is None:
            held = _TupleVariables(pattern, self.numbering.tuples(pattern))
            self._tuples[pattern.stream] = held
        held.uses += 1
        return held.variables

    def tuple_names(self) -> dict[int, str]:
        """Return what the variables of tuples are called: after the term, or `tuple`."""
        return {
            variable: name
            for held in self._tuples.values()
            for variable, name in zip(held.variables, ("tuple", *held.pattern.terms), strict=True)
        }

    def remove(self, pattern: TreePattern | TuplePattern) -> None:
        """Undo one `add` of an equal pattern."""
        if isinstance(pattern, TuplePattern):
            held = self._tuples[pattern.stream]
            held.uses -= 1
            if not held.uses:
                del self._tuples[pattern.stream]
            return
        root, *variables = self._find(pattern)
        for variable, node in zip(variables, pattern.nodes, strict=True):
            for prefilter, constant in node.admitted:
                constants = self._admitted[variable, prefilter]
                if constants.remove(constant):
                    self._plan = None
                if not constants:
                    del self._admitted[variable, prefilter]
        for variable in reversed([root, *variables]):
            self._release(variable)

    def want(self, edges: Iterable[VariablePair], valued: Iterable[int]) -> None:
        """Ask for pairs of variables and for the values of variables."""
        self._plan = None
        _add(self._edges, edges)
        _add(self._valued, valued)

    def unwant(self, edges: Iterable[VariablePair], valued: Iterable[int]) -> None:
        """Undo one `want` of the same."""
        self._plan = None
        _subtract(self._edges, edges)
        _subtract(self._valued, valued)

    def plan(self) -> EvaluationPlan:
        """Return what is asked for now."""
        if self._plan is None:
            self._plan = EvaluationPlan(
                tuple(sorted(self.definitions.items(), key=itemgetter(0))),
                tuple(sorted(self._edges)),
                frozenset(self._valued),
                self._digest,
                tuple(
                    (variable, constants.admission)
                    for (variable, _), constants in sorted(
                        self._admitted.items(), key=lambda each: (each[0][0], repr(each[0][1]))
                    )
                ),
            )
        return self._plan

    def _use(self, parent: int, stream: str, step: _Step | None) -> int:
        key = _key(parent, stream, step)
        variable = self._ids.get(key)
        if variable is None:
            variable = self._ids[key] = self.numbering.number(key)
            self._define(variable, parent, stream, step)
        self._uses[variable] += 1
        return variable

    def _define(self, variable: int, parent: int, stream: str, step: _Step | None) -> None:
        definition = Definition(parent, stream, step and step.bare)
        self.definitions[variable] = definition
        digest = _digest(variable, definition, step and step.spelled)
        self._digest = (self._digest + digest) % _DIGESTS
        self._plan = None

    def _find(self, pattern: TreePattern) -> Iterable[int]:
        root = self._ids[_key(DOCUMENT, pattern.stream, None)]
        yield root
        variables: list[int] = []
        for node in pattern.nodes:
            parent = root if node.parent == DOCUMENT else variables[node.parent]
            variables.append(self._ids[_key(parent, pattern.stream, self.numbering.step(node))])
            yield variables[-1]

    def _release(self, variable: int) -> None:
        self._uses[variable] -= 1
        if self._uses[variable]:
            return
        del self._uses[variable]
        definition = self.definitions.pop(variable)
        self._digest = (self._digest - _digest(variable, definition)) % _DIGESTS
        self._plan = None
        step = None if definition.step is None else self.numbering.step(definition.step)
        del self._ids[_key(definition.parent, definition.stream, step)]
        self.names.pop(variable, None)


def _key(parent: int, stream: str, step: _Step | None) -> tuple[object, ...]:
    """Return what tells a definition from all others; numbers tell streams and steps apart."""
    return (DOCUMENT, stream) if step is None else (parent, step.number)


def _add(counts: dict[_T, int], items: Iterable[_T]) -> None:
    for item in items:
        counts[item] += 1


def _subtract(counts: dict[_T, int], items: Iterable[_T]) -> None:
    for item in items:
        counts[item] -= 1
        if not counts[item]:
            del counts[item]
