"""JSON as match lines have it, and as the ids of matches digest it."""

from __future__ import annotations

import json

__all__ = ["spell", "spell_for_id"]

spell = json.JSONEncoder(ensure_ascii=False).encode
spell_for_id = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
