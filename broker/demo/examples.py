"""Where the examples stand: in the checkout around the package, or inside the package."""

from __future__ import annotations

from pathlib import Path

__all__ = ["examples_directory"]


def examples_directory() -> Path:
    """Return the directory with `queries/`, `feeds/` and `documents/`."""
    checkout = Path(__file__).parents[2] / "examples"
    if (checkout / "queries").is_dir():
        return checkout
    return Path(__file__).parent / "examples"
