"""The table of verbs, and the click group that imports a verb when it is used."""

from __future__ import annotations

import errno
import importlib
from dataclasses import dataclass
from typing import Any

import click

from broker.cli.terminal import Failure, clean_warnings, echo
from broker.pipeline.thisprocess import set_up_process

__all__ = ["VERBS", "Verb", "VerbGroup"]

_NO_ROOM = {
    errno.ENOSPC: "make room where the output or the data go",
    errno.EDQUOT: "your share of that disk is used up: make room, or have it raised",
    errno.EFBIG: "a file may not become that large here: see `ulimit -f`",
}


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb: where its command stands, as `module:attribute`, and what `xscl --help` says."""

    name: str
    place: str
    summary: str


VERBS: dict[str, tuple[Verb, ...]] = {
    "Queries and recorded documents": (
        Verb("check", "broker.cli.language:check", "Check queries and say what is wrong in them."),
        Verb("explain", "broker.cli.explain:explain", "Show what queries become, and why not."),
        Verb(
            "witnesses", "broker.cli.witnesses:witnesses", "Show what queries find in a document."
        ),
        Verb("test", "broker.cli.test:test", "Run the cases beside queries."),
        Verb("fmt", "broker.cli.language:fmt", "Write queries in their canonical form."),
        Verb("lsp", "broker.cli.lsp:lsp", "Serve editors: diagnostics, completion, renaming."),
        Verb("replay", "broker.cli.replay:replay", "Run queries over recorded documents."),
        Verb("completion", "broker.cli.language:completion", "Print a shell's completion script."),
    ),
    "The broker": (
        Verb("init", "broker.cli.init:init", "Write a commented xscl.toml to start from."),
        Verb("run", "broker.cli.run:run", "Run the broker until it is told to stop."),
        Verb("wait", "broker.cli.wait:wait", "Wait until the broker is ready."),
        Verb("quickstart", "broker.cli.quickstart:quickstart", "Leave a broker that has matched."),
        Verb("doctor", "broker.cli.doctor:doctor", "Check what the broker needs on this machine."),
        Verb("backup", "broker.cli.backup:backup", "Copy the broker's data, while it runs."),
        Verb("restore", "broker.cli.backup:restore", "Check a copy, and put it in place."),
        Verb("demo", "broker.cli.demo:demo", "Show the whole broker at work on example feeds."),
    ),
    "A running broker": (
        Verb("register", "broker.cli.register:register", "Register queries, or new texts of them."),
        Verb("list", "broker.cli.queries:list_queries", "List the registered queries."),
        Verb("show", "broker.cli.queries:show", "Show one query: its text, state and counts."),
        Verb("pause", "broker.cli.queries:pause", "Stop matching a query until it is resumed."),
        Verb("resume", "broker.cli.queries:resume", "Match a paused query again."),
        Verb("remove", "broker.cli.queries:remove", "Remove a query and its subscriptions."),
        Verb("subscriptions", "broker.cli.queries:subscriptions", "List who gets which matches."),
        Verb("subscribe", "broker.cli.subscribe:subscribe", "Have matches sent somewhere."),
        Verb("publish", "broker.cli.publish:publish", "Give documents to a stream."),
        Verb("tail", "broker.cli.tail:tail", "Print matches as they are found."),
        Verb("top", "broker.cli.top:top", "Show what the broker does, now."),
        Verb("streams", "broker.cli.streams:streams", "List the streams and who reads them."),
        Verb("table", "broker.cli.table:table", "See tables and their rows, and load them."),
        Verb("feeds", "broker.cli.feeds:feeds", "See and steer the feeds that are polled."),
        Verb(
            "deliveries", "broker.cli.deliveries:deliveries", "See what was sent, and send again."
        ),
        Verb(
            "dead-letters",
            "broker.cli.streams:dead_letters",
            "See documents that could not be evaluated, and try again.",
        ),
        Verb("tokens", "broker.cli.tokens:tokens", "Say who may use the broker."),
        Verb("audit", "broker.cli.audit:audit", "List who changed what, and when."),
        Verb("context", "broker.cli.context:context", "Keep several brokers under names."),
    ),
}
"""All verbs, by the heading under which help lists them."""

_MEANT = {
    "unsubscribe": "`xscl remove SUBSCRIPTION` ends a subscription",
    "delete": "`xscl remove QUERY|SUBSCRIPTION` removes one",
    "rm": "`xscl remove QUERY|SUBSCRIPTION` removes one",
    "status": "`xscl top --once` says how a broker is",
    "matches": "`xscl tail --after 0 --no-follow` prints them",
    "documents": "`xscl streams` says what there is of each stream",
    "start": "`xscl run` runs the broker",
    "stop": "SIGTERM, or Ctrl-C where it runs, stops the broker",
    "login": "`xscl context add` keeps where a broker and its token are",
}
"""What verbs of other programs are here."""

_BY_NAME = {verb.name: verb for verbs in VERBS.values() for verb in verbs}


class VerbGroup(click.Group):
    """The group of all verbs.  Listing them imports none of them."""

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Be the program of this process, which has no use for pandas."""
        set_up_process()
        return super().__call__(*arguments, **options)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the table."""
        return list(_BY_NAME)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb's command, or return None where there is no such verb."""
        verb = _BY_NAME.get(cmd_name)
        if verb is None:
            return None
        module, _, attribute = verb.place.partition(":")
        command = getattr(importlib.import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> object:
        """Run the verb; a full disk, often that of redirected output, is no fault of ours."""
        clean_warnings()
        try:
            return super().invoke(ctx)
        except OSError as error:
            if error.errno not in _NO_ROOM:
                raise
            raise Failure(str(error), hint=_NO_ROOM[error.errno]) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the verb; where there is none of that name, say which was probably meant."""
        if args[0] == "help":
            return self._help(ctx, args[1:])
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from xscl.spelling import did_you_mean

            near = _MEANT.get(args[0]) or did_you_mean(args[0], _BY_NAME)
            ctx.fail(f"No such command {args[0]!r}; {near}" if near else error.message)

    def _help(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Have a verb print its help, or this group its own: `xscl help VERB`."""
        if not args:
            echo(ctx.get_help())
            raise click.exceptions.Exit(0)
        name, command, rest = self.resolve_command(ctx, args)
        return name, command, [*rest, "--help"]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs under their headings, from the table alone."""
        for heading, verbs in VERBS.items():
            with formatter.section(heading):
                formatter.write_dl([(verb.name, verb.summary) for verb in verbs])
