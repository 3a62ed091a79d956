"""Complete runs of a table, as others read them: what is read of one is made when it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property

from joins.memory.slots import Ints
from joins.sequences.runparts import Extent, Part
from templates.rundecision import Run, RunAtHand

__all__ = ["ColumnChain"]


class ColumnChain:
    """A run over a chain, decided at a document: the numbers of its elements, in order.

    `heads` are the runs as far as they had come with each.  `sizes` are how many are of each step,
    `part_of` has the part that an element is, and `chosen` are numbers of their choices of nodes.
    `folding` gives the runs where these have values of FOLD.
    """

    def __init__(
        self,
        elements: Ints,
        heads: Ints,
        sizes: Sequence[int],
        docid: int,
        extent: Extent,
        chosen: Ints,
        part_of: Mapping[int, Part],
        run_of: Callable[[int], str],
    ) -> None:
        self.docid, self.extent = docid, extent
        self.heads: list[int] = heads.tolist()
        self.folding: Callable[[ColumnChain], Mapping[str, RunAtHand]] | None = None
        self._elements: list[int] = elements.tolist()
        self._sizes = sizes
        self._chosen = chosen
        self._part_of, self._run_of = part_of, run_of

    @cached_property
    def steps(self) -> tuple[tuple[Part, ...], ...]:
        """Its elements, by step."""
        return tuple(
            tuple([self._part_of[each] for each in self.elements_of(step)])
            for step in range(len(self._sizes))
        )

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its instances in order."""
        return tuple(part for step in self.steps for part in step)

    @cached_property
    def runs(self) -> Mapping[str, RunAtHand]:
        """Its runs, by their terms."""
        if self.folding is not None:
            return self.folding(self)
        return {
            self._run_of(step): RunAtHand([p.element for p in own if p.element], None, {})
            for step, own in enumerate(self.steps)
        }

    def elements_of(self, step: int) -> list[int]:
        """Return the numbers of the elements of a step."""
        first = sum(self._sizes[:step])
        return self._elements[first : first + self._sizes[step]]

    def first_of(self, step: int) -> Part:
        """Return the first element of a step."""
        return self._part_of[self._elements[sum(self._sizes[:step])]]

    def spelled(self, step: int) -> str:
        """Return the run of a step as a text, as `xscl.runvalues.Run.spell` does."""
        parts, folds = self._part_of, "{}"
        if self.folding is not None:
            folds = Run((), self.runs[self._run_of(step)].folds).spell()
        return "\n".join([folds, *[parts[each].spelled for each in self.elements_of(step)]])

    def chosen_of(self, step: int) -> tuple[object, ...]:
        """Return what stands for the choice of nodes of the elements of a step."""
        first = sum(self._sizes[:step])
        return (id(self._part_of), self._chosen[first : first + self._sizes[step]].tobytes())
