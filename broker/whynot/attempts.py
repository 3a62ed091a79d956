"""A plain statement held against documents in given orders, by its blocks and operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.documents.document import Document, render_time
from broker.whynot.blocks import Binding, BlockOnDocument, BoundNode
from broker.whynot.operators import Joining, NamedOperand, StreamAt
from broker.whynot.reason import Reason
from templates.ordered import choices
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
from xscl.sequence import blocks_below

__all__ = ["Attempts", "describe"]

BlockResult = tuple[Reason, Sequence[Binding]]


@dataclass
class Attempts:
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

    attempts: Attempts
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
