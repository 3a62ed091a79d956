"""The token of the data directory's owner: an admin token in a file that only the owner can read.

Who can read that file could as well write a token into `tokens.db`, so it opens nothing that was
closed.  It lets the verbs on the broker's own machine in, and keeps out everything else that comes
from there: other users, web pages, and what a proxy or a tunnel relays.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from broker.registry.tokens import TokenError, Tokens, TokenScope
from broker.settings.directory import TOKEN_FILE, write_private

__all__ = ["OWNER", "keep_owner_token"]

OWNER = "data-directory"
"""What the token is called in lists."""


def keep_owner_token(data: Path) -> Path:
    """Make the owner's token, unless the one in the file is good; return the file.

    A token whose file was lost, or that was revoked, is replaced by another.
    """
    path = data / TOKEN_FILE
    tokens = Tokens(data / "tokens.db")
    try:
        found = tokens.find(_read(path))
        if found is None or TokenScope.ADMIN not in found.scopes:
            with contextlib.suppress(TokenError):
                tokens.revoke(OWNER)
            _, secret = tokens.create(OWNER, [TokenScope.ADMIN])
            write_private(path, secret + "\n")
    finally:
        tokens.close()
    return path


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""
