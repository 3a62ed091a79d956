"""Match lines and ids, put together from fragments: texts that many of them have in common.

The JSON of a whole is the JSON of its parts with what stands between them.  So a document is
spelled once however many matches show it (`Leaf`), and what a query and an assignment add is
spelled once for all matches of the topic (`MatchLines`); a match adds numbers, values and its
output.

Invariants: a line is what `json.dumps(..., ensure_ascii=False)` makes of the fields of
`docs/match.md`; an id is the digest of the JSON, ASCII and without spaces, of [query, version,
assignment, [[stream, key] of each document], node numbers of the visible variables].  So an id is
equal for the same match, however it was found; a key alone is unique in its stream only, and a `*`
block reads several.  Behind the key of a document stands, in a query with repetitions, its block,
and of a unit with alternatives its branch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from hashlib import blake2b
from json.encoder import encode_basestring
from typing import Any, NamedTuple

from broker.matching.rendering.form import MatchForm
from broker.matching.rendering.leaf import Leaf
from broker.matching.rendering.outputs import Output
from broker.matching.spelling import spell, spell_for_id

__all__ = [
    "DOCUMENTS_MAX",
    "Behind",
    "MatchLines",
    "NodeTexts",
    "copying_lines",
    "found_texts",
    "identities",
    "spell_documents",
]

DOCUMENTS_MAX = 1_000
"""Documents listed in a match; the rest is counted (semantics, section 18)."""

_NODES_KEPT = 1_000
"""NodeTexts of matches that are kept as texts; those of whole documents are the same for all."""


class Behind(NamedTuple):
    """The documents of a match: what they put into its line and into its id."""

    leaves: Sequence[Leaf]
    line: str
    keys: str
    oldest: int

    @classmethod
    def of(cls, leaves: Sequence[Leaf], form: MatchForm) -> Behind:
        """Return the documents of matches of a form."""
        lines = [leaf.line for leaf in leaves]
        keys = [leaf.id for leaf in leaves]
        if len(lines) > DOCUMENTS_MAX:
            del lines[DOCUMENTS_MAX:]
        if form.has_blocks:
            for i, (unit, branch) in enumerate(zip(form.units, form.branches, strict=True)):
                block = f",{unit}" if form.names_blocks else ""
                which = "" if branch is None else f",{branch}"
                keys[i] = f"{keys[i][:-1]}{block}{which}]"
                if i < len(lines):
                    named = "" if branch is None else f', "branch": {branch}'
                    lines[i] = f'{lines[i][:-1]}, "block": {unit}{named}}}'
        oldest = min([leaf.docid for leaf in leaves])
        return cls(leaves, spell_documents(lines, len(leaves)), ",".join(keys), oldest)


class NodeTexts(NamedTuple):
    """The visible nodes of a match: what they put into its line, and their numbers for its id."""

    line: str
    numbers: str


def spell_documents(listed: Sequence[str], count: int) -> str:
    """Return how a line lists so many documents, of which the first are spelled."""
    further = count - len(listed)
    unlisted = f', "documents_omitted": {further}' if further else ""
    return f"[{', '.join(listed)}]{unlisted}"


def identities(keys: Iterable[str], nodes: Iterable[NodeTexts]) -> list[bytes]:
    """Return what ids digest of matches, whoever has them; `keys` are of the documents of each."""
    return [f"{own}],[{of.numbers}]]".encode() for own, of in zip(keys, nodes, strict=True)]


def found_texts(
    times: tuple[Iterable[str], Iterable[str]],
    before: Iterable[str],
    documents: Iterable[str],
    nodes: Iterable[NodeTexts],
    witnesses: Iterable[str],
    omitted: Iterable[int],
) -> list[str]:
    """Return what lines say of when and where matches were found, and why.

    Lines of other topics in an equal form (`MatchForm.spelling`) say the same of them.  `times` are
    starts and ends, `before` is what `MatchLines.before` returns, and `omitted` witnesses are
    counted beside those given.
    """
    left_out = [f', "witnesses_omitted": {count}' if count else "" for count in omitted]
    columns = (*times, before, documents, nodes, witnesses, left_out)
    return [
        f', "start": "{start}", "end": "{end}",{at} "documents": {listed},'
        f' {own.line}, "witnesses": [{tuples}]{behind}'
        for start, end, at, listed, own, tuples, behind in zip(*columns, strict=True)
    ]


def copying_lines(
    names: Iterable[str],
    queries: Iterable[str],
    found: Iterable[str],
    parameters: Iterable[str],
    copies: Iterable[str],
) -> list[str]:
    """Return the lines of matches that copy whole documents, of which `copies` are the texts."""
    columns = (names, queries, found, parameters, copies)
    return [
        f'{{"id": "{name}", "query": {query}{own}{given}, "output": "<match>{text}</match>"}}'
        for name, query, own, given, text in zip(*columns, strict=True)
    ]


class MatchLines:
    """The spelling of one topic's matches of one form.

    `begun` is the digest of what all their ids begin with; `query` and `parameters` are what all
    their lines have.
    The node numbers that its methods take are those of the form's visible variables, in this order.
    """

    def __init__(self, parameters: Mapping[str, Any], form: MatchForm) -> None:
        query = form.query
        begin = ",".join(map(spell_for_id, (query.id, query.version, dict(parameters))))
        self.begun = blake2b(f"[{begin},[".encode(), digest_size=16)
        self.query = encode_basestring(query.id)
        self.parameters = f', "parameters": {spell(dict(parameters))}' if parameters else ""
        self._form = form
        self._nodes: dict[tuple[int, ...], NodeTexts] = {}
        self._missing = [
            {"block": unit, "stream": query.blocks[block].stream} for unit, block in form.missing
        ]

    def nodes(self, numbers: tuple[int, ...]) -> NodeTexts:
        """Return what a match says of its visible nodes; most matches have the nodes of others."""
        nodes = self._nodes.get(numbers)
        if nodes is None:
            if len(self._nodes) >= _NODES_KEPT:
                self._nodes.clear()
            roots = ", ".join([str(numbers[i]) for i in self._form.roots[:DOCUMENTS_MAX]])
            shown = ", ".join([self._shown(*each, numbers) for each in self._form.shown])
            line = f'"roots": [{roots}], "nodes": {{{shown}}}'
            nodes = self._nodes[numbers] = NodeTexts(line, ",".join(map(str, numbers)))
        return nodes

    @staticmethod
    def identity(keys: str, nodes: NodeTexts) -> bytes:
        """Return what an id digests of a match; see `identities`."""
        [identity] = identities([keys], [nodes])
        return identity

    def id(self, identity: bytes) -> str:
        """Return the id of a match, 32 hexadecimal digits."""
        digest = self.begun.copy()
        digest.update(identity)
        return digest.hexdigest()

    def line(self, name: str, found: str, tail: str) -> str:
        """Return the line of the match with the id `name`, without the line end.

        `found` is what `found_texts` gives for it, `tail` what the method returns.
        """
        return f'{{"id": "{name}", "query": {self.query}{found}{self.parameters}{tail}'

    @staticmethod
    def tail(folds: Mapping[str, Any], output: Output) -> str:
        """Return how lines of matches with these values of FOLD and this output end."""
        folded = f', "values": {spell(dict(folds))}' if folds else ""
        error = output.error
        why = "" if error is None else f', "output_error": {encode_basestring(error)}'
        return f'{folded}, "output": {output.spelled}{why}}}'

    def before(self, decided: int | None, confidence: Fraction | None) -> str:
        """Return what a line says of a match before its documents, beside its times.

        `decided` is the docid at which the match of an ordered query was decided, `confidence` that
        of a query with LOSS or CONFIDENCE; None of others.
        """
        at = "" if decided is None else f' "decided": {decided},'
        if confidence is None:
            return at
        missing = spell(self._missing)
        return f'{at} "confidence": {float(confidence)!r}, "missing": {missing},'

    def _shown(self, name: str, label: str, numbers: Sequence[int]) -> str:
        """Return a variable that SELECT mentions: its node, or one for each element of its run."""
        form = self._form
        indices = form.indices[name]
        run = form.run_at(form.visible[indices[0]][1])
        if run is None:
            return f'{label}": {numbers[indices[0]]}}}'
        at = {form.visible[i][1]: numbers[i] for i in indices}
        return f'{label}s": {spell([at.get(place) for place in run])}}}'
