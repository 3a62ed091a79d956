"""A plain statement held against documents in given orders, by its blocks and operators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from broker.documents.document import Document
from broker.whynot.blockattempts import BlockAttempts
from broker.whynot.operators import Joining, NamedOperand, StreamAt
from broker.whynot.reason import Reason
from templates.ordered import choices
from xscl.query import (
    Disjunct,
    From,
    Node,
    Operator,
    OperatorKind,
    Window,
    operand_terms,
)
from xscl.sequence import blocks_below

__all__ = ["Attempts"]


@dataclass
class Attempts(BlockAttempts):
    """The query on documents in given orders."""

    stream_at: StreamAt

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
        found = [self.block(i, d, read) for i, d in zip(self.asked, documents, strict=True)]
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
