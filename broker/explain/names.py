"""One name for each definition, in all queries that have it (Hong 2009, section 6.3).

A definition is called what the first query that binds it calls it.  Where two definitions would
have one name, the later one gets `.2`, `.3`, ... behind it.  Paths and functions of a variable are
named after it (`x1/author`); a node that no query binds is called by its step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from broker.explain.model import VariableView
from broker.explain.spelling import spell_derivation, spell_filters, spell_prefilter, spell_test
from xpath_eval.catalog import Definition, PatternCatalog
from xscl.path import Axis
from xscl.pattern import PatternNode

__all__ = ["name_variables"]


def name_variables(
    catalog: PatternCatalog, uses: Mapping[int, Sequence[tuple[str, str]]]
) -> dict[int, VariableView]:
    """Return every variable but the document nodes, in the order in which they were defined."""
    taken: set[str] = set()
    definitions, of_tuples = catalog.definitions, catalog.tuple_names()
    views: dict[int, VariableView] = {}
    for number in sorted({*definitions, *of_tuples}):
        if number in of_tuples:
            [_, made], *_ = uses.get(number, [("", of_tuples[number])])
            views[number] = VariableView(number, made, "", ())
            continue
        definition = definitions[number]
        if definition.step is None:
            continue
        called = tuple(dict.fromkeys(uses.get(number, ())))
        above = views.get(definition.parent)
        wish = _wish(definition.step, [name for _, name in called], above.name if above else "")
        views[number] = VariableView(
            number, _free(wish, taken), _definition(number, definitions), called
        )
    return views


def _wish(step: PatternNode, called: Sequence[str], above: str) -> str:
    if step.derivation is not None:
        return spell_derivation(step.derivation, above)
    for name in called:
        if not name.startswith("#") and "/" not in name:
            return name
    if step.axis is Axis.SELF:
        own = "self"
    else:
        at = "@" if step.axis is Axis.ATTRIBUTE else ""
        own = at + ("any" if step.test.name == "*" else spell_test(step.test).rpartition("}")[2])
    return f"{above}{'//' if step.is_deep else '/'}{own}" if above and called else own


def _free(wish: str, taken: set[str]) -> str:
    name, count = wish, 1
    while name in taken:
        count += 1
        name = f"{wish}.{count}"
    taken.add(name)
    return name


def _definition(number: int, definitions: Mapping[int, Definition]) -> str:
    """Return the chain of steps that leads to a variable, from its stream."""
    definition = definitions[number]
    step = definition.step
    if step is None:
        return definition.stream
    above = _definition(definition.parent, definitions)
    if step.derivation is not None:
        return spell_derivation(step.derivation, above)
    name = "." if step.axis is Axis.SELF else spell_test(step.test)
    at = "@" if step.axis is Axis.ATTRIBUTE else ""
    shared = "".join(f"[{spell_prefilter(each)}]" for each in step.prefilters)
    filters = spell_filters(step.filters) + shared
    return f"{above}{'//' if step.is_deep else '/'}{at}{name}{filters}"
