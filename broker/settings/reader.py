"""From TOML to dataclasses whose fields are the settings.

Errors name the file, the line and the setting, and suggest the nearest one where a name is unknown.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
import types
import typing
from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

__all__ = ["SettingsError", "SettingsReader"]

_Where = tuple[str | int, ...]


class SettingsError(ValueError):
    """The settings cannot be used.  The message says where, and what would be accepted."""


class SettingsReader:
    """Turns TOML values into dataclasses, and knows where each stood in the text."""

    def __init__(self, text: str, path: Path) -> None:
        self._lines = text.splitlines()
        self._path = path

    def table(self, kind: type[Any], values: dict[str, Any], where: _Where) -> Any:
        """Return the dataclass `kind` filled from a table; raise `SettingsError`."""
        hints = typing.get_type_hints(kind)
        fields = {each.name: each for each in dataclasses.fields(kind)}
        for name in values:
            if name not in fields:
                raise self.error((*where, name), f"unknown setting{_suggest(name, fields)}")
        for name, known in fields.items():
            if name not in values and known.default is dataclasses.MISSING:
                raise self.error(where, f"{name!r} must be set")
        found = {k: self._value(hints[k], v, (*where, k)) for k, v in values.items()}
        try:
            return kind(**found)
        except ValueError as error:
            raise self.error(where, str(error)) from error

    def _value(self, hint: Any, value: Any, where: _Where) -> Any:
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if origin in (types.UnionType, typing.Union):
            return self._value(arguments[0], value, where)
        if origin is tuple:
            rows = self._checked(list, value, where, "an array")
            return tuple(self._value(arguments[0], row, (*where, i)) for i, row in enumerate(rows))
        if origin is Literal:
            if value not in arguments:
                choices = ", ".join(repr(choice) for choice in arguments)
                raise self.error(where, f"{value!r} is not one of {choices}")
            return value
        if dataclasses.is_dataclass(hint):
            assert isinstance(hint, type)
            return self.table(hint, self._checked(dict, value, where, "a table"), where)
        return self._scalar(hint, value, where)

    def _scalar(self, hint: Any, value: Any, where: _Where) -> Any:
        if hint is timedelta:
            # The command line reads settings, and does without the language.
            from xscl.durations import read_duration

            text = self._checked(str, value, where, 'a duration such as "2 days" or "PT6H"')
            try:
                return timedelta(microseconds=read_duration(text))
            except ValueError as error:
                raise self.error(where, str(error)) from error
        if hint is datetime:
            return _moment(self._checked(date, value, where, "a time such as 2026-01-31T12:00:00Z"))
        if hint is Path:
            return self._path.parent / Path(self._checked(str, value, where, "a path")).expanduser()
        if hint is int and isinstance(value, bool):
            raise self.error(where, "must be a whole number")
        names = {str: "a string", int: "a whole number", bool: "true or false"}
        return self._checked(hint, value, where, names[hint])

    def _checked(self, kind: type[Any], value: Any, where: _Where, expected: str) -> Any:
        if not isinstance(value, kind):
            raise self.error(where, f"must be {expected}, not {value!r}")
        return value

    def error(self, where: _Where, message: str) -> SettingsError:
        """Return the error that says what is wrong with a setting, and where it stands."""
        places = (self._line(where[:length]) for length in range(len(where), 0, -1))
        line = next(filter(None, places), None)
        place = f"{self._path}:{line}" if line else str(self._path)
        name = "".join(f"[{p + 1}]" if isinstance(p, int) else f".{p}" for p in where).lstrip(".")
        return SettingsError(f"{place}: {name}: {message}" if name else f"{place}: {message}")

    def _line(self, where: _Where) -> int | None:
        """Return the line of a setting, as far as a look at headers and keys can tell."""
        names = [part for part in where if isinstance(part, str)]
        ordinal = next((part for part in where if isinstance(part, int)), 0)
        section, headers = "", 0
        for number, line in enumerate(self._lines, 1):
            if header := re.match(r"\s*\[+\s*([\w.-]+)\s*\]+", line):
                section = header[1]
                headers += section == names[0]
                if names == [section] and headers == ordinal + 1:
                    return number
            elif key := re.match(r"\s*([\w-]+)\s*=", line):
                is_inside = section == ".".join(names[:-1]) and headers in (0, ordinal + 1)
                if is_inside and key[1] == names[-1]:
                    return number
        return None


def _moment(value: date) -> datetime:
    """A date is its first moment, and what has no zone is UTC."""
    if not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _suggest(name: str, known: Iterable[str]) -> str:
    known = sorted(known)
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; there are {', '.join(known)}"
