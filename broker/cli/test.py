"""`xscl test`: cases beside query files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from broker.cli.terminal import (
    EXIT_FAILED,
    Failure,
    echo,
    echo_data,
    echo_json,
    is_coloured,
    message,
)

if TYPE_CHECKING:
    from broker.testing.casefile import CaseFile
    from broker.testing.trial import Trial

__all__ = ["test"]


@click.command()
@click.argument("paths", nargs=-1, required=True, type=click.Path(exists=True, path_type=Path))
@click.option(
    "--format",
    "output",
    type=click.Choice(["text", "json", "junit"]),
    default="text",
    show_default=True,
    help="How to print what came of the cases.",
)
@click.option(
    "--accept", is_flag=True, help="Write what was found into the case files as what is expected."
)
@click.pass_context
def test(context: click.Context, paths: tuple[Path, ...], output: str, accept: bool) -> None:
    """Run the cases beside queries: documents in, matches expected, in their own time.

    PATHS are query files (the cases of a.xscl are in a.test), case files, and directories of
    them.  No broker and no Java is needed.  Of an expected match that is missing it is said what
    keeps its documents apart.  docs/testing.md has the format of cases.

    Ends with 1 if a case fails or a file is wrong.

    \b
    Examples:
      xscl test examples/queries/
      xscl test same-story.xscl --format junit > report.xml
      xscl test same-story.test --accept
    """
    from broker.testing.report import accepted, as_data, as_junit

    results: list[tuple[CaseFile, list[Trial]]] = []
    files = list(_case_files(paths))
    mistakes = 0
    for path in files:
        result = _run(path, is_shown=output == "text")
        if result is None:
            mistakes += 1
            continue
        results.append(result)
        file, trials = result
        if accept and not all(trial.passed for trial in trials):
            path.write_text(accepted(file, trials), encoding="utf-8")
            message(f"rewrote {path}; review what it expects now")
    if output == "json":
        rows = [as_data(file, trial) for file, trials in results for trial in trials]
        echo_json(rows)
    elif output == "junit":
        echo_data(as_junit(results), nl=False)
    failed = _summarise([trial for _, trials in results for trial in trials])
    if mistakes or (failed and not accept):
        context.exit(EXIT_FAILED)


def _case_files(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the case files that paths stand for; say which query files have none."""
    from broker.testing.casefile import CASE_SUFFIX

    found: dict[Path, None] = {}
    for path in paths:
        if path.is_dir():
            found |= dict.fromkeys(sorted(path.rglob(f"*{CASE_SUFFIX}")))
        elif path.suffix == ".xscl" and not path.with_suffix(CASE_SUFFIX).exists():
            raise Failure(
                f"{path} has no cases", hint=f"write some into {path.with_suffix(CASE_SUFFIX)}"
            )
        else:
            found[path.with_suffix(CASE_SUFFIX) if path.suffix == ".xscl" else path] = None
    if not found:
        raise Failure("there are no cases here", hint="the cases of a.xscl are in a.test beside it")
    yield from found


def _run(path: Path, *, is_shown: bool) -> tuple[CaseFile, list[Trial]] | None:
    """Run the cases of a file; None where the file is wrong, which is said."""
    from broker.testing.casefile import read_case_file
    from broker.testing.report import render_trial, uncoloured
    from broker.testing.trial import run_case
    from xscl.diagnostics import XsclError, render_diagnostics

    try:
        file = read_case_file(path)
    except XsclError as error:
        message(render_diagnostics(error.diagnostics, color=is_coloured(sys.stderr)) + "\n")
        return None
    except (OSError, UnicodeDecodeError) as error:
        message(f"error: cannot read {path}: {error}")
        return None
    trials = []
    for case in file.cases:
        trial = run_case(file, case)
        trials.append(trial)
        if is_shown:
            text = render_trial(file, trial)
            echo(text if is_coloured(sys.stdout) else uncoloured(text), nl=False)
    return file, trials


def _summarise(trials: Sequence[Trial]) -> int:
    failed = sum(not trial.passed for trial in trials)
    message(f"{len(trials)} {'case' if len(trials) == 1 else 'cases'}, {failed} failed")
    return failed
