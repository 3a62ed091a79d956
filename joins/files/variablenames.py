"""Names of variables that hold outside this process.

A variable's number is given by a `Numbering`, in the order in which definitions were asked for: it
means nothing in another process.  Its **name** is a digest of its definition, from the document
node down.
"""

from __future__ import annotations

import hashlib
from collections.abc import Set

from xpath_eval.catalog import Definition, EvaluationPlan

__all__ = ["NAME_BYTES", "AskedNames", "VariableNames"]

NAME_BYTES = 16


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

    Witnesses of one plan serve any other plan that asks for no more.
    """

    def __init__(self, digests: Set[bytes]) -> None:
        self._digests = frozenset(digests)
        self.id = _digest(*sorted(self._digests)).hex()

    @classmethod
    def of(cls, plan: EvaluationPlan, names: VariableNames) -> AskedNames:
        """Return the edges and values that a plan asks for."""
        edges, valued = _asked(plan, names)
        return cls(edges.keys() | valued.keys())

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

    def missing(
        self, plan: EvaluationPlan, names: VariableNames
    ) -> tuple[set[tuple[int, int]], set[int]]:
        """Return the edges and the variables with values that a plan asks for beyond these."""
        edges, valued = _asked(plan, names)
        return (
            {edge for digest, edge in edges.items() if digest not in self._digests},
            {variable for digest, variable in valued.items() if digest not in self._digests},
        )


def _asked(
    plan: EvaluationPlan, names: VariableNames
) -> tuple[dict[bytes, tuple[int, int]], dict[bytes, int]]:
    """Return the edges and the valued variables of a plan, each by a digest."""
    name = names.of(plan)
    edges = {_digest(b"edge", name[v], name[d]): (v, d) for v, d in plan.edges}
    valued = {_digest(b"value", name[v]): v for v in plan.valued}
    return edges, valued


def _digest(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"|".join(parts), digest_size=NAME_BYTES).digest()
