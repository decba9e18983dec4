"""What the result of a job comes to, as annotations, summary, outputs, and a report for the comment."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from cachegrind_bench.ci.artifact import BASE, PAGE, RESULT
from cachegrind_bench.compare.verdict import Gates, State, deciding
from cachegrind_bench.errors import MeasurementError, UsageError
from cachegrind_bench.model.codec import encode
from cachegrind_bench.render.comparison import github, html, markdown, table
from cachegrind_bench.render.comparison.view import headline, view
from cachegrind_bench.store.durable import write_atomic
from cachegrind_bench.usecases.ci.base import base_commit, unexplained, with_profiles
from cachegrind_bench.usecases.ci.job import REPORT, Job, Verdict, annotate
from cachegrind_bench.usecases.ci.reproduce import Measured, again, failures
from cachegrind_bench.usecases.comparison import ReportOptions, Side, compared, same_program
from cachegrind_bench.usecases.comparison_inputs import Sides, no_side, resolve
from cachegrind_bench.usecases.result_files import read_result
from cachegrind_bench.vcs.git import top_folder

if TYPE_CHECKING:
    from cachegrind_bench.ci.event import Event
    from cachegrind_bench.compare.explained import Explained
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.store.protocol import Store

# Room for a comment's mark.
_ROOM = 200


class CompareRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to compare with, and what that is held to.

    `artifact` is where jobs like this one leave their results, `open_store` None if there is no history.
    """

    baseline: str
    gates: Gates
    require_baseline: bool
    measured: Measured
    artifact: str | None
    open_store: Callable[[], Store] | None


def compare(job: Job, request: CompareRequest) -> None:
    """Compare the result with its baseline. The verdict does not end the step: `gate` does, after all else is done."""
    result, missing = job.result(), job.missing()
    candidate = Side(name=_called(job.event), file=result, remarks=() if missing is None else (missing,))
    base = _base(job, result.result, request)
    # All of a suite; of a command its own, as the history may have other commands'.
    known = {item.id for item in result.result.benchmarks} if (request.measured.text or "").strip() else None

    def wanted(name: str) -> bool:
        return known is None or name in known

    shown = ReportOptions(rows=50, root=str(top_folder(job.cwd) or job.cwd), git=job.repository)
    made = compared(base, candidate, request.gates, shown, wanted=wanted)
    if job.token and request.artifact and unexplained(made):
        base = with_profiles(base, job.client(), request.artifact)
        made = compared(base, candidate, request.gates, shown, wanted=wanted)
    twice = same_program(made.comparison) if job.event.run is None and request.baseline == "ab" else ()
    made = made.with_remarks((*base.remarks, *twice, *candidate.remarks))
    if not base.missing:
        write_atomic(job.data / PAGE, html.page(made).encode(), in_place=True)
        whole = base.file.whole()
        benchmarks = tuple(item for item in whole.benchmarks if wanted(item.id))
        write_atomic(job.data / BASE, encode(replace(whole, benchmarks=benchmarks)))
    end = failures(made.comparison) + again(job, made.comparison, request.measured)
    text = markdown.render(view(made), most=markdown.MOST_CHARACTERS - _ROOM - len(end)) + end
    write_atomic(job.folder / REPORT, text.encode())
    job.runner.add_summary(text)
    code = made.exit_code(require_baseline=request.require_baseline)
    verdict = headline(made)
    if missing is not None:
        annotate(job.runner, "error", missing)
        code, verdict = code or MeasurementError.exit_code, f"{verdict}; {missing}"
    job.write_verdict(Verdict(headline=verdict, code=code, changed=made.changed or missing is not None))
    job.runner.set_outputs(_outputs(made, base, job))
    with job.runner.group("The comparison"):
        job.runner.write(table.render(view(made)))
    if job.event.run is None:  # else the job that measured has reported it
        _annotate(job, made, base, twice, required=request.require_baseline)


def _annotate(job: Job, made: Explained, base: Side, twice: Sequence[str], *, required: bool) -> None:
    """Annotate the job with what matters. A green job may not hide that nothing was compared."""
    commit = made.comparison.candidate.commit
    accepted = job.event.accepts(None if commit is None else commit.sha)
    text = github.render(view(made, whole=True), brief=True)
    if accepted:  # no regression fails this job
        text = re.sub("^::error title=regression", "::warning title=regression", text, flags=re.MULTILINE)
    job.runner.write(text)
    if base.missing:
        fails = required and not accepted
        annotate(job.runner, "error" if fails else "warning", base.remarks[0] + " (require-baseline: true)" * fails)
    for remark in twice:
        annotate(job.runner, "warning", remark)


def _called(event: Event) -> str:
    if event.pull is not None:
        return f"pull request {event.pull.number}"
    return "the pull request" if event.run is not None else "this job"


def _base(job: Job, result: Result, request: CompareRequest) -> Side:
    """Open the base: what was measured or sent with the candidate, else what the history or a file has."""
    event, baseline = job.event, request.baseline
    if (job.data / BASE).exists():
        name = (event.pull.base_ref if event.pull is not None else event.default_branch) or "the base"
        return Side(name=name, file=job.result(BASE))
    if event.run is not None:
        return no_side("base", result, "no baseline: the measuring job found none")
    if baseline == "ab":
        return no_side("base", result, "no baseline: the parts that were measured have none")
    kind, _, rest = baseline.partition(":")
    if kind == "file" and rest:
        return Side(name=baseline, file=read_result(resolve(baseline, job.cwd)))
    if kind not in ("merge-base", "branch"):
        raise UsageError(
            f"baseline: {baseline!r} is not one of merge-base, branch, ab and file:PATH",
            hint="merge-base:NAME and branch:NAME name another branch than the pull request's",
        )
    if request.open_store is None:
        return no_side("base", result, "no baseline: there is no store (store: none)")
    repository = job.repository
    head = result.commit.sha if result.commit is not None else repository.commit("HEAD")
    if head is None or repository.commit(head) is None:
        raise UsageError(
            "the commit that was measured is not in this checkout",
            hint="a step with actions/checkout before, of the event's own commit",
        )
    name, sha = base_commit(event, repository, head, branch=rest, tip=kind == "branch")
    sides = Sides(repository=repository, open_store=request.open_store)
    return sides.nearest(name, sha, result)


def _outputs(made: Explained, base: Side, job: Job) -> dict[str, str]:
    """Return the outputs of the action."""
    comparison = made.comparison
    counts = comparison.count()
    moved = [item.change for item in comparison.differences if item.change is not None]
    shares = [deciding(item, comparison.gates).relative for item in moved]
    worst = max((1.0 if share is None else float(share) for share in shares), default=0.0)  # from 0: as in a history
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
        "result-path": str(job.data / RESULT),
        "report-path": str(job.folder / REPORT),
    }
