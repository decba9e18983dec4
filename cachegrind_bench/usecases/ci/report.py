"""What others see of a job: the comment under a pull request, the history, the trend report and its issues."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from cachegrind_bench.ci.artifact import MOST_SENT, RESULT, unpack
from cachegrind_bench.ci.posts import marker, post, update
from cachegrind_bench.errors import CgBenchError, UsageError
from cachegrind_bench.store.durable import store_errors, write_atomic
from cachegrind_bench.usecases.ci.job import REPORT, Job, annotate
from cachegrind_bench.usecases.ci.topics import topic
from cachegrind_bench.usecases.result_files import read_regular
from cachegrind_bench.usecases.stored_runs import Runs
from cachegrind_bench.usecases.trend import reported_findings

if TYPE_CHECKING:
    from pathlib import Path

    from cachegrind_bench.ci.event import MeasuringRun
    from cachegrind_bench.ci.github import Client
    from cachegrind_bench.model.result import Result
    from cachegrind_bench.store.protocol import Store

ON_CHANGE, ALWAYS, NEVER = "on-change", "always", "never"
_TREND_FILES = {"html": "report.html", "markdown": "report.md", "json": "report.json"}
_LAST = "last.json"
_MOST_LOOKED_AT = 200  # reports of half a year


def comment(job: Job, when: str, artifact: str) -> None:
    """Comment the report of `compare` under the pull request, or update the comment there is.

    What has another `artifact` has another comment.
    """
    if when == NEVER:
        return
    event, verdict = job.event, job.verdict()
    text = read_regular(job.folder / REPORT).decode("utf-8", "backslashreplace")
    try:
        api = job.client()
        number = _pull_of_this_job(job, api) if event.run is None else _pull_of_measuring_run(job, event.run, api)
        if number is None:
            return
        names = (event.workflow, event.job, artifact) if event.run is None else (event.run.workflow,)
        outcome = post(api.thread(number), text, marker(*names), wanted=verdict.changed or when == ALWAYS)
    except CgBenchError as error:
        if event.run is not None:  # here the comment is all there is to do
            raise
        annotate(job.runner, "warning", f"no comment: {error.message} ({error.hint or 'the summary has the report'})")
        return
    job.runner.say(f"comment under pull request {number}: {outcome.value}")


def store(job: Job, history: Store, words: Sequence[str]) -> None:
    """Add the result to the history, which our own commands know by these words, for the commit that the job is for."""
    result = job.result().result
    _check_commit(job, result)
    missing = job.missing()
    if missing is not None:
        annotate(job.runner, "warning", f"stored, but {missing}")
    _check_others(job, result, history)
    status, why, _ = job.run(["history", "add", *words, str(job.data / RESULT)])
    if status != 0:
        hint = "for a branch of git the job needs 'permissions: contents: write'"
        raise UsageError(f"the result was not stored: {why}", hint=hint)


def trend(job: Job, words: Sequence[str], artifact: str | None, *, issues: bool) -> None:
    """Make the trend report of the history that our own commands know by these words, and issues if asked for.

    What is not in the report before, which jobs like this one leave as `artifact`, is new.
    """
    previous = _last_report(job, artifact) if job.token and artifact else None
    files = {kind: job.data / name for kind, name in _TREND_FILES.items()}
    for path in files.values():
        with store_errors(path, "replace"):
            path.unlink(missing_ok=True)
    arguments = ["trend", *(word for kind, path in files.items() for word in (f"--{kind}", str(path)))]
    arguments += [*words, "--title", job.event.repository]
    arguments += ["--previous", str(previous)] if previous is not None else []
    with job.runner.group("The report"):
        status, why, _ = job.run(arguments)
    if status != 0 and not all(path.exists() for path in files.values()):
        raise UsageError(f"there is no report: {why}", hint="the log has all messages")
    job.runner.add_summary(read_regular(files["markdown"]).decode("utf-8", "backslashreplace"))
    job.runner.set_outputs({"report-path": str(files["html"]), "result-path": str(files["json"])})
    if issues:
        content = read_regular(files["json"])
        # A history that could not be read would look like one in which nothing is wrong.
        complete = bool(json.loads(content)["benchmarks"]) and status == 0
        topics = [*map(topic, reported_findings(content, path=str(files["json"])))]
        job.runner.say(f"issues: {update(job.client(), topics, page=job.event.run_url, complete=complete)}")
    if status != 0:
        raise UsageError("some of the history cannot be read, and is not in the report", hint="the log names it")


def _pull_of_this_job(job: Job, api: Client) -> int | None:
    """Return the pull request that this job measured; None if there is a newer commit or it was closed."""
    pull = job.event.pull
    if pull is None:
        job.runner.say("there is no pull request to comment on")
        return None
    now = api.pull(pull.number)
    if now is None or now.head_sha != pull.head_sha:
        why = "was closed" if now is None else "has a newer commit, whose job will comment"
        job.runner.say(f"no comment: pull request {pull.number} {why}")
        return None
    return pull.number


def _pull_of_measuring_run(job: Job, run: MeasuringRun, api: Client) -> int | None:
    """Return the pull request whose last commit was measured; GitHub says which, never the artifact.

    A fork's commit is not looked up in the base repository, which does not have it.
    """
    pulls = api.open_pulls(run.owner, run.head_branch) if run.owner and run.head_branch else ()
    found = [pull for pull in pulls if (pull.head_sha, pull.head_repository) == (run.head_sha, run.repository)]
    if len(found) == 1:
        return found[0].number
    why = "no open pull request has the commit that was measured: it was closed, or has a newer one"
    if found:
        why = f"{len(found)} pull requests have this commit, and it is not known which was measured"
    annotate(job.runner, "notice", f"no comment: {why}")
    return None


def _last_report(job: Job, artifact: str) -> Path | None:
    """Fetch the report before this one, against which findings are new. None if there is none."""
    allowed = {name: kind == "json" for kind, name in _TREND_FILES.items()}
    try:
        api = job.client()
        # A pull request can leave an artifact of any name: only those of the default branch count.
        last = api.last_own(artifact, lambda item: item.branch == job.event.default_branch, most=_MOST_LOOKED_AT)
        if last is None:
            job.runner.say("there is no earlier report: all findings are new")
            return None
        files = unpack(api.download(last, MOST_SENT), last.name, allowed)
    except CgBenchError as error:
        annotate(
            job.runner,
            "warning",
            f"the last report cannot be read, so its findings are reported as new again: {error.message}",
        )
        return None
    path = job.folder / _LAST
    write_atomic(path, files[_TREND_FILES["json"]])
    return path


def _check_others(job: Job, result: Result, history: Store) -> None:
    """Warn if the history has other counts of the same: then several programs share a name, and none has a true baseline."""
    if result.commit is None:
        return
    with history as opened:
        known = [point for run in Runs(opened).of(result.commit.sha) for point in run.points]
    counts = {(item.id, item.key): item.counts for item in result.benchmarks if item.counts is not None}
    measured = ((point, counts.get((point.id, point.key))) for point in known if point.counts is not None)
    other = sorted({point.id for point, mine in measured if mine not in (None, point.counts)})
    if other:
        annotate(
            job.runner,
            "warning",
            f"this commit is stored already with other counts of {', '.join(other[:5])}: if a matrix measures several programs "
            "under one name, give each an id or a store of its own; if it is one program, 'cg-bench verify' finds what differs",
        )


def _check_commit(job: Job, result: Result) -> None:
    """Refuse to store, as the default branch's, what is of another commit; warn of what no report would show."""
    event = job.event
    wanted = event.sha if event.run is None else event.run.head_sha
    commit = result.commit
    if commit is None:
        annotate(
            job.runner, "warning", "stored without a commit, so in no report: was the job's folder not a git checkout?"
        )
    elif commit.sha != wanted:
        raise UsageError(f"the result is of commit {commit.sha[:12]}, and the job is for {wanted[:12]}: not stored")
    elif commit.dirty:
        annotate(
            job.runner,
            "warning",
            "stored, but in no report and never a baseline: building changed files that git tracks ('git diff' shows them)",
        )
