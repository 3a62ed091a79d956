"""Plots of what stage 1 costs, as small SVG files that do not differ from run to run but in values.

matplotlib is in the extra `bench`; it is imported when plots are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Curves", "plot"]

Curves = dict[str, list[tuple[int, float]]]
"""By its label, each curve's (number of queries, figure)."""

STYLE = {
    "svg.hashsalt": "xscl",
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def plot(directory: Path, items: Curves, paths: Curves, big: Curves) -> None:
    """Write the three plots of the page on performance."""
    directory.mkdir(parents=True, exist_ok=True)
    _write(directory / "xpath-items.svg", items, _items_axes)
    if paths:
        _write(directory / "xpath-nitf.svg", paths, _nitf_axes)
    _write(directory / "xpath-xmark.svg", big, _xmark_axes)


def _items_axes(axes: Axes) -> None:
    axes.set(xscale="log", ylim=(0, 5), xlabel="distinct queries", ylabel="times of a bare parse")
    axes.set_title("Items of 7 to 20 elements, known shapes")
    _note(axes, 3, "aim")
    _note(axes, 1, "bare parse")


def _nitf_axes(axes: Axes) -> None:
    axes.set(xscale="log", yscale="log", xlabel="paths", ylabel="times of a bare parse")
    axes.set_title("NITF documents of 3.5 KB")
    _note(axes, 1, "bare parse")


def _xmark_axes(axes: Axes) -> None:
    axes.set(xscale="log", xlabel="patterns with * and //", ylabel="MB/s")
    axes.set_ylim(bottom=0)
    axes.set_title("XMark-like documents of 1 MB, new shapes")


def _note(axes: Axes, height: float, text: str) -> None:
    axes.axhline(height, color="gray", linestyle=":", linewidth=1)
    axes.annotate(text, (1, height), xycoords=("axes fraction", "data"), ha="right", va="bottom")


def _write(path: Path, curves: Curves, prepare: Callable[[Axes], None]) -> None:
    from matplotlib import pyplot

    with pyplot.rc_context(STYLE):
        figure, axes = pyplot.subplots(figsize=(8.5, 4), layout="constrained")
        prepare(axes)
        for marker, (label, points) in zip("osv^D<>p", curves.items(), strict=False):
            axes.plot(*zip(*points, strict=True), marker=marker, markersize=4, label=label)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        if len(curves) > 1:
            axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1, 0.5))
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        pyplot.close(figure)
