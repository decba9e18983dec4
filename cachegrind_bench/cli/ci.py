"""`cg-bench ci`: the steps of a job of GitHub Actions, which `action.yml` strings together, and the comment on GitLab."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cachegrind_bench.ci.event import read_event
from cachegrind_bench.ci.plan import Hold, Mode
from cachegrind_bench.ci.runner import Runner, add_setting, harmless
from cachegrind_bench.cli import output
from cachegrind_bench.cli.comparison_options import fail_on_option, gate_options, gates_of
from cachegrind_bench.cli.help import Group
from cachegrind_bench.cli.options import (
    Configured,
    configured_benchmarks,
    configured_entries,
    configured_store,
    named_store,
    project_root,
    repository,
    store_timeout_option,
    struct_of,
    working_directory,
)
from cachegrind_bench.errors import CgBenchError, UsageError
from cachegrind_bench.log import LOG
from cachegrind_bench.model.text import plain
from cachegrind_bench.render.markdown import escape
from cachegrind_bench.usecases.ci import compare, job, measure, merge_request, report
from cachegrind_bench.usecases.ci.reproduce import Measured
from cachegrind_bench.usecases.comparison import ReportOptions
from cachegrind_bench.usecases.comparison_inputs import CompareRequest, compare_sides
from cachegrind_bench.vcs.git import top_folder

if TYPE_CHECKING:
    from cachegrind_bench.compare.explained import Explained

_NO_STORE = "none"
# Where jobs on machines that are gone tomorrow can keep a history without anything else.
_STORE = "git:cg-bench-data"

_EPILOG = """\b
The action runs them in this order: plan, measure or collect, compare, comment, store, trend, gate. What one passes to the
next are files in --folder. Outside GitHub Actions, 'cg-bench run', 'diff', 'history' and 'trend' do the same; for GitLab
there is also gitlab-comment.

\b
Examples:
  cg-bench ci plan --mode auto
  cg-bench ci measure --folder "$FOLDER"
  cg-bench ci compare --folder "$FOLDER" --threshold 1%
"""

_folder_option = click.option(
    "--folder",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where the steps of this job keep their files; 'cg-bench ci plan' makes it.",
)
_store_option = click.option("--store", metavar="URL", help="History, as for 'cg-bench run', or 'none'.")


def _token(_context: click.Context, _option: click.Parameter, value: str | None) -> str | None:
    """Return a token without the line break that was pasted with it; anything else in it would be shown in an error about headers."""
    token = value and value.strip()
    if token and re.fullmatch(r"[!-~]+", token) is None:
        raise UsageError("the token has a character that no token has, such as a space", hint="paste it anew")
    return token


_token_option = click.option(
    "--token", metavar="TOKEN", callback=_token, help="GitHub's token, for its API and for git."
)
_comment_option = click.option(
    "--comment",
    "when",
    type=click.Choice([report.ON_CHANGE, report.ALWAYS, report.NEVER]),
    default=report.ON_CHANGE,
    help="on-change: if anything moved, or to update an existing comment.",
)
_id_option = click.option("--id", "identity", metavar="TEXT", help="Name of the command's benchmark.")


class _Steps(Group):
    """Steps whose errors are shown on the job's page, too."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a step; report its error as an annotation and in the summary, too."""
        # In a container the checkout belongs to the user outside; actions/checkout lets git read it only for itself.
        for place in filter(None, {os.environ.get("GITHUB_WORKSPACE"), str(top_folder(working_directory()) or "")}):
            add_setting(os.environ, "safe.directory", place)
        configured = ctx.find_object(Configured)
        try:
            if configured is not None and configured.error is not None:
                raise configured.error
            return super().invoke(ctx)
        except CgBenchError as error:
            if "GITLAB_CI" in os.environ:
                raise
            error.message = harmless(error.message)
            text = error.message if error.hint is None else f"{error.message} ({error.hint})"
            try:
                job.annotate(_runner(), "error", text)
                _runner().add_summary(f"### 💥 {escape(plain(text))}")
            except CgBenchError as second:  # must not hide the first, nor its exit code
                LOG.warning(second.message)
            raise


@click.group("ci", cls=_Steps, epilog=_EPILOG)
def command() -> None:
    """Run one step of a GitHub Actions job; the project's action is made of these steps."""


@command.command("plan", epilog="\b\nExamples:\n  cg-bench ci plan --mode auto")
@click.option(
    "--mode",
    type=click.Choice([item.value for item in Mode]),
    default=Mode.AUTO.value,
    help="What the job is for; 'auto' decides by the event.",
)
@click.option("--config", metavar="FILE", help="The configuration of the suite. [default: found upwards]")
@click.option("--command", "text", metavar="TEXT", help="The command to measure.")
@_id_option
@click.option("--shard", metavar="K/N", help="The job measures only a part.")
@click.option("--baseline", default="merge-base", metavar="BASE", help="See 'cg-bench ci compare'.")
@click.option("--index", metavar="N", help="Position of this job in its matrix.")
@_store_option
@_token_option
def plan_command(store: str | None, **options: Any) -> None:
    """Find out what this job has to do.

    What it finds becomes the outputs of the step.
    """
    open_store = None if store == _NO_STORE else lambda: named_store(_history(store))
    job.plan_job(_runner(), struct_of(job.PlanRequest, options, open_store=open_store), working_directory())


@command.command(
    "measure",
    epilog="""\b
Examples:
  cg-bench ci measure --folder "$FOLDER"
  cg-bench ci measure --folder "$FOLDER" --command './build/parser data.txt' --id parser
  cg-bench ci measure --folder "$FOLDER" --result "$RUNNER_TEMP/cg-bench.json"
""",
)
@click.option(
    "--command", "text", metavar="TEXT", help="The command to measure. [default: the suite of the configuration]"
)
@_id_option
@click.option(
    "--result",
    metavar="FILE",
    help="Measure nothing, but take this result, as made by 'pytest --cg-bench --cg-bench-output'.",
)
@click.option("--shard", metavar="K/N", help="Measure the K-th of N parts of the suite.")
@click.option("-j", "--jobs", metavar="N", help="Benchmarks to measure at the same time. [default: one per CPU]")
@click.option("--base", metavar="COMMIT", help="Measure this commit too, and compare with it.")
@_folder_option
def measure_command(folder: Path, **options: Any) -> None:
    """Measure, and leave the result in the folder. Needs no token, and should not have one.

    Benchmarks that fail are in the result, and do not end the job here: they are reported first.
    """
    measure.measure(_job(folder), struct_of(measure.MeasureRequest, options))


@command.command("collect", epilog='\b\nExamples:\n  cg-bench ci collect --folder "$FOLDER" --run 123456789')
@click.option("--run", type=int, required=True, metavar="ID", help="The workflow run whose artifacts to fetch.")
@_folder_option
@_token_option
def collect_command(run: int, folder: Path, token: str | None) -> None:
    """Fetch what other jobs measured: the artifacts of a run, checked and merged into one result.

    Whoever opened a pull request may have made them, so they are data and nothing else. An artifact that is not exactly what
    'cg-bench ci measure' leaves ends the step.
    """
    measure.collect(_job(folder, token), run)


@command.command("compare", epilog='\b\nExamples:\n  cg-bench ci compare --folder "$FOLDER" --threshold 1%')
@gate_options
@fail_on_option
@click.option(
    "--baseline",
    default="merge-base",
    metavar="BASE",
    help="What to compare with: merge-base, branch, ab (measured by 'ci measure'), or file:PATH.",
)
@click.option("--require-baseline", is_flag=True, help="Exit with code 3 if there is nothing to compare with.")
@click.option("--command", "text", metavar="TEXT", help="The command that was measured, to show how to repeat it.")
@click.option("--id", "identity", metavar="TEXT", help="The name of its benchmark, to show the same.")
@click.option("--result", metavar="FILE", help="The result that 'ci measure' took, to show the same.")
@click.option(
    "--artifact", metavar="NAME", help="Where jobs like this one leave their results, for the base's functions."
)
@_store_option
@store_timeout_option
@_folder_option
@_token_option
def compare_command(folder: Path, token: str | None, store: str | None, **options: Any) -> None:
    """Compare the result with its baseline: annotations, the job's summary, outputs, and a report for the comment.

    The verdict does not end the step: 'cg-bench ci gate' does, after all else is done.
    """
    request = struct_of(
        compare.CompareRequest,
        options,
        gates=gates_of(options, configured_benchmarks()),
        open_store=None if store == _NO_STORE else lambda: named_store(_history(store)),
        measured=_measured(options),
    )
    compare.compare(_job(folder, token), request)


def _measured(options: dict[str, Any]) -> Measured:
    """Return what 'ci measure' had to measure, here or in another job."""
    from cachegrind_bench.harness.protocol import harness_of

    entries = configured_entries()
    return Measured(
        text=options["text"],
        identity=options["identity"],
        given=bool(options["result"]) or not any(entry.harness == "pytest" for entry in entries),
        builds=any(spec.setup for spec in configured_benchmarks())
        or any(entry.each.setup or harness_of(entry.harness).build(entry) for entry in entries),
        both=options["baseline"] == "ab",
    )


@command.command("comment", epilog='\b\nExamples:\n  cg-bench ci comment --folder "$FOLDER" --comment on-change')
@_comment_option
@click.option(
    "--artifact",
    default="",
    show_default=False,
    metavar="NAME",
    help="Name of the job's artifact: each name has a comment of its own.",
)
@_folder_option
@_token_option
def comment_command(when: str, folder: Path, token: str | None, artifact: str) -> None:
    """Post the report on the pull request, in one comment.

    The report is what 'cg-bench ci compare' left in the folder.
    """
    report.comment(_job(folder, token), when, artifact)


@command.command(
    "gitlab-comment",
    epilog="\b\nExamples:\n  cg-bench ci gitlab-comment merge-base:origin/main result.json --store git:cg-bench-data@origin",
)
@gate_options
@_comment_option
@click.option("--store", metavar="URL", help="History, as for 'cg-bench diff'.")
@store_timeout_option
@click.option(
    "--token",
    metavar="TOKEN",
    callback=_token,
    help="GitLab's token, for its API; better in the variable CG_BENCH_TOKEN.",
)
@click.argument("base")
@click.argument("candidate")
def gitlab_comment_command(
    base: str, candidate: str, when: str, store: str | None, token: str | None, **options: Any
) -> None:
    """Compare, and post the report on GitLab's merge request.

    It compares as 'cg-bench diff' does. The merge request has one comment, which is kept up to date. For a job of its own in a merge request pipeline: it measures nothing, and needs a token of the scope 'api'.
    """
    os.environ.pop("CG_BENCH_TOKEN", None)
    request = CompareRequest(
        base=base,
        candidate=candidate,
        gates=gates_of(options, configured_benchmarks()),
        report=ReportOptions(rows=50, root=project_root(), git=repository()),
    )

    def compared() -> Explained:
        return compare_sides(request, repository(), lambda: named_store(store))[0]

    merge_request.comment(os.environ, token, when, compared)


@command.command("store", epilog='\b\nExamples:\n  cg-bench ci store --folder "$FOLDER"')
@_folder_option
@_store_option
@store_timeout_option
@_token_option
def store_command(folder: Path, store: str | None, token: str | None, **options: Any) -> None:
    """Add the result to the history, for the commit of the job."""
    started = _job(folder, token)
    report.store(started, named_store(_history(store)), _history_words(store, **options))


@command.command("trend", epilog='\b\nExamples:\n  cg-bench ci trend --folder "$FOLDER" --issues')
@click.option("--issues", is_flag=True, help="Keep an issue for each finding: opened, updated and closed.")
@click.option("--artifact", metavar="NAME", help="Name of the artifact with the previous report.")
@_store_option
@store_timeout_option
@_folder_option
@_token_option
def trend_command(
    folder: Path, store: str | None, token: str | None, artifact: str | None, *, issues: bool, **options: Any
) -> None:
    """Make the trend report of the history: a page, the job's summary, and issues if asked for."""
    report.trend(_job(folder, token), _history_words(store, **options), artifact, issues=issues)


@command.command("gate", epilog='\b\nExamples:\n  cg-bench ci gate --folder "$FOLDER" --hold verdict')
@click.option(
    "--hold",
    type=click.Choice([item.value for item in Hold]),
    default=Hold.VERDICT.value,
    help="What fails the job: nothing, a benchmark that failed, or also the verdict of the comparison.",
)
@_folder_option
def gate_command(hold: str, folder: Path) -> int:
    """Exit with the code of the comparison.

    It is the last step: everything has been reported before.
    """
    return job.gate(_job(folder), Hold(hold))


def _runner() -> Runner:
    return Runner(environ=os.environ, write=output.write)


def _job(folder: Path, token: str | None = None) -> job.Job:
    """Return the job that the step is of; git uses the token from now on."""
    runner, event = _runner(), read_event(os.environ)
    job.use_token(runner, event, token)
    return job.Job(runner=runner, event=event, cwd=working_directory(), folder=folder, token=token)


def _history(store: str | None) -> str | None:
    """Return the URL of the store; None is the configuration's."""
    return store or (None if configured_store() else _STORE)


def _history_words(store: str | None, store_timeout: int | None) -> list[str]:
    """Return the options that name this store to our own commands, and how many milliseconds to wait for it."""
    url = _history(store)
    waiting = [] if store_timeout is None else ["--store-timeout", f"{store_timeout}ms"]
    return ([] if url is None else ["--store", url]) + waiting
