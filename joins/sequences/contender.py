"""Contenders: tuples of an operand, with the rows that stand for them in several streams."""

from __future__ import annotations

from dataclasses import dataclass, field

from joins.memory.instance import Instance
from templates.decision import TupleStream

__all__ = ["Contender", "ContenderKey", "Operand", "Row"]

ContenderKey = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]
"""The blocks of a contender, its documents, and its chosen nodes."""


@dataclass(frozen=True, slots=True)
class Row:
    """One of a contender's rows: its instance number, and the values of its stream's terms."""

    number: int
    values: tuple[str | None, ...]


@dataclass(slots=True, eq=False)
class Contender:
    """A tuple of an operand.  `is_done` says that it has been decided and is chosen no more."""

    docid: int
    depth: int
    match_id: str
    start_us: int
    end_us: int
    watermark_us: int
    blocks: tuple[int, ...]
    leaves: tuple[int, ...]
    rows: dict[str, list[Row]] = field(default_factory=dict)
    is_done: bool = False

    @property
    def position(self) -> tuple[int, int, str]:
        """Where it stands among all instances."""
        return self.docid, self.depth, self.match_id


class Operand:
    """The contenders of one operand that came in the batch: all rows of one come in one batch."""

    def __init__(self) -> None:
        self._new: dict[ContenderKey, Contender] = {}
        self._places: dict[str, list[int]] = {}

    def add(self, stream: TupleStream, row: Instance) -> None:
        """Add a row of a stream to its contender."""
        places = self._places.get(stream.name)
        if places is None:
            places = [1 + stream.terms.index(term) for term in stream.chosen]
            self._places[stream.name] = places
        nodes = row.nodes
        key = (stream.blocks, row.leaves, tuple([nodes[place] for place in places]))
        contender = self._new.get(key)
        if contender is None:
            contender = self._new[key] = Contender(
                row.docid,
                row.depth,
                row.match_id,
                row.start_us,
                row.end_us,
                row.watermark_us,
                stream.blocks,
                row.leaves,
            )
        contender.rows.setdefault(stream.name, []).append(
            Row(row.instance, row.values[1 : 1 + len(stream.terms)])
        )

    def take_new(self) -> list[Contender]:
        """Return the contenders that came since they were last taken."""
        new, self._new = list(self._new.values()), {}
        return new
