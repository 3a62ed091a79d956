"""Runs that have been found, drawn as a graph whose labels are what a match shows of documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from joins.sequences.counting.lanes import Label, LaneNode, Start, Steps, reached
from joins.sequences.runparts import Part
from templates.rungraphs import PathGraph

__all__ = ["Drawing", "Label", "labels_of"]


def labels_of(part: Part, visible: Mapping[int, Sequence[str]]) -> tuple[Label, ...]:
    """Return what a match shows of a part, by document; `visible` are the variables of blocks."""
    terms = next(iter(part.rows.values()))[0].terms
    return tuple(
        Label(block, leaf, tuple(terms[name].node for name in visible[block] if name in terms))
        for block, leaf in zip(part.blocks, part.leaves, strict=True)
    )


class Drawing:
    """Draws steps of elements as a graph; what is drawn further stands beside it."""

    def __init__(self, visible: Mapping[int, Sequence[str]]) -> None:
        self._visible = visible
        self._labels: list[Label] = []
        self._behind: list[Sequence[int]] = []
        self._first: list[int] = []
        self._parts: dict[Label, tuple[int, Part]] = {}
        self.parts: list[Part] = []

    def draw(self, starts: Iterable[tuple[Start, LaneNode]], steps: Steps) -> None:
        """Draw the paths that begin with some starts, each before an element, or the very one."""
        lefts: dict[int, tuple[Part, dict[LaneNode, None]]] = {}
        first: dict[LaneNode, None] = {}
        for start, node in starts:
            if start.part is node.part:
                first[node] = None
            else:
                lefts.setdefault(id(start.part), (start.part, {}))[1][node] = None
        begun = [*first, *(n for _, behind in lefts.values() for n in behind)]
        nodes = sorted(reached(begun, steps.__getitem__), key=lambda node: node.part.end_us)
        before = [(part, len(part.leaves), behind) for part, behind in lefts.values()]
        size = len(self._labels) + sum(count for _, count, _ in before)
        number = {node: size + i for i, node in enumerate(nodes)}
        for part, count, behind in before:
            at = len(self._labels)
            self._first.append(at)
            self._put(part, [*([at + k] for k in range(1, count)), [number[n] for n in behind]])
        for node in nodes:
            self._put(node.part, [[number[each] for each in steps[node]]])
        self._first += [number[node] for node in first]

    def _put(self, part: Part, behind: Iterable[Sequence[int]]) -> None:
        for k, (label, own) in enumerate(zip(labels_of(part, self._visible), behind, strict=True)):
            self._labels.append(label)
            self._behind.append(own)
            self._parts.setdefault(label, (k, part))
            self.parts.append(part)

    def graph(self) -> PathGraph[Label]:
        """Return what was drawn."""
        behind = tuple(map(tuple, self._behind))
        return PathGraph(tuple(self._labels), behind, tuple(self._first))

    def part_of(self, label: Label) -> Part:
        """Return a part with a label."""
        return self._parts[label][1]

    def place_of(self, label: Label) -> tuple[object, ...]:
        """Return where a label stands among others: by the end of its part."""
        k, part = self._parts[label]
        return part.end_us, part.position, k, label
