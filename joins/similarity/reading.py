"""The sets of words of instances, as they come."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa

from joins.memory.remembered import Hashes
from joins.memory.shapes import Shapes
from joins.memory.slots import Ints
from templates.queryclass import SetKind
from templates.wordcolumns import hashed_sets

__all__ = ["InstanceSets", "read_sets"]


class InstanceSets(NamedTuple):
    """Sets that are not empty: of which row each is, ascending, how many words, and their hashes.

    The hashes of a set ascend.
    """

    rows: Ints
    sizes: Ints
    hashes: Hashes


def read_sets(kind: SetKind, rows: pa.Table, shapes: Shapes, *, kernels: bool) -> InstanceSets:
    """Return the sets of a kind of the values of instances: rows of `INSTANCE_SCHEMA`.

    With `kernels` compiled loops make them.
    """
    lists = rows.column("vals").combine_chunks()
    starts = lists.offsets.to_numpy()[:-1].astype(np.int64)
    owners, places = _places(kind.variable, rows.column("shape").to_numpy(), starts, shapes)
    texts = lists.values.take(pa.array(places)).fill_null("").to_pylist()
    found = hashed_sets(kind, texts, kernels=kernels)
    return InstanceSets(owners[found.texts], found.sizes, found.hashes)


def _places(variable: int, numbers: Ints, starts: Ints, shapes: Shapes) -> tuple[Ints, Ints]:
    """Return the rows that bind a variable, ascending, and where each of its values is."""
    distinct, inverse = np.unique(numbers, return_inverse=True)
    rows = [np.zeros(0, np.int64)]
    places = [np.zeros(0, np.int64)]
    for i, shape in enumerate(distinct.tolist()):
        binding = shapes[shape].binding
        nodes = np.array([n for n, bound in binding.items() if variable in bound], np.int64)
        own = np.flatnonzero(inverse == i)
        rows.append(np.repeat(own, len(nodes)))
        places.append((starts[own][:, None] + nodes[None, :]).ravel())
    found = np.concatenate(rows)
    order = np.argsort(found, kind="stable")
    return found[order], np.concatenate(places)[order]
