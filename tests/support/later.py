"""Modules that one file of tests uses, and that take long to import.

Each process that runs tests imports all files, and tests of a file run in one of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__all__ = ["Later"]


class Later:
    """A module that is imported when something of it is asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)
