"""The engines by name."""

from __future__ import annotations

from typing import Literal

from joins.processor import Processor, SqlProcessor

__all__ = ["DEFAULT_ENGINE", "ENGINES", "EngineName", "make_processor"]

EngineName = Literal["sequential", "mmqjp", "mmqjp-views"]
ENGINES: tuple[EngineName, ...] = ("sequential", "mmqjp", "mmqjp-views")
DEFAULT_ENGINE: EngineName = "mmqjp-views"


def make_processor(engine: EngineName, *, lateness_us: int) -> Processor:
    """Return a join without classes and without state."""
    return SqlProcessor(lateness_us=lateness_us, engine=engine)
