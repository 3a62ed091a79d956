"""Recorded data of others: used where it stands, and no part of the repository.

`XSCL_SHARED` names the directory that has it below `data/`; else that is `shared`, beside the
checkout.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

__all__ = ["feed_files", "news_file"]

DATA = Path(os.environ.get("XSCL_SHARED", Path(__file__).parents[3] / "shared")) / "data"


def news_file() -> Path:
    """Return the recorded news items as document lines, or skip the test that needs them."""
    path = DATA / "news-2026.docs.jsonl.gz"
    if not path.exists():
        pytest.skip(f"no {path}: set XSCL_SHARED to the directory that has data/{path.name}")
    return path


def feed_files() -> list[Path]:
    """Return the feed files as they were served, or skip the test that needs them."""
    files = sorted(path for path in (DATA / "feeds").glob("*") if path.is_file())
    if not files:
        pytest.skip(
            f"no files in {DATA}/feeds: set XSCL_SHARED to the directory that has data/feeds"
        )
    return files
