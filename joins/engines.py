"""The engines by name."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from joins.processor import Processor, SqlProcessor
from joins.ration import UNBOUNDED, Bounds
from joins.remembered import hash_values
from joins.signatures import SignatureProcessor

__all__ = ["DEFAULT_ENGINE", "ENGINES", "EngineName", "make_processor"]

EngineName = Literal["sequential", "mmqjp", "mmqjp-views", "signatures"]
ENGINES: tuple[EngineName, ...] = ("sequential", "mmqjp", "mmqjp-views", "signatures")
DEFAULT_ENGINE: EngineName = "signatures"


def make_processor(
    engine: EngineName,
    *,
    lateness_us: int,
    pairs_max: int = UNBOUNDED,
    spill_directory: Path | None = None,
) -> Processor:
    """Return a join without classes and without state.

    Where a document meets more than `pairs_max` partners in a class, `signatures` cuts the class.
    What does not fit into memory it writes to `spill_directory`, or to where the system has
    temporary files.
    """
    if engine == "signatures":
        bounds = Bounds(lateness_us, pairs_max)
        return SignatureProcessor(bounds, hashing=hash_values, spill_directory=spill_directory)
    return SqlProcessor(lateness_us=lateness_us, engine=engine)
