"""The paper's figures as tables in Markdown, and as plots: small SVG files.

These differ from run to run in values only.  matplotlib is in the extra `bench`; it is imported
when plots are asked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes

__all__ = ["Curves", "plot_bars", "plot_curves", "print_head", "print_row"]

Curves = dict[str, list[tuple[float, float]]]
"""For each engine (what is varied, milliseconds or documents/s)."""

STYLE = {"svg.hashsalt": "xscl", "svg.fonttype": "none", "font.size": 10, "axes.grid": True}


def print_head(*names: str) -> None:
    """Print the head of a table."""
    print_row(*names)
    print_row(*["---"] * len(names))


def print_row(*cells: str) -> None:
    """Print a row of a table at once: one may take minutes."""
    print(f"| {' | '.join(cells)} |", flush=True)


def plot_curves(
    directory: Path, number: str, title: str, varied: str, curves: Curves, unit: str = "ms"
) -> None:
    """Write one figure of the paper with a curve for each engine."""
    with _axes(directory, number, title) as axes:
        for engine, points in curves.items():
            axes.plot(*zip(*points, strict=True), marker="o", label=engine)
        axes.set(xlabel=varied, ylabel=unit, yscale="log")
        at = [point[0] for points in curves.values() for point in points]
        if 0 < min(at) <= max(at) / 100:
            axes.set_xscale("log")
        axes.legend()


def plot_bars(
    directory: Path, number: str, title: str, bars: Mapping[str, Mapping[str, float]]
) -> None:
    """Write one figure of the paper with a bar for each engine, in parts."""
    with _axes(directory, number, title) as axes:
        below = dict.fromkeys(bars, 0.0)
        for part in sorted({part for parts in bars.values() for part in parts}):
            heights = [parts.get(part, 0.0) for parts in bars.values()]
            axes.bar(list(bars), heights, bottom=list(below.values()), label=part)
            below = {name: below[name] + bars[name].get(part, 0.0) for name in bars}
        axes.set(ylabel="ms")
        axes.legend()


@contextmanager
def _axes(directory: Path, number: str, title: str) -> Iterator[Axes]:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    directory.mkdir(parents=True, exist_ok=True)
    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(5, 3.5), layout="constrained")
        axes.set_title(fill(f"Figure {number}: {title}", 56), fontsize=10)
        yield axes
        figure.savefig(directory / f"paper-{number}.svg", metadata={"Date": None})
        pyplot.close(figure)
