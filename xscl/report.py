"""Where the stages of the reader put what they find."""

from __future__ import annotations

from xscl.diagnostics import Diagnostic, Severity
from xscl.path import Span

__all__ = ["Report"]


class Report:
    """Collects the diagnostics of one text, in the order in which they are found."""

    def __init__(self, source: str, path: str | None = None) -> None:
        self.source = source
        self.path = path
        self.diagnostics: list[Diagnostic] = []
        self.errors = 0
        self._places: set[Span] = set()

    def error(
        self,
        code: str,
        span: Span,
        message: str,
        hint: str | None = None,
        related: Span | None = None,
    ) -> None:
        """Add an error, unless one already stands at the same place."""
        if span in self._places:
            return
        self._places.add(span)
        self.errors += 1
        self.diagnostics.append(
            Diagnostic(code, Severity.ERROR, span, message, hint, related, self.path, self.source)
        )

    def warning(self, code: str, span: Span, message: str, hint: str | None = None) -> None:
        """Add a warning."""
        self.diagnostics.append(
            Diagnostic(code, Severity.WARNING, span, message, hint, None, self.path, self.source)
        )

    def sorted(self) -> list[Diagnostic]:
        """Return the diagnostics in the order of the text."""
        return sorted(self.diagnostics, key=lambda d: (d.span, d.code))
