"""The relations of the join: their names, columns and types, in this one place.

Next to each is the paper's name (Hong 2009, sections 6.3.1 and 6.4.3).  Documents, published
documents and the tuples of inner operators are all **instances**: rows of `remembered` with a
number of our own, which grows in the order in which they came to be known.
"""

from __future__ import annotations

from templates.template import Template

__all__ = [
    "BINDING",
    "JOINED_VARIABLE",
    "REMEMBERED",
    "SHAPE_BINDING",
    "SHAPE_EDGE",
    "SIGNATURE_LEFT",
    "SIGNATURE_RIGHT",
    "SLICE",
    "TABLES",
    "VALUE_JOIN",
    "VALUE_PAIR",
    "template_row",
    "template_row_columns",
]

REMEMBERED = "remembered"
BINDING = "binding"
SHAPE_EDGE = "shape_edge"
SHAPE_BINDING = "shape_binding"
JOINED_VARIABLE = "joined_variable"
VALUE_PAIR = "value_pair"
SLICE = "slice"
VALUE_JOIN = "value_join"
SIGNATURE_LEFT = "signature_left"
SIGNATURE_RIGHT = "signature_right"

TABLES = {
    # R_docTS, R_docTSW: one row for each instance.  `docid` is where it stands, `docid_min` and
    # `docid_max` are the smallest and largest docid behind it; `leaves` are the documents that it
    # consists of, in block order; `nodes` and `vals` are the document node and the string value of
    # each node of its witness shape.
    REMEMBERED: """
        instance BIGINT, stream VARCHAR, key VARCHAR, docid BIGINT, depth INTEGER, match_id VARCHAR,
        docid_min BIGINT, docid_max BIGINT, start_us BIGINT, end_us BIGINT, watermark_us BIGINT,
        shape INTEGER, leaves BIGINT[], nodes INTEGER[], vals VARCHAR[]""",
    # R_doc, R_docW, by variable: the values of what value joins compare; never the empty string.
    BINDING: "instance BIGINT, variable INTEGER, node INTEGER, value VARCHAR",
    # R_L, slice by slice: the bindings of those values that are in the view cache.
    SLICE: "value VARCHAR, instance BIGINT, variable INTEGER, node INTEGER",
    # R_bin, R_binW, once for each witness shape.
    SHAPE_EDGE: "shape INTEGER, var1 INTEGER, var2 INTEGER, node1 INTEGER, node2 INTEGER",
    # The nodes that a variable of a value join binds in a shape.
    SHAPE_BINDING: "shape INTEGER, variable INTEGER, node INTEGER",
    # The variables that take part in value joins.
    JOINED_VARIABLE: "variable INTEGER",
    # The variable pairs that some query class joins, with the widest window of those classes.
    VALUE_PAIR: """
        stratum INTEGER, left_variable INTEGER, right_variable INTEGER, window_us BIGINT,
        is_symmetric BOOLEAN""",
    # R_vj: pairs of nodes with equal values, of which one at least is new in this batch.
    VALUE_JOIN: """
        l BIGINT, r BIGINT, left_variable INTEGER, right_variable INTEGER,
        left_node INTEGER, right_node INTEGER""",
    # Signatures that are being looked at: the shapes of both sides.
    SIGNATURE_LEFT: "instance BIGINT, shape INTEGER",
    SIGNATURE_RIGHT: "instance BIGINT, shape INTEGER",
}


def template_row(number: int) -> str:
    """Return the name of a template's table, the paper's R_T."""
    return f"template_row_{number}"


def template_row_columns(template: Template) -> str:
    """Return the columns of a template's table.

    One row is one query class: its variables, the widest window of its queries, whether it is
    symmetric (JOIN), and its stratum.
    """
    variables = [f"var{i + 1} INTEGER" for i in range(template.size)]
    return ", ".join(
        [
            "class BIGINT",
            *variables,
            "window_us BIGINT",
            "is_symmetric BOOLEAN",
            "stratum INTEGER",
        ]
    )
