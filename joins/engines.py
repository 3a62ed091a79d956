"""The engines by name."""

from __future__ import annotations

from typing import Literal

from joins.processor import Processor, SqlProcessor
from joins.remembered import hash_values
from joins.signatures import SignatureProcessor

__all__ = ["DEFAULT_ENGINE", "ENGINES", "EngineName", "make_processor"]

EngineName = Literal["sequential", "mmqjp", "mmqjp-views", "signatures"]
ENGINES: tuple[EngineName, ...] = ("sequential", "mmqjp", "mmqjp-views", "signatures")
DEFAULT_ENGINE: EngineName = "signatures"


def make_processor(engine: EngineName, *, lateness_us: int) -> Processor:
    """Return a join without classes and without state."""
    if engine == "signatures":
        return SignatureProcessor(lateness_us=lateness_us, hashing=hash_values)
    return SqlProcessor(lateness_us=lateness_us, engine=engine)
