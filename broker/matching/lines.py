"""Match lines and ids, put together from fragments: texts that many of them have in common.

The JSON of a whole is the JSON of its parts with what stands between them.  So a document is
spelled once however many matches show it (`Leaf`), and what a query and an assignment add is
spelled once for all matches of the subscriber (`MatchLines`); a match adds numbers, values and its
output.

Invariants: a line is what `json.dumps(..., ensure_ascii=False)` makes of the fields of
`docs/match.md`; an id is the digest of the JSON, ASCII and without spaces, of [query, version,
assignment, [[stream, key] of each document], node numbers of the visible variables].  So an id is
equal for the same match, however it was found; a key alone is unique in its stream only, and a `*`
block reads several.  Behind the key of a document stands, in a query with repetitions, its block,
and of a unit with alternatives its branch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from broker.documents.document import render_time
from broker.matching.fanout import BoundNode
from broker.matching.form import Form
from broker.matching.leaf import Leaf
from broker.matching.outputs import Output
from xscl.query import Query, SelectAll

__all__ = ["DOCUMENTS_MAX", "MatchLines", "Witness"]

_spell = json.JSONEncoder(ensure_ascii=False).encode
_spell_for_id = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

DOCUMENTS_MAX = 1_000
"""Documents listed in a match; the rest is counted (semantics, section 18)."""


class Witness(NamedTuple):
    """Compared variables with their nodes, in the order of the query's variables.

    `similar` is what similarity joins have found, as JSON (`likenesses`).
    """

    nodes: tuple[tuple[str, BoundNode], ...]
    similar: str = ""


class MatchLines:
    """The spelling of one subscriber's matches of one form.

    The node numbers that its methods take are those of the form's visible variables, in this order.
    """

    def __init__(self, query: Query, parameters: Mapping[str, Any], form: Form) -> None:
        begin = ",".join(map(_spell_for_id, (query.id, query.version, dict(parameters))))
        self._digest = blake2b(f"[{begin},[".encode(), digest_size=16)
        self._query = encode_basestring(query.id)
        self._parameters = f', "parameters": {_spell(dict(parameters))}' if parameters else ""
        self._form = form
        self._nodes = {
            v.name: f'{encode_basestring(v.label)}: {{"block": {form.unit_of[v.name]}, "node'
            for v in query.variables
            if v.name in form.unit_of
        }
        selected = () if isinstance(query.select, SelectAll) else query.select.variables
        self._shown = [name for name in dict.fromkeys(selected) if name in form.indices]

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
        values: Mapping[str, Any] | None = None,
    ) -> str:
        """Return the line of the match with the id `name`, without the line end.

        `omitted` witnesses are counted beside those given; `decided` is the docid at which the
        match of an ordered query was decided; `values` are those of FOLD.
        """
        start, end = map(render_time, interval)
        documents = ", ".join(self._documents(leaves[:DOCUMENTS_MAX]))
        further = len(leaves) - DOCUMENTS_MAX
        unlisted = f', "documents_omitted": {further}' if further > 0 else ""
        roots = ", ".join([str(numbers[i]) for i in self._form.roots[:DOCUMENTS_MAX]])
        nodes = ", ".join([self._shown_nodes(name, numbers) for name in self._shown])
        tuples = ", ".join(map(self._witness, witnesses))
        left_out = f', "witnesses_omitted": {omitted}' if omitted else ""
        at = "" if decided is None else f' "decided": {decided},'
        folded = f', "values": {_spell(dict(values))}' if values else ""
        error = output.error
        why = "" if error is None else f', "output_error": {encode_basestring(error)}'
        return (
            f'{{"id": "{name}", "query": {self._query}, "start": "{start}", "end": "{end}",{at}'
            f' "documents": [{documents}]{unlisted}, "roots": [{roots}], "nodes": {{{nodes}}},'
            f' "witnesses": [{tuples}]{left_out}{self._parameters}{folded},'
            f' "output": {output.spelled}{why}}}'
        )

    def _shown_nodes(self, name: str, numbers: Sequence[int]) -> str:
        """Return a variable that SELECT mentions: its node, or one for each element of its run."""
        form, begin = self._form, self._nodes[name]
        indices = form.indices[name]
        run = form.run_at(form.visible[indices[0]][1])
        if run is None:
            return f'{begin}": {numbers[indices[0]]}}}'
        at = {form.visible[i][1]: numbers[i] for i in indices}
        return f'{begin}s": {_spell([at.get(place) for place in run])}}}'

    def _keys(self, leaves: Sequence[Leaf]) -> list[str]:
        form = self._form
        if not form.has_blocks:
            return [leaf.id for leaf in leaves]
        found = []
        for leaf, unit, branch in zip(leaves, form.units, form.branches, strict=True):
            block = f",{unit}" if form.names_blocks else ""
            which = "" if branch is None else f",{branch}"
            found.append(f"{leaf.id[:-1]}{block}{which}]")
        return found

    def _documents(self, leaves: Sequence[Leaf]) -> list[str]:
        form = self._form
        if not form.has_blocks:
            return [leaf.line for leaf in leaves]
        found = []
        for leaf, unit, branch in zip(leaves, form.units, form.branches, strict=False):
            which = "" if branch is None else f', "branch": {branch}'
            found.append(f'{leaf.line[:-1]}, "block": {unit}{which}}}')
        return found

    def _witness(self, witness: Witness) -> str:
        nodes = []
        for name, (number, value) in witness.nodes:
            spelled = "null" if value is None else encode_basestring(value)
            nodes.append(f'{self._nodes[name]}": {number}, "value": {spelled}}}')
        if witness.similar:
            nodes.append(f'"similar": {witness.similar}')
        return f"{{{', '.join(nodes)}}}"
