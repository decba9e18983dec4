"""`cg-bench ci`: the steps of a job of GitHub Actions, which `action.yml` strings together. This module: plan, store, gate."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.ci.artifact import RESULT
from cachegrind_bench.ci.event import read_event
from cachegrind_bench.ci.plan import Hold, Mode, artifact_name, plan
from cachegrind_bench.ci.runner_files import add_summary, set_outputs
from cachegrind_bench.cli import ci_collect, ci_compare, ci_measure, ci_report, output
from cachegrind_bench.cli.ci_base import commit_to_measure
from cachegrind_bench.cli.ci_job import (
    NO_STORE,
    VERDICT,
    annotate,
    data,
    folder_option,
    harmless,
    history,
    history_words,
    own_command,
    read_missing,
    read_verdict,
    say,
    store_name_option,
    token_option,
    trust_workspace,
    use_token,
)
from cachegrind_bench.cli.defaults import Configured
from cachegrind_bench.cli.options import named_store
from cachegrind_bench.errors import CgBenchError, MeasurementError, UsageError
from cachegrind_bench.model.text import plain
from cachegrind_bench.render.markdown import escape
from cachegrind_bench.usecases import Notices
from cachegrind_bench.usecases.result_files import read_result
from cachegrind_bench.usecases.stored_runs import Runs
from cachegrind_bench.vcs.revisions import Repository

if TYPE_CHECKING:
    from cachegrind_bench.ci.event import Event
    from cachegrind_bench.model.result import Result

_FINE = 0
_CONFIGURATIONS = ("cg-bench.toml", "pyproject.toml")

_EPILOG = """\b
The action runs them in this order: plan, measure or collect, compare, comment, store, trend, gate. What one hands to the
next are files in --folder. Elsewhere than in GitHub Actions, 'cg-bench run', 'diff', 'history' and 'trend' do the same.

\b
Examples:
  cg-bench ci plan --mode auto
  cg-bench ci measure --folder "$FOLDER"
  cg-bench ci compare --folder "$FOLDER" --threshold 1%
"""


class _Steps(click.Group):
    """Steps whose errors are seen by who looks at the job's page only."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a step; tell its error as an annotation and in the summary, too."""
        trust_workspace(os.environ)
        configured = ctx.find_object(Configured)
        try:
            if configured is not None and configured.error is not None:
                raise configured.error
            return super().invoke(ctx)
        except CgBenchError as error:
            error.message = harmless(error.message)
            text = error.message if error.hint is None else f"{error.message} ({error.hint})"
            annotate("error", text)
            add_summary(os.environ, f"### 💥 {escape(plain(text))}")
            raise


@click.group("ci", cls=_Steps, epilog=_EPILOG)
def command() -> None:
    """Do one step of a job of GitHub Actions: what the project's action consists of."""


command.add_command(ci_measure.command)
command.add_command(ci_collect.command)
command.add_command(ci_compare.command)
command.add_command(ci_report.comment_command)
command.add_command(ci_report.trend_command)


@command.command("plan", epilog="\b\nExamples:\n  cg-bench ci plan --mode auto")
@click.option(
    "--mode",
    type=click.Choice([item.value for item in Mode]),
    default=Mode.AUTO.value,
    show_default=True,
    help="What the job is for; auto follows from the event.",
)
@click.option("--config", metavar="FILE", help="The configuration of the suite. [default: found upwards]")
@click.option("--command", "text", metavar="TEXT", help="The command to measure.")
@click.option("--id", "identity", metavar="TEXT", help="Name of the command's benchmark.")
@click.option("--shard", metavar="K/N", help="The job measures only a part.")
@click.option("--baseline", default="merge-base", show_default=True, metavar="BASE", help="See 'cg-bench ci compare'.")
@click.option("--index", metavar="N", help="Place of this job in its matrix.")
@store_name_option
@token_option
def plan_command(mode: str, **options: Any) -> None:
    """Find out what this job has to do, and set it as outputs of the step."""
    environ = dict(os.environ)
    event = read_event(environ)
    made = plan(event, Mode(mode), shard=bool(options["shard"]), store=options["store"] != NO_STORE)
    if made.notice:
        annotate("notice", made.notice)
    directory = _directory(options["config"])
    base = ""
    if made.measure and made.compare and options["baseline"] == "ab":
        use_token(event, options["token"])
        base = commit_to_measure(event, Repository(cwd=directory, environ=dict(os.environ)))
    folder = tempfile.mkdtemp(prefix="cg-bench-", dir=environ.get("RUNNER_TEMP") or None)
    data(folder).mkdir()
    found = {
        "directory": str(directory),
        "folder": folder,
        "measure": made.measure,
        "collect": made.collect or "",
        "compare": made.compare,
        "comment": made.comment,
        "store": made.store,
        "trend": made.trend,
        "artifact": artifact_name(made.keep, event.job, options["index"] or "", _what(options)) if made.keep else "",
        "hold": made.hold.value,
        "base": base,
    }
    texts = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in found.items()}
    set_outputs(environ, texts)
    steps = [
        name
        for name in ("measure", "collect", "compare", "comment", "store", "trend")
        if texts[name] not in ("", "false")
    ]
    say(f"{event.name}: {', '.join(steps) or 'nothing to do'}")


@command.command("store", epilog='\b\nExamples:\n  cg-bench ci store --folder "$FOLDER"')
@folder_option
@store_name_option
@token_option
def store_command(folder: str, store: str, token: str | None) -> None:
    """Add the result to the history, for the commit that the job is for."""
    event = read_event(os.environ)
    path = data(folder) / RESULT
    result = read_result(str(path)).result
    _check_commit(result, event)
    missing = read_missing(folder)
    if missing is not None:
        annotate("warning", f"stored, but {missing}")
    use_token(event, token)
    _check_others(result, store)
    status, told = own_command(["history", "add", *history_words(store), str(path)])
    if status != _FINE:
        hint = "for a branch of git the job needs 'permissions: contents: write'"
        raise UsageError(f"the result was not stored: {told}", hint=hint)


@command.command("gate", epilog='\b\nExamples:\n  cg-bench ci gate --folder "$FOLDER" --hold verdict')
@click.option(
    "--hold",
    type=click.Choice([item.value for item in Hold]),
    default=Hold.VERDICT.value,
    show_default=True,
    help="What fails: a benchmark that failed, or also what the comparison came to.",
)
@folder_option
def gate_command(hold: str, folder: str) -> int:
    """End with the exit code of the comparison, after all has been reported."""
    if hold == Hold.NOTHING.value:
        return _FINE
    event = read_event(os.environ)
    result = read_result(str(data(folder) / RESULT)).result
    sha = None if result.commit is None else result.commit.sha
    compared = (Path(folder) / VERDICT).exists()
    # What the job was given may not be what it checked out.
    if hold == Hold.VERDICT.value or (compared and not event.accepts(sha)):
        found = read_verdict(folder)
        say(found.headline)
        return found.code
    failed = [item.id for item in result.benchmarks if item.counts is None]
    missing = read_missing(folder)
    if not failed and missing is None:
        return _FINE
    told = missing or f"{len(failed)} of the benchmarks failed: {', '.join(failed[:5])}"
    if compared:  # which told it already
        say(told)
        return MeasurementError.exit_code
    raise MeasurementError(told, hint="what they wrote is in the log, where they were measured")


def _what(options: dict[str, Any]) -> str:
    """Return what tells several uses in one job apart; nothing where there need be only one."""
    within = os.path.relpath(Path.cwd(), os.environ.get("GITHUB_WORKSPACE") or Path.cwd())
    parts = (options["identity"] or options["config"] or options["text"] or "", "" if within == "." else within)
    return " ".join(filter(None, parts))


def _directory(config: str | None) -> Path:
    """Return where commands are run: where the configuration is, if one is named."""
    if not config:
        return Path.cwd()
    path = Path(config)
    if path.name not in _CONFIGURATIONS or not path.is_file():
        raise UsageError(
            f"config: {config!r} is not a file named {' or '.join(_CONFIGURATIONS)}", hint="'cg-bench init' writes one"
        )
    return path.parent.absolute()


def _check_others(result: Result, store: str) -> None:
    """Warn if the history has other counts of the same: then several programs share a name, and none has a true baseline."""
    if result.commit is None:
        return
    with named_store(history(store)) as opened:
        known = [
            point
            for run in Runs(opened, Notices(write=output.write_error)).of(result.commit.sha)
            for point in run.points
        ]
    counts = {(item.id, item.key): item.counts for item in result.benchmarks if item.counts is not None}
    other = sorted(
        {
            point.id
            for point in known
            if point.counts is not None and counts.get((point.id, point.key)) not in (None, point.counts)
        }
    )
    if other:
        annotate(
            "warning",
            f"this commit is stored already with other counts of {', '.join(other[:5])}: if a matrix measures several programs "
            "under one name, give each an id or a store of its own; if it is one program, 'cg-bench verify' finds what differs",
        )


def _check_commit(result: Result, event: Event) -> None:
    """Refuse to store, as the default branch's, what is of another commit; warn of what no report would show."""
    wanted = event.sha if event.run is None else event.run.head_sha
    commit = result.commit
    if commit is None:
        annotate("warning", "stored without a commit, so in no report: was the job's folder no git checkout?")
    elif commit.sha != wanted:
        raise UsageError(f"the result is of commit {commit.sha[:12]}, and the job is for {wanted[:12]}: not stored")
    elif commit.dirty:
        annotate(
            "warning",
            "stored, but in no report and never a baseline: building changed files that git tracks ('git diff' shows them)",
        )
