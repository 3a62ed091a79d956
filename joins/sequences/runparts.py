"""What runs are made of: tuples of operands, and runs as far as they have come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple, Protocol, overload

from joins.memory.durations import UNBOUNDED
from joins.memory.instance import Instance
from joins.memory.slots import Ints
from templates.decision import TupleStream, is_of_data
from templates.rundecision import (
    GrowingRun,
    RunElement,
    TermNode,
    Totals,
    Values,
    datum_term,
)

__all__ = ["DecidedRun", "Extent", "Head", "Part", "PartRow", "Parts", "Roles", "is_remembered"]


class PartRow(NamedTuple):
    """One of the rows of a tuple: what its terms are bound to."""

    terms: Mapping[str, TermNode]


@dataclass(slots=True, eq=False)
class Part:
    """A tuple of an operand: one choice of documents and of the nodes that the query looks at.

    `entered` is the document from which on it counts, and `settled` the one that settles its end,
    once it is an element that has entered.  Elements have serial numbers in the order in which they
    enter.  `data` are the values of the keys of its stream, which are held against data.
    """

    docid: int
    depth: int
    match_id: str
    docid_min: int
    docid_max: int
    start_us: int
    end_us: int
    watermark_us: int
    blocks: tuple[int, ...]
    leaves: tuple[int, ...]
    chosen: tuple[int, ...]
    data: tuple[str, ...] = ()
    rows: dict[str, list[PartRow]] = field(default_factory=dict)
    entered: int = 0
    settled: int = 0
    serial: int = 0
    element: RunElement | None = None

    @property
    def position(self) -> tuple[int, int, str]:
        """Where it stands among all instances."""
        return self.docid, self.depth, self.match_id

    @property
    def spelled(self) -> str:
        """The element as a line of a text."""
        assert self.element is not None
        return self.element.spell()


class Extent(NamedTuple):
    """What the parts of a run come to: `newest` is the one with the largest position.

    `watermark_us` and `depth` are the largest, `leaves` the documents of all parts.
    """

    newest: Part
    docid_min: int
    docid_max: int
    start_us: int
    end_us: int
    watermark_us: int
    depth: int
    leaves: Sequence[int] | Ints

    @classmethod
    def of(cls, parts: Sequence[Part]) -> Extent:
        """Return the extent of parts that stand in order."""
        return cls(
            max(parts, key=lambda part: part.position),
            min([part.docid_min for part in parts]),
            max([part.docid_max for part in parts]),
            parts[0].start_us,
            parts[-1].end_us,
            max([part.watermark_us for part in parts]),
            max([part.depth for part in parts]),
            [leaf for part in parts for leaf in part.leaves],
        )


class Placed(Protocol):
    """A tuple, as section 1.1 asks for it: where it stands, when it ends, and `W` when it came."""

    @property
    def position(self) -> tuple[int, int, str]: ...
    @property
    def end_us(self) -> int: ...
    @property
    def watermark_us(self) -> int: ...


def is_remembered(one: Placed, other: Placed, retention_us: int) -> bool:
    """Return whether the earlier of two was still remembered when the later came (section 1.1).

    `retention_us` has the lateness in it.
    """
    if retention_us >= UNBOUNDED or one.position == other.position:
        return True
    earlier, later = (one, other) if one.position < other.position else (other, one)
    return earlier.end_us >= later.watermark_us - retention_us


class Parts:
    """The tuples of one operand that came in the batch: all rows of one come in one batch.

    With `of_elements` a tuple is an element, as a row of some of the streams has it.
    """

    def __init__(self, *, of_elements: bool = False) -> None:
        self._new: dict[tuple[Any, ...], Part] = {}
        self._element_streams: set[str] | None = set() if of_elements else None

    def takes_elements_of(self, stream: TupleStream) -> None:
        """Have the rows of a stream say what elements are."""
        assert self._element_streams is not None
        self._element_streams.add(stream.name)

    def add(self, stream: TupleStream, row: Instance) -> None:
        """Add a row of a stream to its tuple."""
        size = 1 + len(stream.terms)
        nodes = row.nodes[1:size]
        chosen = nodes
        if stream.chosen != stream.terms:
            chosen = tuple([nodes[stream.terms.index(term)] for term in stream.chosen])
        bound = map(TermNode, nodes, row.values[1:size])
        terms = dict(zip(stream.terms, bound, strict=True))
        terms |= [(datum_term(datum), terms[term]) for datum, term in stream.equal]
        data = tuple([terms[term].value or "" for term in stream.keys])
        key = (stream.blocks, row.leaves, chosen, data)
        part = self._new.get(key)
        if part is None:
            part = self._new[key] = Part(
                row.docid,
                row.depth,
                row.match_id,
                row.docid_min,
                row.docid_max,
                row.start_us,
                row.end_us,
                row.watermark_us,
                stream.blocks,
                row.leaves,
                chosen,
                data,
            )
        part.rows.setdefault(stream.name, []).append(PartRow(terms))
        is_element = self._element_streams is None or stream.name in self._element_streams
        if part.element is None and is_element:
            part.element = RunElement(
                stream.blocks[0], row.start_us, row.end_us, *_of_element(terms, stream)
            )

    @property
    def has_new(self) -> bool:
        """Whether some came since they were last taken."""
        return bool(self._new)

    def take_new(self) -> list[Part]:
        """Return the tuples that came since they were last taken, in order of position and end."""
        new, self._new = [part for part in self._new.values() if part.element is not None], {}
        return sorted(new, key=_ARRIVAL)


def _of_element(
    terms: Mapping[str, TermNode], stream: TupleStream
) -> tuple[Mapping[str, TermNode], Mapping[str, TermNode]]:
    """Return what a run says of an element, and what is held against data, which stands last."""
    if not is_of_data(stream.terms[-1]):
        return terms, _NOTHING
    own = {name: bound for name, bound in terms.items() if not is_of_data(name)}
    return own, {name: bound for name, bound in terms.items() if is_of_data(name)}


_NOTHING: Mapping[str, TermNode] = {}

_ARRIVAL = attrgetter("docid", "depth", "match_id", "end_us")


class Roles:
    """Which operands take the rows of each stream, each once."""

    def __init__(self) -> None:
        self._takers: dict[str, list[tuple[Parts, TupleStream]]] = {}

    @property
    def streams(self) -> set[str]:
        """The names of the streams that are read."""
        return set(self._takers)

    def give(self, stream: TupleStream, parts: Parts) -> None:
        """Have an operand take the rows of a stream."""
        takers = self._takers.setdefault(stream.name, [])
        if (parts, stream) not in takers:
            takers.append((parts, stream))

    def add(self, stream: str, row: Instance) -> None:
        """Take a row of a stream."""
        for parts, own in self._takers[stream]:
            parts.add(own, row)


class GrownElements(GrowingRun):
    """The elements of a run that goes on; what they come to is that of the run before, and one."""

    __slots__ = ("_known", "_parts", "_totals")

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = parts
        self._known: Mapping[Callable[[RunElement], Values], Totals] = {}
        self._totals: dict[Callable[[RunElement], Values], Totals] = {}

    def continues(self, before: GrownElements) -> None:
        """Have these be those of another run, and one more."""
        # Runs before that one are not kept.
        self._known = before._totals

    def __len__(self) -> int:
        return len(self._parts)

    @overload
    def __getitem__(self, index: int) -> RunElement: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[RunElement]: ...
    def __getitem__(self, index: int | slice) -> RunElement | Sequence[RunElement]:
        if isinstance(index, slice):
            return [*self][index]
        element = self._parts[index].element
        assert element is not None
        return element

    def __iter__(self) -> Iterator[RunElement]:
        return (part.element for part in self._parts if part.element is not None)

    def totals(self, of: Callable[[RunElement], Values]) -> Totals:
        """Return what aggregates are of the elements."""
        found = self._totals.get(of)
        if found is None:
            known = self._known.get(of)
            found = (
                Totals().with_more(of, self) if known is None else known.with_more(of, self[-1:])
            )
            self._totals[of] = found
        return found


@dataclass(slots=True, eq=False)
class Head:
    """A run as far as it has come: what stands before it, its elements, its values of FOLD.

    `begin` says what is asked of its next element.  `docid` is the largest of its parts.  A
    run without elements waits for those that say some `data`.
    """

    begin: int
    left: Part | None
    elements: tuple[Part, ...]
    folds: Mapping[str, Values]
    docid: int
    data: tuple[str, ...] = ()
    before: GrownElements = field(init=False)

    def __post_init__(self) -> None:
        self.before = GrownElements(self.elements)

    def with_one(self, part: Part, folds: Mapping[str, Values]) -> Head:
        """Return the run with one element more."""
        docid = max(self.docid, part.docid)
        longer = Head(self.begin, self.left, (*self.elements, part), folds, docid)
        longer.before.continues(self.before)
        return longer

    @property
    def first(self) -> Part:
        """The first instance."""
        return self.elements[0] if self.left is None else self.left

    @property
    def last(self) -> Part | None:
        """The last instance, None before the first element of a run that nothing precedes."""
        return self.elements[-1] if self.elements else self.left


@dataclass(frozen=True, slots=True)
class DecidedRun:
    """A run that has been found: `docid` is where it stands, if it was decided."""

    head: Head
    docid: int | None

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its instances in order."""
        head = self.head
        return head.elements if head.left is None else (head.left, *head.elements)
