"""The rooms whose code is changed, and the tests that are related to them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["ROOMS", "Room"]


@dataclass(frozen=True, slots=True)
class Room:
    """A package, and tests that are related to all of its modules."""

    package: str
    tests: Sequence[str]

    def modules(self, root: Path) -> list[Path]:
        """Return the modules, relative to a checkout."""
        there = sorted(
            path for path in (root / self.package).rglob("*.py") if path.stem != "__init__"
        )
        return [path.relative_to(root) for path in there]

    def related(self, module: Path, root: Path) -> list[Path]:
        """Return the tests of a module: its namesake, those that import it, those of the room."""
        tests = {path.stem: path.relative_to(root) for path in (root / "tests").rglob("test_*.py")}
        namesake = tests.get(f"test_{module.stem}")
        importing = [path for path in tests.values() if _imports(root / path, module)]
        own = importing if namesake is None else [namesake, *importing]
        return list(dict.fromkeys([*own, *(tests[name] for name in self.tests)]))


def _imports(test: Path, module: Path) -> bool:
    package, name = ".".join(module.parts[:-1]), module.stem
    found = (
        rf"^(from {package}\.{name} |import {package}\.{name}\b|from {package} import .*\b{name}\b)"
    )
    return re.search(found, test.read_text(), re.MULTILINE) is not None


ROOMS = {
    "templates": Room("templates", ("test_templates", "test_compiling", "test_cases")),
    "joins": Room("joins", ("test_cases", "test_engine_is_right", "test_budget_agrees")),
    "matching": Room(
        "broker/matching",
        ("test_handing_on", "test_cases", "test_budget", "test_queryset", "test_engine_is_right"),
    ),
    "pipeline": Room(
        "broker/pipeline",
        ("test_pipeline", "test_outbox", "test_backfill", "test_snapshot", "test_histories"),
    ),
    "delivery": Room(
        "broker/delivery",
        (
            "test_leases",
            "test_delivery_schedule",
            "test_lanes",
            "test_delivery_office",
            "test_pull",
            "test_webhook_delivery",
            "test_mail_delivery",
            "test_alert_messages",
            "test_alerts",
        ),
    ),
}
"""By the name under which they are asked for."""
