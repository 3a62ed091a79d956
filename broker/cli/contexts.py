"""Named brokers: the file of contexts, and which broker a verb talks to.

    --broker, --context or --config on the command line
    XSCL_BROKER, XSCL_CONTEXT or XSCL_CONFIG in the environment
    the context in use
    the nearest xscl.toml, else the defaults

The first that says something wins; a token comes from `--token`, XSCL_TOKEN, the context or the
settings, in this order.  A context names where its token is kept, and never holds it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from broker.cli.terminal import EXIT_SETTINGS, Failure
from broker.settings.directory import write_private
from xscl.spelling import did_you_mean

__all__ = ["Context", "Contexts", "check_name", "contexts_file", "load_contexts", "save_contexts"]


@dataclass(frozen=True, slots=True)
class Context:
    """One broker: the URL of its API, and the file or environment variable of the token."""

    url: str
    token_file: str | None = None
    token_env: str | None = None

    def token(self, name: str) -> str | None:
        """Return the token, None where the context needs none; `name` is for messages."""
        if self.token_env is not None:
            found = os.environ.get(self.token_env)
            if not found:
                raise Failure(
                    f"the token of context {name!r} is missing: {self.token_env} is not set",
                    hint=f"export {self.token_env}=..., or give it with --token",
                    exit_code=EXIT_SETTINGS,
                )
            return found
        if self.token_file is None:
            return None
        try:
            return Path(self.token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise Failure(
                f"the token file {self.token_file} of context {name!r} cannot be read: {reason}",
                hint="`xscl tokens create NAME --scope admin > FILE` makes a token",
                exit_code=EXIT_SETTINGS,
            ) from error

    def token_place(self) -> str:
        """Return where the token is kept, in a word."""
        return f"${self.token_env}" if self.token_env else self.token_file or ""


@dataclass(slots=True)
class Contexts:
    """All contexts by name, and the one in use."""

    by_name: dict[str, Context] = field(default_factory=dict)
    current: str | None = None

    def find(self, name: str) -> Context:
        """Return the context of that name; end the verb where there is none."""
        if name not in self.by_name:
            others = ", ".join(self.by_name)
            hint = did_you_mean(name, self.by_name) or (
                f"there are {others}" if others else "`xscl context add NAME --url URL` makes one"
            )
            raise Failure(f"there is no context {name!r}", hint=hint, exit_code=EXIT_SETTINGS)
        return self.by_name[name]


def contexts_file(environment: Mapping[str, str] = os.environ) -> Path:
    """Return where the contexts of this user are kept."""
    home = environment.get("XDG_CONFIG_HOME")
    base = Path(home) if home and Path(home).is_absolute() else Path.home() / ".config"
    return base / "xscl" / "contexts.json"


def load_contexts() -> Contexts:
    """Read the file; without one there are none."""
    path = contexts_file()
    try:
        read = json.loads(path.read_text(encoding="utf-8"))
        found = {name: Context(**values) for name, values in read["contexts"].items()}
        return Contexts(found, read.get("current"))
    except FileNotFoundError:
        return Contexts()
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise Failure(
            f"{path} cannot be read: {error}",
            hint="mend or remove it; `xscl context add` writes it again",
            exit_code=EXIT_SETTINGS,
        ) from error


def save_contexts(contexts: Contexts) -> None:
    """Write the file, readable by its owner only, at once or not at all."""
    path = contexts_file()
    named = {name: _given(context) for name, context in sorted(contexts.by_name.items())}
    text = json.dumps({"current": contexts.current, "contexts": named}, indent=2) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(path, text)
    except OSError as error:
        raise Failure(
            f"{path} cannot be written: {error.strerror}",
            hint="set XDG_CONFIG_HOME to a directory that you may write",
        ) from error


def _given(context: Context) -> dict[str, str]:
    return {name: value for name, value in asdict(context).items() if value is not None}


def check_name(name: str) -> str:
    """Return a name that a context may have; end the verb where it is none."""
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", name) is None:
        raise Failure(
            f"{name!r} is no name for a context",
            hint="letters, digits, dots, dashes and underscores, as in `production`",
            exit_code=2,
        )
    return name
