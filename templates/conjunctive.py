"""Conjunctive queries: one for each template (Hong 2009, section 6.4.4).

A conjunctive query is a head and a body of atoms over the relations of the paper; equal terms
mean equal values.  `conjunctive_query` makes `CQ_T`, over the witnesses themselves;
`view_query` makes the form of Hong's section 6.5, over the materialised value joins `R_vj`.

Times are not in the body: as in the paper's Algorithm 3 they are looked at afterwards, pair by
pair, except that a pair no window of the template can hold is never made.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from templates.template import Template

__all__ = ["Atom", "ConjunctiveQuery", "ValueDifference", "conjunctive_query", "view_query"]


@dataclass(frozen=True, slots=True)
class Atom:
    """One relation of the body, by the paper's name, with a term for each of its columns."""

    relation: str
    terms: tuple[str, ...]

    def render(self) -> str:
        """Return the atom as Datalog."""
        return f"{self.relation}({', '.join(self.terms)})"


@dataclass(frozen=True, slots=True)
class ValueDifference:
    """Two terms that must be equal or must differ, beside the atoms: a residual."""

    left: str
    operator: str
    right: str

    def render(self) -> str:
        """Return the comparison as Datalog."""
        return f"{self.left} {self.operator} {self.right}"


@dataclass(frozen=True, slots=True)
class ConjunctiveQuery:
    """`head :- atoms, residuals`."""

    head: Atom
    atoms: tuple[Atom, ...]
    residuals: tuple[ValueDifference, ...] = ()

    def render(self) -> str:
        """Return the query as Datalog, one atom a line."""
        body = [atom.render() for atom in self.atoms]
        body += [residual.render() for residual in self.residuals]
        return f"{self.head.render()} :-\n    " + ",\n    ".join(body)


def conjunctive_query(template: Template) -> ConjunctiveQuery:
    """Return `CQ_T` over `R_doc`, `R_bin`, `R_docW`, `R_binW` and `R_T`."""
    joins = [
        atom
        for i, (left, right) in enumerate(template.value_joins, 1)
        for atom in (
            Atom("R_doc", ("l", f"var{left + 1}", f"node{left + 1}", f"s{i}")),
            Atom("R_docW", ("r", f"var{right + 1}", f"node{right + 1}", f"s{i}")),
        )
    ]
    return _query(template, joins)


def view_query(template: Template) -> ConjunctiveQuery:
    """Return the template's query over `R_vj`, the value joins that all templates share."""
    joins = [
        Atom("R_vj", ("l", "r", *(f"{c}{i + 1}" for c in ("var", "node") for i in pair)))
        for pair in template.value_joins
    ]
    return _query(template, joins)


def _query(template: Template, joins: list[Atom]) -> ConjunctiveQuery:
    variables = tuple(f"var{i + 1}" for i in range(template.size))
    nodes = tuple(f"node{i + 1}" for i in range(template.size))
    documents = ("l", "r") if template.has_right else ("l",)
    compared = list(_residual_values(template))
    return ConjunctiveQuery(
        Atom("R_outT", ("class", *documents, *nodes)),
        (*joins, *_edges(template), *compared, Atom("R_T", ("class", *variables))),
        tuple(_differences(template)),
    )


def _document(template: Template, node: int) -> tuple[str, str]:
    """Return the term of a node's document, and the suffix of its relations."""
    return ("l", "") if node < template.left_size or not template.has_right else ("r", "W")


def _edges(template: Template) -> Iterator[Atom]:
    joined = {node for pair in template.value_joins for node in pair}
    parents = set(template.parents)
    for node, parent in enumerate(template.parents):
        document, suffix = _document(template, node)
        if parent >= 0:
            ends = tuple(f"{c}{i + 1}" for c in ("var", "node") for i in (parent, node))
            yield Atom(f"R_bin{suffix}", (document, *ends))
        elif node not in parents and node not in joined:
            # A side of one node that joins nothing: the edge of a node with itself.
            alone = tuple(f"{c}{node + 1}" for c in ("var", "var", "node", "node"))
            yield Atom(f"R_bin{suffix}", (document, *alone))


def _residual_nodes(template: Template) -> list[int]:
    nodes = (node for left, _, right in template.residuals for node in (left, right))
    return sorted(set(nodes))


def _residual_values(template: Template) -> Iterator[Atom]:
    for node in _residual_nodes(template):
        document, suffix = _document(template, node)
        yield Atom(f"R_value{suffix}", (document, f"node{node + 1}", f"value{node + 1}"))


def _differences(template: Template) -> Iterator[ValueDifference]:
    for left, operator, right in template.residuals:
        yield ValueDifference(f"value{left + 1}", operator, f"value{right + 1}")
