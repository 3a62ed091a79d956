"""Match lines and ids, put together from fragments: texts that many of them have in common.

The JSON of a whole is the JSON of its parts with what stands between them.  So a document is
spelled once however many matches show it (`Leaf`), and what a query and an assignment add is
spelled once for all matches of the subscriber (`MatchLines`); a match adds numbers, values and its
output.

Invariants: a line is what `json.dumps(..., ensure_ascii=False)` makes of the fields of
`docs/match.md`; an id is the digest of the JSON, ASCII and without spaces, of [query, version,
assignment, [[stream, key] of each document], node numbers of `Query.visible()`].  So an id is equal
for the same match, however it was found; a key alone is unique in its stream only, and a `*` block
reads several.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from json.encoder import encode_basestring
from typing import Any

from broker.documents.document import render_time
from broker.matching.fanout import BoundNode
from broker.matching.leaf import Leaf
from broker.matching.outputs import Output
from xscl.query import Query, SelectAll

__all__ = ["MatchLines", "Witness"]

_spell = json.JSONEncoder(ensure_ascii=False).encode
_spell_for_id = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode

Witness = tuple[tuple[str, BoundNode], ...]
"""Compared variables with their nodes, in the order of the query's variables."""


class MatchLines:
    """The spelling of one subscriber's matches.

    The node numbers that its methods take are those of `visible`, in this order.
    """

    def __init__(self, query: Query, parameters: Mapping[str, Any], visible: Sequence[str]) -> None:
        begin = ",".join(map(_spell_for_id, (query.id, query.version, dict(parameters))))
        self._digest = blake2b(f"[{begin},[".encode(), digest_size=16)
        self._query = encode_basestring(query.id)
        self._parameters = f', "parameters": {_spell(dict(parameters))}' if parameters else ""
        self._nodes = {
            each.name: f'{encode_basestring(each.label)}: {{"block": {each.block}, "node": '
            for each in query.variables
        }
        self._roots = [visible.index(block.root) for block in query.blocks]
        shown = () if isinstance(query.select, SelectAll) else query.select.variables
        self._shown = [(self._nodes[name], visible.index(name)) for name in dict.fromkeys(shown)]

    def id(self, leaves: Sequence[Leaf], numbers: Sequence[int]) -> str:
        """Return the id of a match, 32 hexadecimal digits."""
        digest = self._digest.copy()
        keys = ",".join([leaf.id for leaf in leaves])
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
    ) -> str:
        """Return the line of the match with the id `name`, without the line end.

        `omitted` witnesses are counted beside those given.
        """
        start, end = map(render_time, interval)
        documents = ", ".join([leaf.line for leaf in leaves])
        roots = ", ".join([str(numbers[i]) for i in self._roots])
        nodes = ", ".join([f"{begin}{numbers[i]}}}" for begin, i in self._shown])
        tuples = ", ".join(map(self._witness, witnesses))
        left_out = f', "witnesses_omitted": {omitted}' if omitted else ""
        error = output.error
        why = "" if error is None else f', "output_error": {encode_basestring(error)}'
        return (
            f'{{"id": "{name}", "query": {self._query}, "start": "{start}", "end": "{end}",'
            f' "documents": [{documents}], "roots": [{roots}], "nodes": {{{nodes}}},'
            f' "witnesses": [{tuples}]{left_out}{self._parameters},'
            f' "output": {output.spelled}{why}}}'
        )

    def _witness(self, witness: Witness) -> str:
        nodes = []
        for name, (number, value) in witness:
            spelled = "null" if value is None else encode_basestring(value)
            nodes.append(f'{self._nodes[name]}{number}, "value": {spelled}}}')
        return f"{{{', '.join(nodes)}}}"
