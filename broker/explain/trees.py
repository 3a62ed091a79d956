"""Trees and tables as lines of text."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["beside", "indent", "table", "tree", "wrap"]


def tree(parents: Sequence[int], labels: Sequence[str]) -> list[str]:
    r"""Return the lines of trees given by the parent of each node; roots have -1.

    >>> print("\n".join(tree([-1, 0, 1, 0], ["a", "b", "c", "d"])))
    a
    ├─ b
    │  └─ c
    └─ d
    """
    below: dict[int, list[int]] = {}
    for node, parent in enumerate(parents):
        below.setdefault(parent, []).append(node)
    lines: list[str] = []

    def draw(node: int, first: str, rest: str) -> None:
        head, *more = labels[node].split("\n")
        children = below.get(node, [])
        lines.append(first + head)
        lines.extend(rest + ("│  " if children else "   ") + line for line in more)
        for child in children:
            is_last = child == children[-1]
            draw(child, rest + ("└─ " if is_last else "├─ "), rest + ("   " if is_last else "│  "))

    for root in below.get(-1, []):
        draw(root, "", "")
    return lines


def beside(columns: Sequence[Sequence[str]], gap: int = 6) -> list[str]:
    """Return blocks of lines next to each other."""
    height = max(map(len, columns), default=0)
    widths = [max(map(len, column), default=0) for column in columns]
    lines = []
    for row in range(height):
        cells = [column[row] if row < len(column) else "" for column in columns]
        padded = (cell.ljust(width + gap) for cell, width in zip(cells, widths, strict=True))
        lines.append("".join(padded).rstrip())
    return lines


def table(head: Sequence[str], rows: Sequence[Sequence[str]], gap: int = 2) -> list[str]:
    """Return a table with its columns aligned to the left; without rows, the head alone."""
    lines = [list(head), *map(list, rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return [
        (" " * gap)
        .join(cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        .rstrip()
        for line in lines
    ]


def indent(lines: Sequence[str], by: str = "  ") -> list[str]:
    """Return the lines moved to the right; empty ones stay empty."""
    return [by + line if line else "" for line in lines]


def wrap(items: Sequence[str], limit: int = 8) -> str:
    """Return a list in words, cut after `limit` items.

    >>> wrap(["a", "b", "c"], limit=2)
    'a, b and 1 more'
    """
    shown = ", ".join(items[:limit])
    rest = len(items) - limit
    return f"{shown} and {rest:,} more" if rest > 0 else shown
