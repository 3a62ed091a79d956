"""Match lines and ids, put together from fragments: texts that many of them have in common.

The JSON of a whole is the JSON of its parts with what stands between them.  So a document is
spelled once however many matches show it (`Leaf`), and what a query and an assignment add is
spelled once for all matches of the subscriber (`MatchLines`); a match adds numbers, values and its
output.

Invariants: a line is what `json.dumps(..., ensure_ascii=False)` makes of the fields of
`docs/match.md`; an id is the digest of the JSON, ASCII and without spaces, of [query, version,
assignment, [[stream, key] of each document], node numbers of the visible variables].  So an id is
equal for the same match, however it was found; a key alone is unique in its stream only, and a `*`
block reads several.  Behind the key of a document of a unit with alternatives stands its branch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from broker.documents.document import render_time
from broker.matching.fanout import BoundNode
from broker.matching.leaf import Leaf
from broker.matching.outputs import Output
from xscl.query import Query, SelectAll
from xscl.sequence import units_of

__all__ = ["Form", "MatchLines", "Witness"]

_spell = json.JSONEncoder(ensure_ascii=False).encode
_spell_for_id = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


class Witness(NamedTuple):
    """Compared variables with their nodes, in the order of the query's variables.

    `similar` is what similarity joins have found, as JSON (`likenesses`).
    """

    nodes: tuple[tuple[str, BoundNode], ...]
    similar: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """What matches over documents of some blocks have in common.

    `visible` and `roots` are variables, `places` the place of each variable's document among them.
    `branches` has for each document its branch, None where its block is the only one there.
    """

    visible: tuple[str, ...]
    roots: tuple[str, ...]
    places: Mapping[str, int]
    branches: tuple[int | None, ...]

    @property
    def has_branches(self) -> bool:
        """Whether some unit has alternatives."""
        return any(branch is not None for branch in self.branches)

    @classmethod
    def of(cls, query: Query, blocks: Sequence[int]) -> Form:
        """Return the form of a query's matches over documents of these blocks, in order."""
        place_of = {block: place for place, block in enumerate(blocks)}
        places = {v.name: place_of[v.block] for v in query.variables if v.block in place_of}
        roots = tuple(query.blocks[block].root for block in blocks)
        selected = () if isinstance(query.select, SelectAll) else query.select.variables
        visible = (*roots, *(v for v in selected if v in places))
        branches = tuple(
            unit.index(block) if len(unit) > 1 else None
            for unit, block in zip(units_of(query.root), blocks, strict=True)
        )
        return cls(tuple(dict.fromkeys(visible)), roots, places, branches)


class MatchLines:
    """The spelling of one subscriber's matches of one form.

    The node numbers that its methods take are those of the form's visible variables, in this order.
    """

    def __init__(self, query: Query, parameters: Mapping[str, Any], form: Form) -> None:
        begin = ",".join(map(_spell_for_id, (query.id, query.version, dict(parameters))))
        self._digest = blake2b(f"[{begin},[".encode(), digest_size=16)
        self._query = encode_basestring(query.id)
        self._parameters = f', "parameters": {_spell(dict(parameters))}' if parameters else ""
        self._branches = form.branches if form.has_branches else None
        places, visible = form.places, form.visible
        self._nodes = {
            v.name: f'{encode_basestring(v.label)}: {{"block": {places[v.name]}, "node": '
            for v in query.variables
            if v.name in places
        }
        self._roots = [visible.index(root) for root in form.roots]
        selected = () if isinstance(query.select, SelectAll) else query.select.variables
        shown = [name for name in dict.fromkeys(selected) if name in places]
        self._shown = [(self._nodes[name], visible.index(name)) for name in shown]

    def id(self, leaves: Sequence[Leaf], numbers: Sequence[int]) -> str:
        """Return the id of a match, 32 hexadecimal digits."""
        digest = self._digest.copy()
        keys = ",".join(self._keys(leaves))
        digest.update(f"{keys}],[{','.join(map(str, numbers))}]]".encode())
        return digest.hexdigest()

    def line(
        self,
        name: str,
        interval: tuple[int, int],
        leaves: Sequence[Leaf],
        numbers: Sequence[int],
        witnesses: Sequence[Witness],
        omitted: int,
        output: Output,
        decided: int | None = None,
    ) -> str:
        """Return the line of the match with the id `name`, without the line end.

        `omitted` witnesses are counted beside those given; `decided` is the docid at which the
        match of an ordered query was decided.
        """
        start, end = map(render_time, interval)
        documents = ", ".join(self._documents(leaves))
        roots = ", ".join([str(numbers[i]) for i in self._roots])
        nodes = ", ".join([f"{begin}{numbers[i]}}}" for begin, i in self._shown])
        tuples = ", ".join(map(self._witness, witnesses))
        left_out = f', "witnesses_omitted": {omitted}' if omitted else ""
        at = "" if decided is None else f' "decided": {decided},'
        error = output.error
        why = "" if error is None else f', "output_error": {encode_basestring(error)}'
        return (
            f'{{"id": "{name}", "query": {self._query}, "start": "{start}", "end": "{end}",{at}'
            f' "documents": [{documents}], "roots": [{roots}], "nodes": {{{nodes}}},'
            f' "witnesses": [{tuples}]{left_out}{self._parameters},'
            f' "output": {output.spelled}{why}}}'
        )

    def _keys(self, leaves: Sequence[Leaf]) -> list[str]:
        if self._branches is None:
            return [leaf.id for leaf in leaves]
        return [
            leaf.id if branch is None else f"{leaf.id[:-1]},{branch}]"
            for leaf, branch in zip(leaves, self._branches, strict=True)
        ]

    def _documents(self, leaves: Sequence[Leaf]) -> list[str]:
        if self._branches is None:
            return [leaf.line for leaf in leaves]
        found = []
        for place, (leaf, branch) in enumerate(zip(leaves, self._branches, strict=True)):
            which = "" if branch is None else f', "branch": {branch}'
            found.append(f'{leaf.line[:-1]}, "block": {place}{which}}}')
        return found

    def _witness(self, witness: Witness) -> str:
        nodes = []
        for name, (number, value) in witness.nodes:
            spelled = "null" if value is None else encode_basestring(value)
            nodes.append(f'{self._nodes[name]}{number}, "value": {spelled}}}')
        if witness.similar:
            nodes.append(f'"similar": {witness.similar}')
        return f"{{{', '.join(nodes)}}}"
