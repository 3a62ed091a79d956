"""Text that others have written, made fit for logs and terminals.

What an endpoint answers, a feed is titled or a publisher calls a document may hold characters that
steer a terminal, end a line of a log, or turn the rest of a line around.  They are shown as JSON
escapes them, so that nothing is lost, and JSON that holds them still says the same.
"""

from __future__ import annotations

import re

__all__ = ["one_line", "printable"]

_STEERING = re.compile(
    "["
    "\x00-\x08\x0b-\x1f"  # controls, but for tab and newline
    "\x7f-\x9f"
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # of the direction of text
    "\u2028\u2029"  # separators of lines
    "\ufff9-\ufffb"
    "\ud800-\udfff"  # halves of characters, which no output takes
    "]"
)
_STEERING_BUT_COLOURS = re.compile(rf"(?!\x1b\[(?:[01]|3[1-6])m){_STEERING.pattern}")


def printable(text: str, *, keep_colours: bool = False) -> str:
    r"""Return text without what steers a terminal; lines and tabs stay.

    Colours that hide nothing may stay, too: a verb's own are among them.

    >>> printable("title\x1b]0;owned\x07")
    'title\\u001b]0;owned\\u0007'
    """
    steering = _STEERING_BUT_COLOURS if keep_colours else _STEERING
    return steering.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def one_line(text: str) -> str:
    r"""Return text as `printable` does, on one line.

    >>> one_line("no\n2026-01-01 all is well")
    'no\\n2026-01-01 all is well'
    """
    return printable(text).replace("\n", "\\n")
