"""The blocks of a query held against documents: what each binds, or why it fits none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from broker.documents.document import Document, render_time
from broker.whynot.blocks import Binding, BlockOnDocument, BoundNode
from broker.whynot.reason import Reason
from xpath_eval.structure import NodeTree, XmlError, parse_xml
from xscl.comparison import REVISION
from xscl.query import (
    Call,
    PathFrom,
    Query,
    Term,
    VariableValue,
    operand_variables,
    term,
)
from xscl.treepattern import tree_pattern

__all__ = ["BlockAttempts", "describe"]

BlockResult = tuple[Reason, Sequence[Binding]]


@dataclass
class BlockAttempts:
    """The blocks of a query on documents; what a block finds in a document is kept."""

    query: Query
    lateness_us: int
    registration_point: int
    trees: dict[int, NodeTree | XmlError] = field(default_factory=dict, kw_only=True)
    blocks: dict[tuple[int, int, frozenset[Term]], BlockResult] = field(
        default_factory=dict, kw_only=True
    )

    def block(self, index: int, document: Document, read: frozenset[Term]) -> BlockResult:
        """Return what a document has of a block, of which some terms are read."""
        of_block = {v.name for v in self.query.variables if v.block == index}
        own = frozenset(each for each in read if of_block.issuperset(operand_variables(each)))
        key = (index, id(document), own)
        if key not in self.blocks:
            self.blocks[key] = self._bind(index, document, own)
        return self.blocks[key]

    def _bind(self, index: int, document: Document, read: frozenset[Term]) -> BlockResult:
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
                one | _known(read, document)
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


def _known(read: frozenset[Term], document: Document) -> Binding:
    """Return what is asked of a document itself, as if it were values of its root."""
    known = {"start": document.start_us, "time": document.end_us, REVISION: document.revision}
    calls = (each for each in read if isinstance(each, Call))
    return {term(each): BoundNode(0, str(known[each.function])) for each in calls}


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
