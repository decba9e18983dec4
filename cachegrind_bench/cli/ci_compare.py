"""`cg-bench ci compare`: what the result of a job comes to, as annotations, summary, outputs, and a report for the comment."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from cachegrind_bench.ci.artifact import BASE, RESULT
from cachegrind_bench.ci.event import read_event
from cachegrind_bench.ci.runner_files import add_summary, set_outputs
from cachegrind_bench.cli import output
from cachegrind_bench.cli.ci_base import base_commit
from cachegrind_bench.cli.ci_job import (
    NO_STORE,
    REPORT,
    Verdict,
    annotate,
    client,
    data,
    folder_option,
    group,
    history,
    read_missing,
    store_name_option,
    token_option,
    use_token,
    write_verdict,
)
from cachegrind_bench.cli.ci_profiles import unexplained, with_profiles
from cachegrind_bench.cli.ci_reproduce import again, failures
from cachegrind_bench.cli.comparison_options import fail_on_option, gate_options, gates_of
from cachegrind_bench.cli.defaults import configured_benchmarks
from cachegrind_bench.cli.options import named_store
from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.store.durable import write_atomic
from cachegrind_bench.usecases import Notices
from cachegrind_bench.usecases.comparison import ReportOptions, Side, code_of, compared, same_program
from cachegrind_bench.usecases.comparison_inputs import Sides, no_side
from cachegrind_bench.usecases.result_files import DEFAULT_LIMIT, read_result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cachegrind_bench.ci.event import Event
    from cachegrind_bench.compare.comparison import Comparison
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.usecases.comparison import Profiled, Report

# Room for a comment's mark.
_ROOM = 200
_MOST_CHARACTERS = 60_000
_SHOWN = ReportOptions(rows=50)


@click.command("compare", epilog='\b\nExamples:\n  cg-bench ci compare --folder "$FOLDER" --threshold 1%')
@gate_options
@fail_on_option
@click.option(
    "--baseline",
    default="merge-base",
    show_default=True,
    metavar="BASE",
    help="What to compare with: merge-base, branch, ab (measured by 'ci measure'), or file:PATH.",
)
@click.option("--require-baseline", is_flag=True, help="Exit code 3 if there is nothing to compare with.")
@click.option("--command", "text", metavar="TEXT", help="The command that was measured, for how to do it again.")
@click.option("--id", "identity", metavar="TEXT", help="The name of its benchmark, for the same.")
@click.option(
    "--artifact", metavar="NAME", help="Where jobs like this one leave their results, for the base's functions."
)
@store_name_option
@folder_option
@token_option
def command(folder: str, baseline: str, store: str, token: str | None, **options: Any) -> None:
    """Compare the result with its baseline: annotations, the job's summary, outputs, and a report for the comment.

    The verdict does not end the step: 'cg-bench ci gate' does, after all else is done.
    """
    event = read_event(os.environ)
    use_token(event, token)
    gates = gates_of(options, configured_benchmarks())
    place = data(folder)
    result = read_result(str(place / RESULT))
    missing = read_missing(folder)
    candidate = Side(name=_called(event), file=result, remarks=() if missing is None else (missing,))
    base = _base(event, result.result, place, baseline=baseline, store=store)
    wanted = _ids(result.result, options["text"])
    made = compared(base, candidate, gates, _SHOWN, wanted=wanted)
    if token and options["artifact"] and unexplained(made):
        base = with_profiles(base, client(event, token), options["artifact"])
        made = compared(base, candidate, gates, _SHOWN, wanted=wanted)
    twice = same_program(made.comparison) if event.run is None and baseline == "ab" else ()
    made = made.with_remarks((*base.remarks, *twice, *candidate.remarks))
    if not base.missing:
        write_atomic(place / BASE, _bytes(base.file, wanted))
    builds = any(spec.setup for spec in configured_benchmarks())
    end = failures(made.comparison) + again(event, made.comparison, options["text"], options["identity"], builds=builds)
    text = made.text("markdown", most=_MOST_CHARACTERS - _ROOM - len(end)) + end
    write_atomic(Path(folder) / REPORT, text.encode())
    add_summary(os.environ, text)
    code = code_of(made, base, require_baseline=options["require_baseline"])
    headline, changed = made.headline().strip(), _changed(made.comparison) or missing is not None
    if missing is not None:
        annotate("error", missing)
        code, headline = code or MeasurementError.exit_code, f"{headline}; {missing}"
    write_verdict(folder, Verdict(headline=headline, code=code, changed=changed))
    set_outputs(os.environ, _outputs(made, base, folder))
    with group("The comparison"):
        output.write(made.text("table"))
    if event.run is None:  # else the job that measured has told it
        _annotate(made, event, base, twice, required=options["require_baseline"])


def _annotate(made: Report, event: Event, base: Side, twice: Sequence[str], *, required: bool) -> None:
    """Tell what matters where it is seen beside the job. A green job may not hide that nothing was compared."""
    commit = made.comparison.candidate.commit
    accepted = event.accepts(None if commit is None else commit.sha)
    text = made.text("github", brief=True)
    if accepted:  # no regression fails this job
        text = re.sub("^::error title=regression", "::warning title=regression", text, flags=re.MULTILINE)
    output.write(text)
    if base.missing:
        fails = required and not accepted
        annotate("error" if fails else "warning", base.remarks[0] + " (require-baseline: true)" * fails)
    for remark in twice:
        annotate("warning", remark)


def _ids(result: Result, text: str | None) -> Callable[[str], bool]:
    """Return which benchmarks are compared: all of a suite; of a command its own, as the history may have other commands'."""
    known = {item.id for item in result.benchmarks}
    return (lambda name: name in known) if text and text.strip() else (lambda _name: True)


def _called(event: Event) -> str:
    if event.pull is not None:
        return f"pull request {event.pull.number}"
    return "the pull request" if event.run is not None else "this job"


def _base(event: Event, result: Result, place: Path, *, baseline: str, store: str) -> Side:
    """Open the base: what was measured or sent with the candidate, else what the history or a file has."""
    from cachegrind_bench.vcs.revisions import Repository

    if (place / BASE).exists():
        name = (event.pull.base_ref if event.pull is not None else event.default_branch) or "the base"
        return Side(name=name, file=read_result(str(place / BASE)))
    if event.run is not None:
        return no_side("base", result, ("no baseline: the measuring job found none",))
    if baseline == "ab":
        return no_side("base", result, ("no baseline: the parts that were measured have none",))
    kind, _, rest = baseline.partition(":")
    if store == NO_STORE and kind != "file":
        return no_side("base", result, ("no baseline: there is no store (store: none)",))
    repository = Repository(cwd=Path.cwd(), environ=dict(os.environ))
    sides = Sides(
        repository, lambda: named_store(history(store)), Notices(write=output.write_error), limit=DEFAULT_LIMIT
    )
    if kind == "file" and rest:
        return sides.base(baseline, result)
    if kind not in ("merge-base", "branch"):
        raise UsageError(
            f"baseline: {baseline!r} is not one of merge-base, branch, ab and file:PATH",
            hint="merge-base:NAME and branch:NAME name another branch than the pull request's",
        )
    head = result.commit.sha if result.commit is not None else repository.commit("HEAD")
    if head is None or repository.commit(head) is None:
        raise UsageError(
            "the commit that was measured is not in this checkout",
            hint="a step with actions/checkout before, of the event's own commit",
        )
    name, sha = base_commit(event, repository, head, branch=rest, tip=kind == "branch")
    return sides.nearest(name, sha, result)


def _bytes(file: Profiled, wanted: Callable[[str], bool]) -> bytes:
    from cachegrind_bench.model.codec import encode

    whole = (
        replace(item, profile=file.profile(item.id), python=file.python(item.id))
        for item in file.result.benchmarks
        if wanted(item.id)
    )
    return encode(replace(file.result, benchmarks=tuple(whole)))


def _changed(comparison: Comparison) -> bool:
    """Tell whether anything moved, or could not be told; a benchmark that is new has nothing to be compared with."""
    from cachegrind_bench.compare.verdict import State

    return any(item.state not in (State.UNCHANGED, State.NEW) for item in comparison.differences)


def _outputs(made: Report, base: Side, folder: str) -> dict[str, str]:
    """Return the outputs of the action."""
    from cachegrind_bench.compare.verdict import State, deciding

    comparison = made.comparison
    counts = comparison.count()
    moved = [item.change for item in comparison.differences if item.change is not None]
    worst = max((float(deciding(item, comparison.gates).relative) for item in moved), default=0.0)
    scores = [
        comparison.model.score(item.counts) for item in comparison.candidate.benchmarks if item.counts is not None
    ]
    commit = base.file.result.commit
    unsure = {State.NOT_COMPARABLE, State.MISSING, State.SUSPICIOUS, State.FAILED}
    return {
        "verdict": "no baseline" if base.missing and comparison.verdict is State.NEW else comparison.verdict.value,
        "score": str(sum(scores)) if scores else "",
        "regressions": str(counts.get(State.REGRESSION, 0)),
        "improvements": str(counts.get(State.IMPROVEMENT, 0)),
        "max-regression": f"{max(0.0, worst) * 100:.3f}".rstrip("0").rstrip(".") + "%",
        "comparable": str(bool(moved) and not any(counts.get(state) for state in unsure)).lower(),
        "baseline-sha": commit.sha if commit is not None and not base.missing else "",
        "result-path": str(data(folder) / RESULT),
        "report-path": str(Path(folder) / REPORT),
    }
