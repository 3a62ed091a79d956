"""Loads of tables, as they come in: what says nothing to its table is refused, with the reason.

    <rows><row id="w7"><status>warning</status><n type="number">3</n></row><delete id="w9"/></rows>

The statement that a table stands for (`xscl.loads`) reads what it knows of a load, and no more: a
column that is misspelled would be passed over in silence.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from broker.documents.document import DocumentError
from broker.documents.wellformed import root_of
from xscl.table import Table

__all__ = ["check_load"]

_OF_ROWS = ("row", "delete")


def check_load(table: Table, xml: bytes) -> None:
    """Raise `DocumentError` for a load that does not say what it means to the table.

    What is no XML is left to whoever evaluates it.
    """
    root = root_of(xml)
    problem = None if root is None else next(_problems(table, root), None)
    if problem is not None:
        raise DocumentError(f"a load of the table {table.name!r}: {problem}")


def _problems(table: Table, root: etree._Element) -> Iterator[str]:
    key, *columns = (column.name for column in table.columns)
    rows = [root] if root.tag in _OF_ROWS else [*root.iter(*_OF_ROWS)]
    if not rows:
        yield f"it has no `<row {key}=...>` and no `<delete {key}=...>`"
    for row in rows:
        if key not in row.attrib:
            yield f"a `<{row.tag}>` without the attribute {key!r}, which is the key"
        for cell in row.iterchildren(etree.Element) if row.tag == "row" else ():
            if cell.tag not in columns:
                known = ", ".join(map(repr, columns)) or "none"
                yield f"there is no column {cell.tag!r}; the columns are {known}"
    above = dict.fromkeys(row.getparent() for row in rows if row is not root)
    for parent in above:
        for other in () if parent is None else parent.iterchildren(etree.Element):
            if other.tag not in _OF_ROWS:
                yield f"`<{other.tag}>` is neither `<row>` nor `<delete>`"
