"""`xscl check|fmt|completion`: query files, and the shell that one writes them in."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from broker.cli.costs import estimates_from, render_estimates, statistics_option
from broker.cli.terminal import (
    EXIT_FAILED,
    Failure,
    echo,
    echo_data,
    echo_json,
    is_coloured,
    message,
)

__all__ = ["check", "completion", "fmt"]

_PATHS = click.argument(
    "paths",
    nargs=-1,
    required=True,
    type=click.Path(exists=True, allow_dash=True, path_type=Path),
)
_STDIN = Path("-")
_STDIN_NAME = "<stdin>"


@click.command()
@_PATHS
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "sarif"]),
    default="text",
    show_default=True,
    help="How to print what was found.",
)
@click.option("--deny-warnings", is_flag=True, help="Exit with 1 for warnings too.")
@statistics_option
@click.pass_context
def check(
    context: click.Context,
    paths: Sequence[Path],
    output: str,
    deny_warnings: bool,
    statistics: Path | None,
) -> None:
    """Check the queries in files and directories (*.xscl); `-` is standard input.

    Everything that is wrong is reported at once, each with its code; docs/diagnostics.md
    explains the codes.

    \b
    Examples:
      xscl check examples/queries/
      xscl check --format sarif queries/ > check.sarif
      xscl check queries/ --statistics recent.jsonl.gz
    """
    from xscl.diagnostics import render_diagnostics
    from xscl.files import check_files
    from xscl.messages import as_dict, to_json, to_sarif
    from xscl.reader import is_run

    files = [path for path in paths if path != _STDIN]
    texts = {_STDIN_NAME: _standard_input()} if len(files) < len(paths) else {}
    queries, found = check_files(files, texts)
    errors = sum(each.is_error for each in found)
    estimates = []
    if statistics and not errors:
        estimates = estimates_from(statistics, [q for q in queries if is_run(q)])
    if output == "text":
        if found:
            text = render_diagnostics(found, color=is_coloured(sys.stdout))
            echo(text)
        if estimates:
            echo(render_estimates(estimates), nl=False)
    elif output == "json" and statistics is not None:
        costs = [each.as_data() for each in estimates]
        both = {"diagnostics": list(map(as_dict, found)), "estimates": costs}
        echo_json(both)
    else:
        echo_data(to_json(found) if output == "json" else to_sarif(found))
    warnings = len(found) - errors + sum(len(each.warnings) for each in estimates)
    message(
        f"{_count(len(queries), 'query', 'queries')} without errors,"
        f" {_count(errors, 'error')}, {_count(warnings, 'warning')}"
    )
    if errors or (warnings and deny_warnings):
        context.exit(EXIT_FAILED)


def _standard_input() -> str:
    try:
        return sys.stdin.buffer.read().decode()
    except UnicodeDecodeError as error:
        raise Failure(f"cannot read standard input: byte {error.start} is not UTF-8") from error


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number} {one if number == 1 else many or one + 's'}"


@click.command()
@_PATHS
@click.option("--check", "is_check", is_flag=True, help="Change nothing; exit with 1 if one would.")
@click.option("--diff", "shows_diff", is_flag=True, help="Change nothing; print what would change.")
@click.pass_context
def fmt(context: click.Context, paths: Sequence[Path], is_check: bool, shows_diff: bool) -> None:
    """Rewrite the queries in files and directories (*.xscl) in their canonical form.

    Comments stay.  `-` reads standard input and writes standard output.

    \b
    Examples:
      xscl fmt queries/
      xscl fmt --check queries/
      xscl fmt - < draft.xscl
    """
    from xscl.files import query_files

    changed, failed = 0, False
    files = [*query_files(path for path in paths if path != _STDIN)]
    for path in [*files, _STDIN] if _STDIN in paths else files:
        before, after = _formatted(path)
        if path == _STDIN and after is not None and not (is_check or shows_diff):
            echo_data(after, nl=False)
            continue
        failed |= after is None
        if after is None or before == after:
            continue
        changed += 1
        if shows_diff:
            echo_data(_difference(before, after, _name(path)), nl=False)
        elif is_check:
            message(f"would rewrite {_name(path)}")
        else:
            path.write_text(after, encoding="utf-8")
            message(f"rewrote {path}")
    if failed or (changed and (is_check or shows_diff)):
        context.exit(EXIT_FAILED)


def _formatted(path: Path) -> tuple[str, str | None]:
    """Return a file's text and its canonical text, `None` where that cannot be: it is said why."""
    from xscl import XsclError, render

    try:
        before = _standard_input() if path == _STDIN else path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Failure(f"cannot read {path}: byte {error.start} is not UTF-8") from error
    except OSError as error:
        raise Failure(f"cannot read {path}: {error.strerror or error}") from error
    try:
        return before, render(before, path=_name(path))
    except XsclError as error:
        message(str(error))
        return before, None


def _name(path: Path) -> str:
    return _STDIN_NAME if path == _STDIN else str(path)


def _difference(before: str, after: str, path: str) -> str:
    lines = difflib.unified_diff(
        before.splitlines(keepends=True), after.splitlines(keepends=True), path, path
    )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that completes `xscl` commands in a shell.

    \b
    Examples:
      xscl completion bash > ~/.local/share/bash-completion/completions/xscl
      xscl completion fish > ~/.config/fish/completions/xscl.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None
    root = context.find_root()
    echo(found(root.command, {}, "xscl", "_XSCL_COMPLETE").source())
