"""The worked example of the dissertation: figures 6.1 and 6.2, tables 6.2 and 6.4.

The figures do not survive as text; these documents are made to fit the tables.  `D3` is `D2` once
more, as a document of its own.
"""

from __future__ import annotations

__all__ = ["D1", "D2", "D3", "QUERIES", "R_BIN", "R_BIN_W", "R_DOC", "R_DOC_W", "R_OUT", "R_T"]

D1 = b"""<book>
  <publisher>Wrox</publisher>
  <author>Danny Ayers</author>
  <author>Andrew Watt</author>
  <title>Beginning RSS and Atom Programming</title>
  <category>Scripting &amp; Programming</category>
  <category>Web Site Development</category>
</book>"""

D2 = b"""<blog>
  <url>http://example.com/blog/1</url>
  <author>Danny Ayers</author>
  <title>Beginning RSS and Atom Programming</title>
  <category>Book Announcement</category>
  <category>Scripting &amp; Programming</category>
</blog>"""

D3 = D2

QUERIES = {
    "Q1": """S//book->x1[./author->x2][./title->x3]
FOLLOWED BY {x2=x5 AND x3=x6, P30D}
S//blog->x4[./author->x5][./title->x6]""",
    "Q2": """S//book->x1[./author->x2][./category->x7]
FOLLOWED BY {x2=x5 AND x7=x8, P30D}
S//blog->x4[./author->x5][./category->x8]""",
    "Q3": """S//blog->x4[./author->x5][./title->x6]
FOLLOWED BY {x5=x5' AND x6=x6', P30D}
S//blog->x4'[./author->x5'][./title->x6']""",
}

R_T = {
    ("Q1", "x1", "x2", "x3", "x4", "x5", "x6", "T1"),
    ("Q2", "x1", "x2", "x7", "x4", "x5", "x8", "T2"),
    ("Q3", "x4", "x5", "x6", "x4", "x5", "x6", "T3"),
}
"""Table 6.4(a): the paper gives variables of equal definition one name, so Q3 has no primes."""

R_DOC = {
    (1, 0, None),
    (1, 2, "Danny Ayers"),
    (1, 3, "Andrew Watt"),
    (1, 4, "Beginning RSS and Atom Programming"),
    (1, 5, "Scripting & Programming"),
    (1, 6, "Web Site Development"),
}
"""Table 6.4(b): docid, node, strVal after d1; None where the paper prints a dash."""

R_BIN = {
    (1, "x1", "x2", 0, 2),
    (1, "x1", "x2", 0, 3),
    (1, "x1", "x3", 0, 4),
    (1, "x1", "x7", 0, 5),
    (1, "x1", "x7", 0, 6),
}
"""Table 6.4(c): docid, var1, var2, node1, node2 after d1."""

R_DOC_W = {
    (0, None),
    (2, "Danny Ayers"),
    (3, "Beginning RSS and Atom Programming"),
    (4, "Book Announcement"),
    (5, "Scripting & Programming"),
}
"""Table 6.4(d): node, strVal of d2."""

R_BIN_W = {
    ("x4", "x5", 0, 2),
    ("x4", "x6", 0, 3),
    ("x4", "x8", 0, 4),
    ("x4", "x8", 0, 5),
}
"""Table 6.4(e): var1, var2, node1, node2 of d2."""

R_OUT = {
    ("Q1", 1, 0, 2, 4, 0, 2, 3, "T1"),
    ("Q2", 1, 0, 2, 5, 0, 2, 5, "T2"),
}
"""Table 6.4(f): qid, docid1, node1 to node6, window length."""
