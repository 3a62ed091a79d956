"""Why these documents do not match a query.

`why_not` asks of the documents what the semantics ask, in their order: which block each can stand
for, whether its tree pattern fits, then operator by operator the times, the value joins and the
residuals.  Where documents could stand in several orders, or a predicate has alternatives, it
tells of the one that came furthest.  It is slow and plain on purpose, and shares with the engine
only the normal form, the patterns, and the reading of single steps; a property test holds it
against the engine.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from itertools import islice, permutations
from typing import Any

from broker.documents.document import Document, render_time
from broker.whynot.blocks import Binding, BlockOnDocument, BoundNode
from broker.whynot.cells import KnownRows, Rules, cell_reason, without_tables
from broker.whynot.decided import among, decision_reason, open_form
from broker.whynot.given import no_row, of_outcome, without_outcome
from broker.whynot.lossy import lossy_reason, sure_among
from broker.whynot.operators import Joining, NamedOperand, StreamAt
from broker.whynot.reason import Reason
from broker.whynot.surroundings import Surroundings, reason_among
from templates.ordered import choices
from templates.plain import plain_statements
from xpath_eval.structure import NodeTree, XmlError, parse_xml
from xscl.pattern import tree_pattern
from xscl.query import (
    Call,
    Disjunct,
    From,
    Node,
    Operator,
    OperatorKind,
    PathFrom,
    Query,
    Term,
    VariableValue,
    Window,
    operand_terms,
    operand_variables,
    term,
)
from xscl.sequence import blocks_below, documents_of
from xscl.substitution import substitute
from xscl.support import check_is_shown

__all__ = ["why_not"]

ORDERS_MAX = 120
"""Orders of the documents that are tried: all of five documents."""


def why_not(
    query: Query,
    documents: Sequence[Document],
    *,
    lateness_us: int,
    parameters: Mapping[str, Any] | None = None,
    registration_point: int = 0,
    stream_at: StreamAt = lambda end_us: None,
    around: Surroundings | None = None,
    known: KnownRows | Rules | None = None,
) -> Reason:
    """Return whether documents match a query, one for each block, and what that rests on.

    They may be given in any order.  `parameters` are canonical (`xscl.assignment`).  A document's
    `watermark_us` decides about lateness, and `stream_at` may name the stream of the document that
    had that event time; `registration_point` is the query's.  Where something is decided, `around`
    says among which documents, and `known` what
    tables said.  The reason's facts name the document of each block, by its place in
    `documents`.
    """
    check_is_shown(without_tables(query), "explain --why-not")
    if query.parameters and parameters is None:
        names = ", ".join(f"${name}" for name, _ in query.parameters)
        text = f"{query.id} has parameters ({names}): without values it has no matches"
        return Reason("parameters", False, text, "give them a value each")
    plain = substitute(query, parameters or {})
    if plain.has_outcome:
        ask = partial(
            why_not,
            without_outcome(plain),
            lateness_us=lateness_us,
            registration_point=registration_point,
            stream_at=stream_at,
            around=around,
        )
        if plain.rows is None or documents_of(plain.root) > 1 or len(documents) < 2:
            of_source = ask(documents)
            return of_outcome(plain, of_source) if of_source.holds else of_source
        each = (ask([document]) for document in documents)
        return next((r for r in each if not r.holds), no_row(plain, len(documents)))
    if plain.has_confidence:
        return _of_variants(
            plain,
            documents,
            lateness_us=lateness_us,
            registration_point=registration_point,
            stream_at=stream_at,
            around=around,
            known=known,
        )
    if problem := _wrong_documents(query, documents):
        return problem
    if plain.tables:
        untold = why_not(
            without_tables(plain),
            documents,
            lateness_us=lateness_us,
            registration_point=registration_point,
            stream_at=stream_at,
            around=around,
        )
        if not untold.holds or not plain.guards:
            return untold
        if around is None or known is None:
            return _unknown(plain.id, untold)
        asked = cell_reason(
            plain,
            documents,
            around.documents,
            known,
            lateness_us=lateness_us,
            registration_point=registration_point,
        )
        return _unknown(plain.id, untold) if asked is None else _told(plain.id, untold, asked)
    if plain.is_ordered:
        opened = open_form(plain)
        fits: Reason | None = None
        if opened is not None:
            fits = why_not(
                opened,
                documents,
                lateness_us=lateness_us,
                registration_point=registration_point,
                stream_at=stream_at,
            )
            if not fits.holds:
                return fits
        if around is None:
            return decision_reason(fits)
        found = reason_among(
            plain,
            documents,
            around.documents,
            lateness_us=lateness_us,
            registration_point=registration_point,
            is_cut=around.is_cut,
        )
        return among(query.id, fits, found)
    best: Reason | None = None
    for statement in plain_statements(plain):
        attempt = _Attempts(statement, lateness_us, registration_point, stream_at)
        for order in islice(permutations(range(len(documents))), ORDERS_MAX):
            for reason in attempt.reasons([documents[i] for i in order]):
                if best is None or reason.progress > best.progress:
                    best = replace(reason, facts={**reason.facts, "order": list(order)})
                if reason.holds:
                    return best
    assert best is not None
    return best


def _of_variants(
    query: Query,
    documents: Sequence[Document],
    *,
    lateness_us: int,
    registration_point: int,
    stream_at: StreamAt,
    around: Surroundings | None,
    known: KnownRows | Rules | None,
) -> Reason:
    """Return what is said of a query with LOSS or CONFIDENCE, which is what its variants are."""

    def ask(variant: Query, some: Sequence[Document]) -> Reason:
        return why_not(
            variant,
            some,
            lateness_us=lateness_us,
            registration_point=registration_point,
            stream_at=stream_at,
            around=around,
            known=known,
        )

    def learned() -> Fraction | None:
        if around is None:
            return None
        return sure_among(
            query,
            documents,
            around.documents,
            lateness_us=lateness_us,
            registration_point=registration_point,
        )

    return lossy_reason(query, documents, ask, learned)


def _told(query_id: str, fits: Reason, asked: Reason) -> Reason:
    """Return what is known of documents that fit but for what tables said."""
    text = f"{query_id} {'matches' if asked.holds else 'does not match'}"
    return Reason("query", asked.holds, text, None, dict(fits.facts), (*fits.parts, asked), 1.0)


def _unknown(query_id: str, fits: Reason) -> Reason:
    text = "what tables said to these documents is not known here"
    return _told(query_id, fits, Reason("tables", False, text))


def _wrong_documents(query: Query, documents: Sequence[Document]) -> Reason | None:
    count = documents_of(query.root)
    if len(documents) != count:
        given = f"{len(documents)} document{'' if len(documents) == 1 else 's'}"
        text = f"{query.id} has {count} block{'' if count == 1 else 's'}, and {given} given"
        return Reason("documents", False, text, f"name {count}, one for each block")
    places = [(d.docid, d.depth, d.match_id) for d in documents]
    if len(set(places)) < len(places):
        text = "one document is given twice, and no two blocks of a match share a document"
        return Reason("documents", False, text)
    return None


BlockResult = tuple[Reason, Sequence[Binding]]


@dataclass
class _Attempts:
    """The query on documents in given orders; what a block finds in a document is kept."""

    query: Query
    lateness_us: int
    registration_point: int
    stream_at: StreamAt
    trees: dict[int, NodeTree | XmlError] = field(default_factory=dict)
    blocks: dict[tuple[int, int, frozenset[Term]], BlockResult] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.choices = choices(self.query.root)
        self.asked = tuple(blocks_below(self.query.root))
        self.labels = {variable.name: variable.label for variable in self.query.variables}

    def reasons(self, documents: Sequence[Document]) -> Iterator[Reason]:
        """Yield one reason for each alternative of the query's predicates."""
        for number, choice in enumerate(self.choices, 1):
            yield self._alternative(documents, choice, number)

    def _alternative(
        self, documents: Sequence[Document], choice: Mapping[int, Disjunct], number: int
    ) -> Reason:
        operands = (o for disjunct in choice.values() for o in disjunct.operands())
        read = frozenset(each for operand in operands for each in operand_terms(operand))
        found = [self._block(i, d, read) for i, d in zip(self.asked, documents, strict=True)]
        parts = [reason for reason, _ in found]
        if all(reason.holds for reason in parts):
            tuples = [bindings for _, bindings in found]
            sides = {
                block: NamedOperand(f"document {document.docid}", (document,), bindings)
                for block, document, bindings in zip(self.asked, documents, tuples, strict=True)
            }
            reading = _AskedDocuments(self, choice, sides)
            reading.source(self.query.root)
            parts += reading.reasons
        holds = all(part.holds for part in parts)
        steps = len(documents) + len(choice)
        which = f" (alternative {number} of {len(self.choices)})" if len(self.choices) > 1 else ""
        verb = "matches" if holds else "does not match"
        return Reason(
            "query",
            holds,
            f"{self.query.id} {verb}{which}",
            parts=tuple(parts),
            progress=min(0.999, sum(part.progress for part in parts) / steps),
        )

    def _block(self, index: int, document: Document, read: frozenset[Term]) -> BlockResult:
        of_block = {v.name for v in self.query.variables if v.block == index}
        own = frozenset(each for each in read if of_block.issuperset(operand_variables(each)))
        key = (index, id(document), own)
        if key not in self.blocks:
            self.blocks[key] = self._bind(index, document, own)
        return self.blocks[key]

    def _bind(self, index: int, document: Document, read: frozenset[Term]) -> BlockResult:
        """Return what a document has of a block, of which some terms are read."""
        compared = {each.variable for each in read if isinstance(each, VariableValue)}
        optional = [each for each in read if isinstance(each, PathFrom)]
        block = self.query.blocks[index]
        name = f"block {index}, document {describe(document)}"
        inner: Reason | None = None
        bindings: Sequence[Binding] = ()
        is_read = document.depth == 0 if block.stream == "*" else document.stream == block.stream
        if not is_read:
            text = f"the block reads {block.stream}, the document is on {document.stream}"
            inner = Reason("stream", False, text, facts={"reads": block.stream})
        elif document.docid <= self.registration_point:
            text = f"the query sees documents after {self.registration_point} only"
            inner = Reason("registration", False, text, "register it with --since", progress=0.1)
        elif isinstance(tree := self._tree(document), XmlError):
            inner = Reason("xml", False, f"the document cannot be read: {tree}")
        else:
            dropped = {
                v.name for v in self.query.variables if v.is_path and v.name not in compared
            } - set(self.query.visible())
            own = {v for v in self.query.visible() if v in block.variables}
            # A visible node must be there; which one it is says nothing about whether it matches.
            bound = compared | own | {each.variable for each in optional}
            on_document = BlockOnDocument(tree_pattern(block, bound, (), dropped), tree)
            named = frozenset(term(each) for each in read if not isinstance(each, Call))
            bindings = [
                one | _times(read, document)
                for one in _project(on_document.bindings(optional), named)
            ]
            if not bindings:
                inner = on_document.failure()
        if inner is None:
            return Reason("block", True, f"{name}: the pattern fits", facts=_facts(index)), bindings
        progress = 0.2 + 0.8 * inner.progress if inner.kind != "stream" else 0.0
        return Reason("block", False, name, None, _facts(index), (inner,), progress), ()

    def _tree(self, document: Document) -> NodeTree | XmlError:
        if id(document) not in self.trees:
            try:
                self.trees[id(document)] = parse_xml(document.xml)
            except XmlError as error:
                self.trees[id(document)] = error
        return self.trees[id(document)]


def _times(read: frozenset[Term], document: Document) -> Binding:
    """Return the times of a document that are asked for, as if they were values of its root."""
    return {
        term(each): BoundNode(
            0, str(document.start_us if each.function == "start" else document.end_us)
        )
        for each in read
        if isinstance(each, Call)
    }


def _facts(index: int) -> dict[str, Any]:
    return {"block": index}


def describe(document: Document) -> str:
    """Return a document's number, stream, key and time in a few words.

    >>> describe(Document(7, "news", "item-3", 0, 0, 0, 0, b""))
    '7 (news item-3, 1970-01-01T00:00:00Z)'
    """
    own_key = document.key if document.key != str(document.docid) else ""
    name = " ".join(filter(None, [document.stream, own_key]))
    return f"{document.docid} ({name}, {render_time(document.end_us)})"


def _project(bindings: Sequence[Binding], names: frozenset[str]) -> list[Binding]:
    found: dict[frozenset[tuple[str, int]], Binding] = {}
    for one in bindings:
        part = {name: bound for name, bound in one.items() if name in names}
        found.setdefault(frozenset((name, b.number) for name, b in part.items()), part)
    return list(found.values())


@dataclass
class _AskedDocuments:
    """The operators on one order of documents that all fit their blocks."""

    attempts: _Attempts
    choice: Mapping[int, Disjunct]
    sides: Mapping[int, NamedOperand]
    reasons: list[Reason] = field(default_factory=list)

    def source(self, root: Node) -> None:
        """Note the reasons of a plain statement's operators, or of the conditions of its block."""
        if isinstance(root, Operator):
            self.operand(root)
        elif isinstance(root, From):
            assert isinstance(root.node, int)
            side = self.sides[root.node]
            alone = NamedOperand(side.name, side.documents, [{}])
            self.reasons += self._joining(
                OperatorKind.JOIN, self.choice[id(root)], 0, side, alone
            ).conditions()

    def _joining(
        self,
        kind: OperatorKind,
        disjunct: Disjunct,
        window_us: int,
        left: NamedOperand,
        right: NamedOperand,
    ) -> Joining:
        attempts = self.attempts
        return Joining(
            kind,
            disjunct,
            window_us,
            attempts.lateness_us,
            left,
            right,
            attempts.labels,
            attempts.stream_at,
        )

    def operand(self, node: Node) -> NamedOperand | None:
        """Return an operand's tuples, and note the reasons; None where it has none."""
        if isinstance(node, int):
            return self.sides[node]
        assert isinstance(node, Operator)  # no other is left in a plain statement
        left, right = self.operand(node.left), self.operand(node.right)
        name = f"{_name(node.left)} {node.kind.value} {_name(node.right)}"
        if left is None or right is None:
            text = f"{name}: not looked at, because an operand has no match"
            self.reasons.append(Reason("operator", False, text))
            return None
        assert isinstance(node.window, Window)
        joining = self._joining(
            node.kind, self.choice[id(node)], node.window.length_us, left, right
        )
        parts = joining.reasons()
        holds = all(part.holds for part in parts)
        progress = sum(part.progress for part in parts) / max(1, len(parts))
        self.reasons.append(
            Reason("operator", holds, name, parts=parts, progress=min(progress, 0.99))
        )
        if not holds:
            return None
        documents = left.documents + right.documents
        side = f"documents {', '.join(str(d.docid) for d in documents)}"
        return NamedOperand(side, documents, joining.tuples())


def _name(node: Node) -> str:
    if isinstance(node, int):
        return f"block {node}"
    assert isinstance(node, Operator)
    return f"({_name(node.left)} {node.kind.value} {_name(node.right)})"
