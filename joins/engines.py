"""The engines by name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from joins.budget.pairs import UNBOUNDED, Bounds
from joins.memory.remembered import hash_values
from joins.signature.engine import SignatureProcessor
from joins.sql.engine import SqlProcessor

__all__ = ["DEFAULT_ENGINE", "ENGINES", "EngineName", "make_processor"]

EngineName = Literal["sequential", "mmqjp", "mmqjp-views", "signatures"]
ENGINES: tuple[EngineName, ...] = ("sequential", "mmqjp", "mmqjp-views", "signatures")
DEFAULT_ENGINE: EngineName = "signatures"


def make_processor(
    engine: EngineName,
    *,
    lateness_us: int,
    pairs_max: int = UNBOUNDED,
    is_part: bool = False,
    spill_directory: Path | None = None,
) -> SignatureProcessor | SqlProcessor:
    """Return a join without classes and without state.

    Uses of classes in which a document makes more than `pairs_max` pairs are stopped;
    `is_part`: see `Bounds`.  What does not fit into memory `signatures` writes to
    `spill_directory`, or to
    where the system has temporary files.
    """
    bounds = Bounds(lateness_us, pairs_max, is_part)
    if engine == "signatures":
        return SignatureProcessor(bounds, hashing=hash_values, spill_directory=spill_directory)
    return SqlProcessor(lateness_us=lateness_us, engine=engine, bounds=bounds)
