"""Names of variables that hold outside this process.

A variable's number is given by a `Numbering`, in the order in which definitions were asked for: it
means nothing in another process.  Its **name** is a digest of its definition, from the document
node down.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Set
from dataclasses import replace
from functools import partial

from xpath_eval.catalog import Definition, EvaluationPlan
from xpath_eval.prefilters import Admission, Missing

__all__ = ["NAME_BYTES", "AskedNames", "VariableNames"]

NAME_BYTES = 16

_HALF = NAME_BYTES // 2
_DOUBLE = struct.Struct(">d")


class VariableNames:
    """The names of the variables of one numbering, each worked out once."""

    def __init__(self) -> None:
        self._names: dict[int, bytes] = {}

    def of(self, plan: EvaluationPlan) -> dict[int, bytes]:
        """Return the name of every variable of a plan."""
        # A variable's number is larger than that of the one above it.
        for number, definition in plan.definitions:
            if number not in self._names:
                self._names[number] = self._name(definition)
        return {number: self._names[number] for number, _ in plan.definitions}

    def _name(self, definition: Definition) -> bytes:
        above = self._names.get(definition.parent, b"")
        step = definition.step and definition.step.step_definition
        return _digest(above, repr((definition.stream, step)).encode())


class AskedNames:
    """The edges and values that a plan asks for, by names that hold in every process.

    So are the constants that its prefilters admit; of inequalities it is the loosest bound, which
    stands behind half a name.  Witnesses of one plan serve any other plan that asks for no more.
    """

    def __init__(self, digests: Set[bytes]) -> None:
        self._digests = frozenset(digests)
        self._bounds = {each[:_HALF]: each[_HALF:] for each in digests}
        self.id = _digest(*sorted(self._digests)).hex()

    @classmethod
    def of(cls, plan: EvaluationPlan, names: VariableNames) -> AskedNames:
        """Return the edges and values that a plan asks for."""
        edges, valued = _asked(plan, names)
        admitted = {
            digest
            for variable, admission in plan.admitted
            for digest in _admitted(names.of(plan)[variable], admission)
        }
        return cls(edges.keys() | valued.keys() | admitted)

    @classmethod
    def read(cls, content: bytes) -> AskedNames:
        """Return the value of bytes that `written` made; raises `ValueError` for others."""
        if len(content) % NAME_BYTES:
            raise ValueError("is cut short")
        places = range(0, len(content), NAME_BYTES)
        return cls({content[i : i + NAME_BYTES] for i in places})

    def written(self) -> bytes:
        """Return the value as bytes."""
        return b"".join(sorted(self._digests))

    def missing(self, plan: EvaluationPlan, names: VariableNames) -> Missing:
        """Return what a plan asks for beyond these."""
        edges, valued = _asked(plan, names)
        name = names.of(plan)
        return Missing(
            {edge for digest, edge in edges.items() if digest not in self._digests},
            {variable for digest, variable in valued.items() if digest not in self._digests},
            {
                (variable, admission.prefilter): partial(self._covers, name[variable], admission)
                for variable, admission in plan.admitted
            },
        )

    def _covers(self, name: bytes, admission: Admission, constant: str | float) -> bool:
        """Return whether a constant was admitted to a prefilter of a variable."""
        if not admission.is_of_bounds:
            return not self._digests.isdisjoint(
                [_admitted_digest(name, admission, each) for each in (repr(constant), "")]
            )
        bound = self._bounds.get(_half(name, admission))
        if bound is None:
            return False
        return replace(admission, bound=_DOUBLE.unpack(bound)[0]).covers(constant)


def _asked(
    plan: EvaluationPlan, names: VariableNames
) -> tuple[dict[bytes, tuple[int, int]], dict[bytes, int]]:
    """Return the edges and the valued variables of a plan, each by a digest."""
    name = names.of(plan)
    edges = {_digest(b"edge", name[v], name[d]): (v, d) for v, d in plan.edges}
    valued = {_digest(b"value", name[v]): v for v in plan.valued}
    return edges, valued


def _admitted(name: bytes, admission: Admission) -> Iterator[bytes]:
    """Yield a digest for each constant that is admitted; an empty one stands for any."""
    if admission.is_of_bounds:
        yield _half(name, admission) + _DOUBLE.pack(admission.bound)
        return
    for constant in admission.all:
        yield _admitted_digest(name, admission, repr(constant))
    if not admission.all:
        yield _admitted_digest(name, admission, "")


def _admitted_digest(name: bytes, admission: Admission, constant: str) -> bytes:
    return _digest(b"admits", name, repr(admission.prefilter).encode(), constant.encode())


def _half(name: bytes, admission: Admission) -> bytes:
    return _digest(b"admits", name, repr(admission.prefilter).encode())[:_HALF]


def _digest(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"|".join(parts), digest_size=NAME_BYTES).digest()
