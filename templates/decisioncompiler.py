"""From a query in which something is decided to its clauses.

A decision is one for all alternatives below it: its streams are compiled for each of them, and
bind only what the decision looks at.  What an alternative of the query hands on of it are streams
of its own, which bind also what is asked above (`docs/decided.md`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, cast

from templates.built import Built, once
from templates.chaincompiler import build_chain, chain_clause
from templates.clause import Alternative, Clause, Published
from templates.clausecompiler import Catalog, Compiler, Side
from templates.conjunctions import asked_behind, elements_behind
from templates.decision import Threshold, TupleStream
from templates.elements import repeated_units
from templates.factor import Factor
from templates.founddata import AskedOf, found_together, unboxed_parameters
from templates.hadtests import HadTest
from templates.helddata import equal_terms, named_terms, threshold_of
from templates.keys import SameKeys
from templates.ordered import (
    Chained,
    Kept,
    Ordered,
    PlainNode,
    Repeated,
    blocks_of,
    mentioned_in,
    ordered_nodes,
    predicates_of,
)
from templates.paircompiler import build_pairs, pairs_clause
from templates.runcompiler import build_runs, runs_clause
from templates.saiddata import data_named
from xscl.constants import breadth_of_constants, exclude_constants
from xscl.pattern import term_variable
from xscl.query import (
    Disjunct,
    From,
    Operator,
    Query,
    operand_terms,
    operand_variables,
    term,
)
from xscl.sequence import nodes_below

__all__ = ["DecisionCompiler", "Decisions"]


@dataclass
class Decisions:
    """The decisions of one query, each compiled once.

    `asked` are the variables whose values the query asks for: all that it reads of a block hands
    them on, so that the streams of operands are those that are decided about.  `asking` has the
    places of decisions that hand on rows, or an operand, once for each datum that is asked.
    """

    query: Query
    statements: Sequence[Query]
    asked: frozenset[str]
    point: int
    catalog: Catalog
    published: Mapping[str, Published]
    lateness_us: int
    shares: bool
    asking: Mapping[int, AskedOf] = field(default_factory=dict)
    built: dict[int, Built] = field(default_factory=dict)

    def __post_init__(self) -> None:
        own_us = self.lateness_us if self.query.grace is None else self.query.grace
        read = {block.stream for block in self.query.blocks}
        graces = (each.grace_us for name, each in self.published.items() if name in read)
        self.grace_us = max(min(own_us, self.lateness_us), *graces, 0)
        keys = {
            name
            for node in nodes_below(self.query.root)
            if isinstance(node, From)
            for key in node.keys
            for _, name in key.variables
        }
        self.asked |= keys
        mentioned = {v for statement in self.statements for v in mentioned_in(statement.root)}
        mentioned |= {
            variable
            for statement in self.statements
            for operand in (*elements_behind(statement), *statement.outcome_operands)
            for variable in operand_variables(operand)
        }
        looked_at = self.asked | mentioned | set(self.query.visible())
        units = repeated_units(self.query)
        self.units = {unit.first: unit for unit in units}
        self.same = SameKeys(self.query, units)
        self.named = [
            v
            for v in self.query.variables
            if v.name in keys or (v.name in looked_at and not v.is_path)
        ]

    def chosen(self, blocks: Sequence[int]) -> frozenset[str]:
        """Return the author's variables of blocks that the query looks at; of a unit its run."""
        runs = {unit.run for unit in self.units.values() if unit.first in blocks}
        of_elements = {block for unit in self.units.values() for block in unit.blocks}
        plain = (v.name for v in self.named if v.block in blocks and v.block not in of_elements)
        return frozenset(plain) | runs

    def chosen_of_elements(self, block: int) -> frozenset[str]:
        """Return the author's variables of a block of a repeated unit that the query looks at."""
        return frozenset(v.name for v in self.named if v.block == block)

    def of(self, origin: int) -> Built:
        """Return a decision by the place of its node in the query."""
        if origin not in self.built:
            self.built[origin] = self._build(origin)
        return self.built[origin]

    def _build(self, origin: int) -> Built:
        first: dict[Ordered | Repeated | Chained, Query] = {}
        for statement in self.statements:
            own = next(each for each in ordered_nodes(statement.root) if each.origin == origin)
            # Statements that differ elsewhere decide the same here.
            first.setdefault(own, statement)
        nodes = [(statement, node) for node, statement in first.items()]
        runs = [(statement, node) for statement, node in nodes if isinstance(node, Repeated)]
        if runs:
            return build_runs(self, runs)
        chains = [(statement, node) for statement, node in nodes if isinstance(node, Chained)]
        if chains:
            return build_chain(self, chains)
        pairs = [(statement, node) for statement, node in nodes if isinstance(node, Ordered)]
        return build_pairs(self, pairs)

    def compiler(
        self,
        statement: Query,
        choice: Mapping[int, Disjunct],
        factors: tuple[Factor, ...] = (),
    ) -> DecisionCompiler:
        """Return what compiles a plain statement under a choice of disjuncts."""
        return DecisionCompiler(
            statement,
            self.point,
            self.catalog,
            self.published,
            choice,
            shares=self.shares,
            is_alone=len(self.statements) == 1,
            asked=self.asked,
            decisions=self,
            factors=factors,
        )

    def stream(self, clause: Clause, had: Collection[HadTest] = ()) -> TupleStream:
        """Return the tuples of a clause as a stream of contenders, which tests ask for values."""
        equal = tuple(equal_terms(clause).items())
        return replace(self._named(clause), equal=equal) if equal or had else self._alone(clause)

    def competing(self, clause: Clause, had: Collection[str], spared: str | None) -> TupleStream:
        """Return the tuples of a clause as a stream, of which some are the next ones.

        Values of the left operand are equal to data that are `had`: those do not tell them apart.
        Nor do those of a datum of which there are sets.
        """
        equal = tuple(equal_terms(clause).items())
        return replace(
            self._named(clause),
            keys=tuple(name for datum, name in equal if datum not in had and datum != spared),
            threshold=threshold_of(clause, had, spared),
            equal=equal,
        )

    def _alone(self, clause: Clause) -> TupleStream:
        chosen = self.chosen(clause.blocks) & set(clause.carried)
        return TupleStream(clause.stream, clause.blocks, clause.carried, tuple(sorted(chosen)))

    def absent(
        self, clause: Clause, had: Collection[str], spared: str | None, *, asks_each: bool
    ) -> TupleStream:
        """Return the tuples of an absent unit, with what is held against data as a term.

        Data that are `had` are equal to values of the tuples that are taken away, too; of a datum
        that is `spared` there are sets.
        """
        equal = equal_terms(clause)
        if spared is not None:
            threshold = threshold_of(clause, had, spared)
        elif equal.keys() <= set(had):
            threshold = threshold_of(clause, had)
        elif together := found_together(clause, had, asks_each=asks_each):
            threshold = Threshold(named_terms(clause)[clause.tested.index(together)], "=")
        else:
            [name] = equal.values()
            threshold = Threshold(name, "=")
        return replace(self._named(clause), threshold=threshold, equal=tuple(equal.items()))

    def _named(self, clause: Clause) -> TupleStream:
        """Return the tuples of a clause as a stream, with tested values as terms of its own."""
        return replace(self._alone(clause), terms=(*clause.carried, *named_terms(clause)))

    def told_apart(self, clause: Clause, data: Iterable[str]) -> TupleStream:
        """Return the tuples of a clause as `tested` does, told apart by what they say of data."""
        terms, names = equal_terms(clause), named_terms(clause)
        keys = {datum: clause.tested_terms[names.index(terms[datum])] for datum in data}
        stream = self.tested(clause)
        return replace(stream, keys=tuple(keys.values()), equal=tuple(keys.items()))

    def tested(self, clause: Clause) -> TupleStream:
        """Return the tuples of a clause as a stream, with what is held against data as terms."""
        return replace(self._alone(clause), terms=(*clause.carried, *clause.tested_terms))


@dataclass
class DecisionCompiler(Compiler):
    """Compiles an alternative in which something is decided."""

    decisions: Decisions = field(kw_only=True)
    factors: tuple[Factor, ...] = ()
    is_open: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        asked = [o for d in predicates_of(self.query.root) for o in d.operands()]
        names = {variable.name for variable in self.query.variables}
        self.factors = tuple(each.bound(names) for each in self.factors)
        self.times = [call for factor in self.factors for call in factor.terms()]
        self.look_at([*asked, *asked_behind(self.query), *self.times])

    def compile(self) -> Alternative:
        """Return the alternative, with each clause once."""
        behind = (each for o in asked_behind(self.query) for each in operand_terms(o))
        read = {*self.visible(), *map(term, behind), *map(term, self.times)}
        self.clause(self.query.root, frozenset(read))
        self.clauses[-1] = replace(
            self.clauses[-1],
            actions=self.query.actions,
            outcome=self.query.outcome_operands,
            factors=self.factors,
        )
        self.catalog.want(self.edges, self.valued)
        return Alternative(
            once(self.clauses),
            tuple(self.patterns),
            tuple(self.edges),
            tuple(self.valued),
            tuple(self.admitted),
        )

    def is_common(self, clause: Clause) -> bool:
        """Return whether statements with other data read the tuples of a clause, too."""
        if clause.blocks != (self._sharing,) or not clause.constants:
            return False
        # Whose a tuple is must be a matter of what is decided: of its nodes, and not of how paths
        # from them go on.
        root = self.decisions.query.blocks[clause.blocks[0]].root
        is_of_nodes = root in clause.carried and set(clause.box) <= set(clause.constants)
        return is_of_nodes and super().is_common(clause)

    def _owner_of_all(self) -> object | None:
        """Return what tells tuples that are common from others: which documents are seen."""
        return "common", self.point

    def _sharing_block(self) -> int | None:
        """Return the block whose written-out data are asked of what is decided.

        It is the first operand of a decision of pairs, or tuples, that is all of the statement:
        each of its tuples is decided by itself (`docs/decided.md`).  Where other blocks have such
        data, too, statements would mostly differ there, and each decide of what all ask for.
        """
        query, root = self.decisions.query, cast(PlainNode, self.query.root)
        decided = root.node if isinstance(root, Kept) else root
        if not isinstance(decided, Ordered) or not self.is_alone:
            return None
        first = decided.operands[0]
        if not isinstance(first, int) or query.parameters or query.tables or query.is_lossy:
            return None
        others = (block.path for i, block in enumerate(query.blocks) if i != first)
        if exclude_constants(query.blocks[first].path) or any(map(breadth_of_constants, others)):
            return None
        return first

    def has_words(self, node: PlainNode) -> bool:
        """Return whether words of a node that is no root may be data in a box."""
        return False  # what is decided has streams by data

    def visible(self) -> tuple[str, ...]:
        """Return the visible variables of the alternative."""
        units = self.decisions.units.values()
        of_elements = {block for unit in units for block in unit.blocks}
        names = self.query.visible_in(b for b in blocks_of(self.query.root) if b not in of_elements)
        plain = tuple(v for v in names if self.block_of.get(v) not in of_elements)
        return plain + tuple(unit.run for unit in units)

    def joined_side(self, block: int, needed: frozenset[str]) -> Side:
        """Return a block that an operator joins: numbers and words are filters there."""
        return self._block_side(block, needed, shares_constants=False)

    def block_side(self, block: int, needed: frozenset[str]) -> Side:
        """Return a block that binds what is needed here, and nothing that is asked elsewhere.

        Its numbers and words are data: the streams of operands have them in their names.
        """
        # Of a node that is handed on, or stands above it, a tuple has one value of a prefilter.
        is_one = self.query.blocks[block].root in needed
        return self._block_side(block, needed, shares_constants=self.shares and is_one)

    def _block_side(self, block: int, needed: frozenset[str], *, shares_constants: bool) -> Side:
        derived = {t: d for t, d in self.derived.items() if t in needed and self.block(t) == block}
        own = {v.name for v in self.query.variables if v.block == block}
        bases = {term_variable(call) for call in derived.values()}
        paths = {v.name for v in self.query.variables if v.block == block and v.is_path}
        bound, dropped = own & needed, paths - needed - bases
        return self.side_of(
            block, needed, bound, derived, dropped, shares_constants=shares_constants
        )

    def clause(self, node: PlainNode, needed_above: frozenset[str]) -> Clause:
        """Compile a node after those below it.

        What it hands on says the data that it is asked for, but for those that boxes have.
        """
        clause = self._clause(node, needed_above)
        if node is not self.query.root:
            clause.unheld = data_named(unboxed_parameters(clause), self.texts)
        return clause

    def _clause(self, node: PlainNode, needed_above: frozenset[str]) -> Clause:
        where = self.choice[id(node)] if isinstance(node, Kept) else Disjunct()
        inner = node.node if isinstance(node, Kept) else node
        if isinstance(inner, Repeated):
            return runs_clause(self, inner, where, needed_above)
        if isinstance(inner, Chained):
            return chain_clause(self, inner, where, needed_above)
        if isinstance(inner, Ordered):
            return pairs_clause(self, inner, where, needed_above)
        clause = super().clause(node, needed_above)
        if isinstance(node, (int, From)):
            # Nothing is joined: what is handed on is kept for those above alone.
            clause = self.clauses[-1] = replace(clause, window_us=0)
        return clause

    def without_implied(self, node: Operator, disjunct: Disjunct) -> Disjunct:
        """Return all that an operator asks: something may be chosen among its tuples."""
        return disjunct

    def attach(self, origin: int) -> Built:
        """Return a decision; the first that reads it has what it reads among its clauses."""
        built = self.decisions.of(origin)
        if not built.is_taken:
            built.is_taken = True
            self.clauses += built.clauses
            self.patterns += built.patterns
            self.edges += built.edges
            self.valued += built.valued
            self.admitted += built.admitted
        return built
